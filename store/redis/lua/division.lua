-- mulDiv is a*b/c rounded down, and what is left over; or rounded up. A product beyond 2^53 is divided digit by
-- digit, as one does on paper, in a base that keeps every step exact.
local function mulDiv(a, b, c, up)
  local product = a * b
  if product < EXACT then
    local rest = product % c
    if up and rest > 0 then return (product - rest) / c + 1 end
    return (product - rest) / c, rest
  end
  local floor, base, digits = math.floor, 2, EXACT / 4 / math.max(b, c)
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
  if up and r > 0 then return q + 1 end
  return q, r
end
