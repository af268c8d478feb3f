-- Whole numbers below 2^53, which a Lua number holds exactly. Every product and sum stays in that
-- range; the Go code does the same in 64 and 128 bits.

-- Where it matters, a quotient is written (a - a % b) / b, which calls no function.
local function divUp(a, b)
  local rest = a % b
  if rest > 0 then return (a - rest) / b + 1 end
  return a / b
end
