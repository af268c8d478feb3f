-- Whole numbers below 2^53, which a Lua number holds exactly. Every product and sum stays in that
-- range; the Go code does the same in 64 and 128 bits.

-- prepare is the first thing that a call does.
local function prepare()
  if call then return end
  try, pack, parse, encode, spread = redis.pcall, struct.pack, struct.unpack, cmsgpack.pack, unpack
  floor, min, max = math.floor, math.min, math.max
  format, sub, concat = string.format, string.sub, table.concat
  call = redis.call
end

-- Where it matters, a quotient is written (a - a % b) / b, which calls no function.
local function divUp(a, b)
  local rest = a % b
  if rest > 0 then return (a - rest) / b + 1 end
  return a / b
end
