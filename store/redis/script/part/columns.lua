-- What is remembered of each key of this call, by its number in KEYS: three whole
-- numbers, which in Redis are seven bytes each and followed by when the key expires, and
-- for sub-windows a tail of more such numbers behind them. Logs are kept otherwise. A
-- state is read and written once a call, however many requests ask for it.
--
-- These are columns, which cost less than a table for each key.

local FRESH, A, B = {}, {}, {} -- as in weir.State
local CHANGED, FOREIGN = {}, {}

-- load reads a state. One that was never seen, or that nobody could have written, is
-- zero. What is no string at all is foreign, and so is what a later version has written:
-- whoever asks for it is told. The highest three bits of the first number are the form.
local function load(k)
  local head = pcall('GETRANGE', KEYS[k], '0', '27')
  FRESH[k], A[k], B[k] = 0, 0, 0
  if type(head) == 'table' then
    FOREIGN[k] = true
  elseif #head == HEAD then
    local left, first, second = unpack('>I7I7I7', head)
    if left < EXACT then FRESH[k], A[k], B[k] = left, first, second else FOREIGN[k] = true end
  end
end

-- loadAll reads the states of all keys at once, which is quicker by half. It is not for
-- keys with tails, which may be long. What it does not find is left to load: there may
-- be something foreign.
local function loadAll()
  local heads = call('MGET', spread(KEYS))
  for k = 1, #KEYS do
    local head = heads[k]
    if head and #head == HEAD then FRESH[k], A[k], B[k] = unpack('>I7I7I7', head) end
    if FRESH[k] and FRESH[k] >= EXACT then FRESH[k] = nil end
  end
end

-- What is in parts that a call may do without.
local TAIL, saveTail, LOG, loadLog, saveLog, pages, several, forget, giveBack, holding

local function loadFor(limit, k)
  if limit.isLog then loadLog(k) else load(k) end
end

-- What each algorithm can do, by its number.
local ALGORITHM = {}

local TAKE = 1
local limits -- of the call
