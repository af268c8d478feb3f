-- fresh: when a, as the previous count, weighs less than one unit. a: units in the
-- current window. b: units in the previous one.

local mulDiv, mulDivUp

-- faded is how far into a window the previous count weighs at most room.
local function faded(period, count, room)
  if not mulDiv then mulDiv, mulDivUp = wide() end
  return period - (mulDivUp(room + 1, period, count) - 1)
end

-- windowStart is the start of the window of the charge that left so much to go.
local function windowStart(period, left) return floor((left - 1) / period) * period - period end

--: look
local period = c.period
a, b = 0, 0
if old > 0 then
  local start = windowStart(period, old)
  if at < start + 2 * period then
    if at < start then at = start end
    if at < start + period then a, b = A[k], B[k] else b = A[k] end
  end
end
if not mulDiv then mulDiv, mulDivUp = wide() end
free = c.n - mulDiv(b, period - at % period, period) - a

--: charge
local period = c.period
nextA = a + units
nextB = b
if nextA > MAX_UNITS and not debt then nextA = max(a, MAX_UNITS) end
nextFresh = at - at % period + period + faded(period, nextA, 0)

--: room
units = min(11 * c.n, EXACT / 2) - a

--: wait
local period = c.period
local start, room = at - at % period, c.n - a - need
if room >= 0 then
  wait = start + faded(period, b, room) - at
else
  wait = start + period + faded(period, a, c.n - need) - at
end
