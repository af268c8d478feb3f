-- Whole numbers below 2^53, which a Lua number holds exactly. Every product and sum stays in that
-- range; the Go code does the same in 64 and 128 bits.

-- What Redis offers does not exist while a library is loaded, so a call looks it up if it is the
-- first. Nothing else outlives a call.
local call, try, pack, parse, encode, decode, spread
local floor, min, max, format, sub, byte, find, concat, sort

local function prepare()
  if call then return end
  try, pack, parse, encode, decode, spread = redis.pcall, struct.pack, struct.unpack, cmsgpack.pack, cmsgpack.unpack, unpack
  floor, min, max = math.floor, math.min, math.max
  format, sub, byte, find, concat, sort = string.format, string.sub, string.byte, string.find, table.concat, table.sort
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

-- mulDiv is a*b/c rounded down, and what is left over. A product beyond 2^53 is divided digit by
-- digit, as one does on paper, in a base that keeps every step exact.
local function mulDiv(a, b, c)
  local product = a * b
  if product < EXACT then
    local rest = product % c
    return (product - rest) / c, rest
  end
  local base, digits = 2, EXACT / 4 / max(b, c)
  while base * 2 <= digits do base = base * 2 end
  local power = 1
  while power * base <= a do power = power * base end
  local q, r = 0, 0
  while power >= 1 do
    local digit = floor(a / power)
    a = a - digit * power
    local t = r * base + digit * b
    local part = floor(t / c)
    q = q * base + part
    r = t - part * c
    power = power / base
  end
  return q, r
end

local function mulDivUp(a, b, c)
  local q, r = mulDiv(a, b, c)
  if r > 0 then return q + 1 end
  return q
end

local function gcd(a, b)
  while b ~= 0 do a, b = b, a % b end
  return a
end
