-- fresh: when a, as the previous count, weighs less than one unit. a: units in
-- the current window. b: units in the previous one.

local slidingWindow = {}

-- faded is how far into a window the previous count weighs at most room.
local function faded(c, count, room)
  return c.period - (mulDivUp(room + 1, c.period, count) - 1)
end

-- windowStart is the start of the window of the charge that left fresh.
local function windowStart(c, fresh)
  return div(fresh - 1, c.period) * c.period - c.period
end

function slidingWindow.look(v)
  local s, c = v.s, v.c
  local period = c.period
  v.a, v.b = 0, 0
  if s.fresh > 0 then
    local start = windowStart(c, s.fresh)
    if v.now < start + 2 * period then
      v.now = max(v.now, start)
      if v.now < start + period then
        v.a, v.b = s.a, s.b
      else
        v.b = s.a
      end
    end
  end
  v.free = c.n - mulDiv(v.b, period - v.now % period, period) - v.a
end

function slidingWindow.charge(v, cost)
  local a = min(v.a + cost, MAX_UNITS)
  return v.now - v.now % v.c.period + v.c.period + faded(v.c, a, 0), a, v.b
end

function slidingWindow.wait(v, cost)
  local c = v.c
  local start = v.now - v.now % c.period
  local room = c.n - v.a - cost
  if room >= 0 then return start + faded(c, v.b, room) - v.now end
  return start + c.period + faded(c, v.a, c.n - cost) - v.now
end

function slidingWindow.refund(s, c, receipt, cost)
  if receipt == LATEST then receipt = s.fresh end
  local start, charged = windowStart(c, s.fresh), windowStart(c, receipt)
  if charged == start then
    s.a = s.a - min(s.a, cost)
  elseif charged == start - c.period then
    s.b = s.b - min(s.b, cost)
  end
  if s.a > 0 then
    s.fresh = start + c.period + faded(c, s.a, 0)
  elseif s.b > 0 then
    s.fresh, s.a, s.b = start + faded(c, s.b, 0), s.b, c.n
  else
    s.fresh = 0
  end
end
