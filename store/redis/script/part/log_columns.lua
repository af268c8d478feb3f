-- The logs of a call.

LOG = {}
local log -- of k
local values -- of all keys, if they were read at once

loadLogs = function() values = call('MGET', spread(KEYS)) end

--: newLog
FRESH[k], A[k], B[k] = 0, 0, 0
log = { open = '', first = 0, skip = 0, added = '', stored = 0, expires = 0 }
LOG[k] = log

--: enterLog
-- Before anything is done with the log of k.
log, ranks, lastTime = LOG[k], c.ranks, FRESH[k] - c.period
if not ranks then
  --> setRanks
  c.ranks = ranks
end
digits = RANKS / ranks
span = digits * RANKS
--> mergeLog
