-- fresh: a period after the newest unit. a: the rank of the next unit. b: how many of the
-- newest units may still count.

local base -- a, before the charge

--: look
--> enterLog
a = 0
b = 0
if at < old then
  if at < lastTime then at = lastTime end
  a = A[k]
  b = B[k]
  local since, open = at - c.period + 1, log.open
  if log.first > 0 then
    b = pages().unitsSince(since)
  elseif #open > 8 and timeAt(open, 0) < since then
    b = min(b, (rankAt(open, #open - 8) - rankAt(open, find(open, 8, true, since) - 8)) % ranks)
  end
else
  old = 0
end
base = a
free = c.n - b

--: charge
nextFresh = at + c.period
nextA = (a + units) % RANKS
nextB = b + units
if nextB > c.n and not debt then nextB = max(b, c.n) end

--: room
units = min(11 * c.n, ranks - 1) - b

--: wait
-- For the newest unit that must not count any more.
local newer = c.n - need - (a - base) % RANKS
wait = c.period
if newer >= 0 and log.first > 0 then
  wait = pages().timeOf(newer) + wait - at
elseif newer >= 0 then
  wait = timeAt(log.open, find(log.open, 0, false, newer)) + wait - at
end

--: tail
-- Entries go that do not count, and there is another one, or the last has more units.
--> enterLog
local taken, after = nextFresh - c.period, nextA
if FRESH[k] <= taken then
  --> clearLog
else
  after = (nextA - A[k]) % RANKS -- without what is there
  local kept = nextB - after
  if kept >= B[k] then
  elseif kept <= 0 then
    --> clearLog
  elseif log.first > 0 then
    pages().keepUnits(kept)
  else
    log.open = sub(log.open, find(log.open, 0, false, kept - 1) + 1)
  end
end
local last = #log.open - 8
if last >= 0 then
  after = after + unpack('>I4', log.open, last + 5)
  if lastTime == taken then
    log.open = sub(log.open, 1, last)
  elseif last + 8 >= OPEN then
    pages().close()
    log.open = ''
  end
end
--> addEntry
