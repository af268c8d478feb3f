-- fresh: the end of the window. a: units in it.

local function lookFixedWindow()
  local period = c.period
  if at < old then
    fresh, a = old, A[k]
    if at < old - period then at = old - period end
  else
    fresh, a = at - at % period + period, 0
  end
  free = c.n - a
end

local function chargeFixedWindow(cost) return fresh, min(a + cost, MAX_UNITS), 0 end
local function waitFixedWindow() return fresh - at end

ALGORITHM[2] = { look = lookFixedWindow, charge = chargeFixedWindow, wait = waitFixedWindow }
