-- fresh: the end of the window. a: units in it.

--: look
local period = c.period
if at < old then
  fresh, a = old, A[k]
  if at < old - period then at = old - period end
else
  fresh, a = at - at % period + period, 0
end
free = c.n - a

--: charge
nextFresh, nextA, nextB = fresh, debt and a + units or max(a, min(a + units, MAX_UNITS)), 0

--: room
units = min(11 * c.n, EXACT / 2) - a

--: wait
wait = fresh - at
