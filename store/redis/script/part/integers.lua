-- Whole numbers below 2^53, which a Lua number holds exactly. Every product and
-- sum below stays in that range; the Go code does the same in 64 and 128 bits.

local floor, min, max, format = math.floor, math.min, math.max, string.format

local EXACT = 9007199254740992 -- 2^53
local MAX_UNITS = 1125899906842624 -- 2^50
local NEVER = -1 -- the retry of what can never fit
local LATEST = -1 -- the receipt of the newest units
local ALWAYS = -2 -- the longest delay of what is charged whether or not it fits

-- Where it matters, a quotient is (a - a % b) / b, which is the same as floor(a / b)
-- and calls no function.
local function divUp(a, b)
  local q = floor(a / b)
  if q * b < a then q = q + 1 end
  return q
end
