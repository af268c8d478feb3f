-- The log of the one key that is being looked at.
local log_open, log_added, log_first, log_skip, log_expires, log_stored
local log_hashed, log_after, log_next, log_swept, log_pages, log_directory, log_written, log_removed, log_redirected
local pages
local EMPTY = pack('>BI7I4I4', FORM, 0, 0, 0)

--: prepare
--> setRanks
digits = RANKS / ranks
span = digits * RANKS

--: newLog
-- One after the other: Lua assigns several at once by way of others.
oldFresh = 0
foreign = false
changed = false
log_open = ''
log_added = ''
log_first = 0
log_stored = 0
if log_pages or log_hashed then
  log_hashed, log_next, log_pages, log_directory, log_redirected = nil, nil, nil, nil, nil
end

--: enterLog
lastTime = oldFresh - c_period
--> mergeLog

--: readState
name = KEYS[key]
local value = head or #KEYS == 1 and call('MGET', name)[1]
--> readLog

--: ready
-- For so many requests. Few logs have pages, or will have them.
if (log_hashed or #log_open + 8 * count >= OPEN) and not pages then
  --> makePages
end

--: writeState
-- A place that is given back will be taken again: its value stays until it expires.
if oldFresh > 0 then
  --> writeLog
elseif log_hashed then
  call('UNLINK', name)
else
  call('SETRANGE', name, '0', EMPTY)
end

--: elseBack
elseif cost < 0 then
  -- What is given back, and how the key is then.
  cost = -1 - cost
  receipt = maxDelay
  if oldFresh > 0 and receipt ~= 0 then
    units = cost
    changed = true
    --> refundLog
    if oldFresh == 0 then
      --> clearLog
    end
  end
  if leave < 0 then -- nobody asks
    out[length + 1] = 1
    out[length + 2] = 0
    length = length + 2
  else
    maxDelay = -1
    --> judge
    debt = false
    reset = max(0, oldFresh - now)
    --> answer
  end
