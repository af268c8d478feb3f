-- Sliding window. fresh: when a, as the previous count, weighs less than one unit. a: units in the
-- current window. b: units in the previous one.

SLIDING_WINDOW = { read = readHead, write = writeHead, limit = nil, look = nil, charge = nil, wait = nil, room = roomOfWindow, prepare = nil }

function SLIDING_WINDOW:limit(_, n, period, capacity, _, countDenied)
  return { does = self, n = n, period = period, capacity = capacity, countDenied = countDenied == 1 }
end

-- faded is how far into a window the previous count weighs at most room.
local function faded(period, count, room) return period - (mulDiv(room + 1, period, count, true) - 1) end

-- windowStart is the start of the window of the charge that left that much to go.
local function windowStart(period, left)
  left = left - 1
  return left - left % period - period
end

function SLIDING_WINDOW.look(c, now, fresh, current, previous)
  local period, at, a, b = c.period, now, 0, 0
  if fresh > 0 then
    local start = windowStart(period, fresh)
    if at < start + 2 * period then
      if at < start then at = start end
      if at < start + period then a, b = current, previous else b = current end
    end
  end
  return at, fresh, a, b, c.n - mulDiv(b, period - at % period, period) - a
end

function SLIDING_WINDOW.charge(c, at, _, a, b, units, debt)
  local period = c.period
  a = added(a, units, debt)
  return at - at % period + period + faded(period, a, 0), a, b
end

function SLIDING_WINDOW.wait(c, at, _, a, b, need)
  local period, room = c.period, c.n - a - need
  local start = at - at % period
  if room >= 0 then return start + faded(period, b, room) - at end
  return start + period + faded(period, a, c.n - need) - at
end

function SLIDING_WINDOW:prepare()
  if self.refund then return end
  function self.refund(c, fresh, a, b, _, receipt, units)
    local period = c.period
    if receipt < 0 then receipt = fresh end
    local start, taken = windowStart(period, fresh), windowStart(period, receipt)
    if taken == start then
      a = a - math.min(a, units)
    elseif taken == start - period then
      b = b - math.min(b, units)
    end
    if a > 0 then return start + period + faded(period, a, 0), a, b end
    if b > 0 then return start + faded(period, b, 0), b, c.n end
    return 0, a, b
  end
end
