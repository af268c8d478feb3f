-- ARGV[1] is what to do, as numbers packed by Go (see encode.go):
--
--   now, how many limits, eleven numbers for each; then for each request
--   verb, how many ops, and key, limit, cost, last, leave for each
--
-- now is 0 for Redis's own clock. Below 0 it is -1 - now, and two numbers follow: the call
-- has periods of the calendar, which are right from the one time to the other. If it is
-- not within, nothing happens, and the answer is the time alone. last is the longest delay or, if something is to be
-- given back, the receipt; leave is what is left for others. The answer is the time, and then what the block answer
-- writes for each op. Requests come one after the other, as if they were calls of
-- their own.

local i = 2
--> begin
--> readLimits
local SLIDING_LOG = 4
local logs = 0
for _, limit in ipairs(limits) do
  limit.algorithm, limit.isLog = ALGORITHM[limit.kind], limit.kind == SLIDING_LOG
  if limit.isLog then logs = logs + 1 end
end

-- Holds have other keys, too.
if #KEYS > 1 and not holding then
  if logs == #limits then
    loadLogs()
  elseif not TAIL and not LOG then
    loadAll()
  end
end

local last = #input
while i < last do
  local verb, n = input[i], input[i + 1]
  i = i + 2
  if verb == TAKE and n == 1 then
    k, c, cost, maxDelay, leave = input[i], limits[input[i + 1]], input[i + 2], input[i + 3], input[i + 4]
    if not FRESH[k] then loadFor(c, k) end
    if FOREIGN[k] then
      --> refuseForeign
    else
      --> decide
      if charged then
        --> commit
      end
      --> answer
    end
  elseif verb == REFUND and n == 1 then
    refundOne(i)
  elseif verb > 3 then
    i = holding(verb, n, i) - 5 * n
  else
    several(verb, n, i)
  end
  i = i + 5 * n
end

for key in pairs(CHANGED) do
  k = key
  save()
end
return cmsgpack.pack(out)
