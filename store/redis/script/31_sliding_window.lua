-- fresh: when a, as the previous count, weighs less than one unit. a: units in
-- the current window. b: units in the previous one.

local slidingWindow = {}

-- faded is how far into a window the previous count weighs at most room.
local function faded(c, count, room)
  return c.period - (mulDivUp(room + 1, c.period, count) - 1)
end

function slidingWindow.look(v)
  local s, c = v.s, v.c
  local period = c.period
  v.a, v.b = 0, 0
  if s.fresh > 0 then
    local start = div(s.fresh - 1, period) * period - period
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
