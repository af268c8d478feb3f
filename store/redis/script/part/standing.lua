-- What a call is about at the moment: plain locals, because a table for each key and
-- each decision would cost more than the arithmetic.

local spread = unpack
local call, pcall, pack, unpack, KEYS = redis.call, redis.pcall, struct.pack, struct.unpack, KEYS

local HEAD = 28 -- bytes of a state without its tail: four whole numbers of seven each

-- The standing of one key under one limit at one instant, as in view.go.
local k, c -- the key and the limit
local now -- of the call
local at -- the same, but never before the key's last charge
local old -- FRESH of the key; 0 if nothing of it counts
local fresh, a, b -- the state brought to now and, once charged, with the charge
local free -- units that could be taken, without those that are left

-- One decision.
local cost, maxDelay, leave -- what is asked for, and the units that are left for others
local need -- the cost and these
local units -- what is charged
local debt, excess -- whether it is charged even if it does not fit, and what of it is not
local wait, hold -- what an algorithm finds: how long until the cost fits, and its delay
local allowed, remaining, retry, reset, delay -- the answer
local charged, nextFresh, nextA, nextB -- whether the key's state changes, and to what

local input -- of the call

-- out is the answer of the call; its length is kept beside it, for asking is dear.
local out, length = {}, 0

-- Redis forgets a key some time after it is as good as new: by a quarter of the time
-- until then, and at least a second. So who is charged again and again need not have
-- that set each time. When it will be is the fourth number of a state.
local SECOND = 1000000

local isTest -- whether the clock is a test's, and not Redis's own

local function expiry(fresh) return fresh + max(SECOND, floor((fresh - now) / 4)) end

-- ttl is how long that is, in words: Redis would write a number as a fraction, digit by
-- digit. For a test it is an hour.
local function ttl(expires)
  if isTest then return '3600000' end
  return format('%d', max(1, divUp(expires - now, 1000)))
end
