-- Whole numbers below 2^53, which a Lua number holds exactly. Every product and sum stays in that
-- range; the Go code does the same in 64 and 128 bits.

-- What Redis offers does not exist while a library is loaded, so a call looks it up if it is the
-- first. Nothing else outlives a call.
local call, try, pack, parse, encode, spread
local floor, min, max, format, sub, concat

local function prepare()
  if call then return end
  try, pack, parse, encode, spread = redis.pcall, struct.pack, struct.unpack, cmsgpack.pack, unpack
  floor, min, max = math.floor, math.min, math.max
  format, sub, concat = string.format, string.sub, table.concat
  call = redis.call
end

local EXACT = 9007199254740992 -- 2^53
local MAX_UNITS = 1125899906842624 -- 2^50
local SECOND = 1000000
local NEVER = -1 -- the retry of what can never fit
local LATEST = -1 -- the receipt of the newest units
local ALWAYS = -2 -- the longest delay of what is charged whether or not it fits

-- Where it matters, a quotient is written (a - a % b) / b, which calls no function.
local function divUp(a, b)
  local rest = a % b
  if rest > 0 then return (a - rest) / b + 1 end
  return a / b
end
