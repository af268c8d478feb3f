-- fresh: the end of the window. a: units in it.

local fixedWindow = {}

function fixedWindow.look(v)
  local s, c = v.s, v.c
  if v.now < s.fresh then
    v.fresh, v.a = s.fresh, s.a
    v.now = max(v.now, s.fresh - c.period)
  else
    v.fresh, v.a = v.now - v.now % c.period + c.period, 0
  end
  v.free = c.n - v.a
end

function fixedWindow.charge(v, cost)
  return v.fresh, min(v.a + cost, MAX_UNITS), 0
end

function fixedWindow.wait(v)
  return v.fresh - v.now
end

function fixedWindow.refund(s, c, receipt, cost)
  if receipt == s.fresh or receipt == LATEST then s.a = s.a - min(s.a, cost) end
  if s.a == 0 then s.fresh = 0 end
end
