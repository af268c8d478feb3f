-- What is remembered of each key of this call, by its number in KEYS: three whole
-- numbers, which in Redis are seven bytes each, and for two algorithms a tail of more
-- such numbers behind them. A state is read and written once a call, however many
-- requests ask for it.
--
-- These are columns, and what follows is about one key at a time in plain locals,
-- because a table for each key and each decision would cost more than the arithmetic.

local spread = unpack
local call, pcall, pack, unpack, KEYS = redis.call, redis.pcall, struct.pack, struct.unpack, KEYS

local FRESH, A, B = {}, {}, {} -- as in weir.State
local CHANGED, FOREIGN = {}, {}

local HEAD = 21

-- load reads a state. One that was never seen, or that nobody could have written, is
-- zero. What is no string at all is foreign: whoever asks for it is told.
local function load(k)
  local head = pcall('GETRANGE', KEYS[k], '0', '20')
  if type(head) == 'table' then
    FOREIGN[k], head = true, ''
  end
  if #head == HEAD then
    FRESH[k], A[k], B[k] = unpack('>I7I7I7', head)
  else
    FRESH[k], A[k], B[k] = 0, 0, 0
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
  end
end

-- The standing of one key under one limit at one instant, as in view.go.
local k, c -- the key and the limit
local now -- of the call
local at -- the same, but never before the key's last charge
local old -- FRESH of the key; 0 if nothing of it counts
local fresh, a, b -- the state brought to now and, once charged, with the charge
local free -- units that could be taken

-- What is in parts that a call may do without.
local TAIL, saveTail, several, forget, giveBack

-- What each algorithm can do, by its number.
local ALGORITHM = {}

-- One decision.
local cost, maxDelay -- what is asked for
local units -- what is charged
local wait, hold -- what an algorithm finds: how long until the cost fits, and its delay
local allowed, remaining, retry, reset, delay -- the answer
local charged, nextFresh, nextA, nextB -- whether the key's state changes, and to what

local TAKE = 1
local input, limits -- of the call

-- out is the answer of the call; its length is kept beside it, for asking is dear.
local out, length = {}, 0
