-- fresh: the end of the window. a: units in it.

--: look
if at < old then
  fresh = old
  a = A[k]
elseif c.period > 0 then
  fresh, a = at - at % c.period + c.period, 0
else -- of the calendar: where the period before ends, the present one and the next
  fresh, a = at < c.p and c.p or at < c.full and c.full or c.width, 0
end
free = c.n - a

--: charge
nextFresh = fresh
nextA = a + units
nextB = 0
if nextA > MAX_UNITS and not debt then nextA = max(a, MAX_UNITS) end

--: room
units = min(11 * c.n, EXACT / 2) - a

--: wait
wait = fresh - at
