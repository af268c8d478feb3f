-- fresh: a period after the newest unit. a: the rank of the next unit. b: how many of the
-- newest units may still count.

local base -- a, before the charge

--: look
enterLog()
a, b = 0, 0
if at < old then
  if at < lastTime then at = lastTime end
  a, b = A[k], unitsSince(at - c.period + 1)
else
  old = 0
end
base = a
free = c.n - b

--: charge
nextFresh, nextA, nextB = at + c.period, (a + units) % RANKS, debt and b + units or max(b, min(b + units, c.n))

--: room
units = min(11 * c.n, ranks - 1) - b

--: wait
local newer = c.n - need - (a - base) % RANKS
wait = c.period
if newer >= 0 then wait = timeOf(newer) + wait - at end

--: tail
enterLog()
local taken, added = nextFresh - c.period, nextA
if FRESH[k] <= taken then
  clearLog()
else
  added = (nextA - A[k]) % RANKS
  if nextB - added < B[k] then keepUnits(nextB - added) end
end
addUnits(taken, added)
