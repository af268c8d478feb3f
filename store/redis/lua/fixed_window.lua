-- Fixed window. fresh: the end of the window. a: units in it.

FIXED_WINDOW = { read = readHead, write = writeHead, limit = nil, look = nil, charge = nil, wait = nil, room = roomOfWindow, prepare = nil }

function FIXED_WINDOW:limit(_, n, period, capacity, _, countDenied, _, p, full, width)
  return { does = self, n = n, period = period, capacity = capacity, countDenied = countDenied == 1, p = p, full = full, width = width }
end

function FIXED_WINDOW.look(c, now, fresh, used)
  if now >= fresh then
    used = 0
    if c.period > 0 then
      fresh = now - now % c.period + c.period
    else -- of the calendar: where the period before ends, the present one and the next
      fresh = now < c.p and c.p or now < c.full and c.full or c.width
    end
  end
  return now, fresh, used, 0, c.n - used
end

function FIXED_WINDOW.charge(_, _, fresh, used, _, units, debt) return fresh, added(used, units, debt), 0 end

function FIXED_WINDOW.wait(_, at, fresh) return fresh - at end

function FIXED_WINDOW:prepare()
  if self.refund then return end
  function self.refund(_, fresh, used, b, _, receipt, units)
    if receipt == fresh or receipt < 0 then used = used > units and used - units or 0 end
    return used > 0 and fresh or 0, used, b
  end
end
