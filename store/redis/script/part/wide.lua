-- Products beyond 2^53. They are seldom needed, and a function costs time already when
-- it is made, so these are made on demand.
local function wide()
  -- mulDiv is a*b/c rounded down, and what is left over. The product is divided digit
  -- by digit, as one does on paper, in a base that keeps every step exact.
  local function mulDiv(a, b, c)
    if a * b < EXACT then
      local q = floor(a * b / c)
      return q, a * b - q * c
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
    if r > 0 then q = q + 1 end
    return q
  end

  local function gcd(a, b)
    while b ~= 0 do a, b = b, a % b end
    return a
  end

  return mulDiv, mulDivUp, gcd
end
