-- What a call is about at the moment: plain locals, because a table for each key and
-- each decision would cost more than the arithmetic.

local spread = unpack
local call, pcall, pack, unpack, KEYS = redis.call, redis.pcall, struct.pack, struct.unpack, KEYS

local HEAD = 28 -- bytes of a state without its tail: four whole numbers of seven each
local STRANGE = 32 -- no state begins with such a byte, or a higher one: it would be a number of EXACT or more

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

-- out is the answer of the call; its length is kept beside it, for asking is dear. It has
-- room for one decision, because to make room later costs a single check a twenty-fifth.
local out, length = { nil, nil, nil }, 0
