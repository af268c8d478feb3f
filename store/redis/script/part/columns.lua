-- What is remembered of each key of this call, by its number in KEYS: three whole
-- numbers, which in Redis are seven bytes each and followed by when the key expires. Behind
-- them sub-windows have a tail of more such numbers, and others their open holds. Logs are
-- kept otherwise. A state is read and written once a call, however many requests ask for it.
--
-- These are columns, which cost less than a table for each key.

local FRESH, A, B = {}, {}, {} -- as in weir.State
local EXPIRES, CHANGED, FOREIGN = {}, {}, {}

-- load reads a state. One that was never seen, or that nobody could have written, is
-- zero. What is no string at all is foreign, and so is what a later version has written:
-- whoever asks for it is told. The highest three bits of the first number are the form.
local function load(k)
  local head = pcall('GETRANGE', KEYS[k], '0', '27')
  FRESH[k], A[k], B[k], EXPIRES[k] = 0, 0, 0, 0
  if type(head) == 'table' then
    FOREIGN[k] = true
  elseif #head == HEAD then
    local left, first, second, expires = unpack('>I7I7I7I7', head)
    if left < EXACT then FRESH[k], A[k], B[k], EXPIRES[k] = left, first, second, expires else FOREIGN[k] = true end
  elseif head ~= '' and string.byte(head) >= STRANGE then
    FOREIGN[k] = true -- and too short for a state
  end
end

-- loadAll reads the states of all keys at once, which is quicker by half. It is not for
-- keys with tails, which may be long. What it does not find is left to load: there may
-- be something foreign.
local function loadAll()
  local heads = call('MGET', spread(KEYS))
  for k = 1, #KEYS do
    local head = heads[k]
    if head and #head >= HEAD then FRESH[k], A[k], B[k], EXPIRES[k] = unpack('>I7I7I7I7', head) end
    if FRESH[k] and FRESH[k] >= EXACT then FRESH[k] = nil end
  end
end

-- isUnheld reports whether no open holds are behind a state.
local function isUnheld(key)
  local list = call('GETRANGE', key, '28', '30')
  if #list < 3 then return true end
  local _, count = unpack('>BI2', list)
  return count == 0
end

-- What is in parts that a call may do without.
local TAIL, saveTail, LOG, loadLog, loadLogs, saveLog, pages, several, forget, refundOne, giveBack, holding

local function loadFor(limit, k)
  if limit.isLog then loadLog(k) else load(k) end
end

-- save writes the state of k, which Redis forgets when it is as good as new. What is behind it
-- stays.
local function save()
  local left, key = FRESH[k], KEYS[k]
  CHANGED[k] = nil
  if LOG and LOG[k] then
    if left == 0 then call('UNLINK', key) else saveLog() end
    return
  end
  local before, tail = EXPIRES[k], TAIL and TAIL[k]
  if left == 0 and (tail or isUnheld(key)) then
    EXPIRES[k] = 0
    call('UNLINK', key)
    return
  end
  local expires = before
  if tail or left > before or before == 0 then expires = expiry(left) end
  EXPIRES[k] = expires
  local head = pack('>I7I7I7I7', left, A[k], B[k], expires)
  if tail then
    saveTail(head, ttl(expires))
  elseif before > 0 then
    call('SETRANGE', key, '0', head)
    if before ~= expires then call('PEXPIRE', key, ttl(expires)) end
  else
    call('PSETEX', key, ttl(expires), head)
  end
end

-- What each algorithm can do, by its number.
local ALGORITHM = {}

local TAKE, REFUND = 1, 2
local limits -- of the call
