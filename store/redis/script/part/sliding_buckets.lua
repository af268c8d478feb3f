-- fresh: when the newest sub-window stops counting. a: units in the newest one. b:
-- units in the older ones that count when the newest begins. The tail holds the older
-- counts, sub-window i at i mod its length.

local current -- the sub-window of now
local newest -- the sub-window of the last charge; -1 if nothing of it counts

local function stopsCounting(i) return (i + 1) * c.width + c.period - 1 end
local function oldestAt(t) return floor(max(0, t - c.period + 1) / c.width) end

-- between adds up the sub-windows from one to another, the latter excluded.
local function between(from, to)
  local sum, words = 0, WORDS[k]
  for i = from, min(to, newest) - 1 do sum = sum + word(i % words) end
  if from <= newest and newest < to then sum = sum + A[k] end
  return sum
end

local function inSubWindows()
  if newest < 0 then return a + b end
  return a + b - between(oldestAt(current * c.width), oldestAt(at))
end

--: look
-- The functions above are written out, because every request comes here. What no limiter has
-- written counts as nothing.
--> openTail
local width, before = c.width, c.period - 1
current = (at - at % width) / width
newest = -1
a = 0
b = 0
if current * width < old and c.buckets <= WORDS[k] then
  local counts = old - before
  newest = (counts - counts % width) / width - 1
end
if newest < 0 then
  old = 0
elseif newest >= current then
  if at < newest * width then at = newest * width end
  current = newest
  a = A[k]
  b = B[k]
else
  b = B[k] + A[k] - between(oldestAt(newest * width), oldestAt(current * width))
end
fresh = (current + 1) * width + before
free = c.n - a - b
if newest >= 0 then
  local from, to = current * width - before, at - before
  if from < 0 then from = 0 end
  if to < 0 then to = 0 end
  from = (from - from % width) / width
  to = (to - to % width) / width
  if from < to then free = free + between(from, to) end
end

--: charge
nextFresh = fresh
nextA = a + units
nextB = b
if nextA > c.n and not debt then nextA = max(a, c.n) end

--: room
units = min(11 * c.n, EXACT - 1 - c.buckets * c.n) - inSubWindows()

--: wait
local missing, i, words = need + inSubWindows() - c.n, oldestAt(at), WORDS[k]
wait = nil
while not wait and i < newest do
  missing = missing - word(i % words)
  if missing <= 0 then wait = stopsCounting(i) - at end
  i = i + 1
end
if not wait then
  if newest >= 0 then missing = missing - between(i, newest + 1) end
  if missing <= 0 then wait = stopsCounting(newest) - at else wait = fresh - at end
end

--: tail
local width, before, words = c.width, c.period - 1, WORDS[k]
local to, from = nextFresh - before, FRESH[k] - before
to = (to - to % width) / width - 1
from = (from - from % width) / width - 1
if from < 0 or c.buckets > words or FRESH[k] <= to * width then
  renew(c.buckets, {})
elseif from ~= to then
  setWord(from % words, A[k])
  for i = from + 1, to - 1 do setWord(i % words, 0) end
end
