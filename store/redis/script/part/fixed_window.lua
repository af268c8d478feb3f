-- fresh: the end of the window. a: units in it.

--: look
if at < old then
  fresh, a = old, A[k]
elseif c.period > 0 then
  fresh, a = at - at % c.period + c.period, 0
else -- of the calendar: where the period before ends, the present one and the next
  fresh, a = at < c.p and c.p or at < c.full and c.full or c.width, 0
end
free = c.n - a

--: charge
nextFresh, nextA, nextB = fresh, debt and a + units or max(a, min(a + units, MAX_UNITS)), 0

--: room
units = min(11 * c.n, EXACT / 2) - a

--: wait
wait = fresh - at
