-- fresh: when a, as the previous count, weighs less than one unit. a: units in the
-- current window. b: units in the previous one.

local mulDiv, mulDivUp = wide()

-- faded is how far into a window the previous count weighs at most room.
local function faded(count, room) return c.period - (mulDivUp(room + 1, c.period, count) - 1) end

-- windowStart is the start of the window of the charge that left so much to go.
local function windowStart(left) return floor((left - 1) / c.period) * c.period - c.period end

local function lookSlidingWindow()
  local period = c.period
  a, b = 0, 0
  if old > 0 then
    local start = windowStart(old)
    if at < start + 2 * period then
      if at < start then at = start end
      if at < start + period then a, b = A[k], B[k] else b = A[k] end
    end
  end
  free = c.n - mulDiv(b, period - at % period, period) - a
end

local function chargeSlidingWindow(cost)
  local period, count = c.period, min(a + cost, MAX_UNITS)
  return at - at % period + period + faded(count, 0), count, b
end

local function waitSlidingWindow(cost)
  local start, room = at - at % c.period, c.n - a - cost
  if room >= 0 then return start + faded(b, room) - at end
  return start + c.period + faded(a, c.n - cost) - at
end

ALGORITHM[3] = { look = lookSlidingWindow, charge = chargeSlidingWindow, wait = waitSlidingWindow }
