-- Requests of several ops, which have different keys. What is known of a key is in columns, by
-- its number in KEYS, and in locals while it is read or written.

local FRESH, A, B, EXPIRES, CHANGED, FOREIGN = {}, {}, {}, {}, {}, {}
local NEXT_FRESH, NEXT_A, NEXT_B = {}, {}, {} -- of each op of a request, if it is allowed
local limits -- of the call
local kind -- of the limit: the number of its algorithm
local isLook -- whether the op is only looked at

--: readOp
k = input[i]
c = limits[input[i + 1]]
cost = input[i + 2]
maxDelay = input[i + 3]
leave = input[i + 4]
kind = c.kind
isLook = cost < 0
if isLook then cost = -1 - cost end
