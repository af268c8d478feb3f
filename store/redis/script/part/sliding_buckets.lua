-- fresh: when the newest sub-window stops counting. a: units in the newest one. b:
-- units in the older ones that count when the newest begins. The tail holds the older
-- counts, sub-window i at i mod its length.

local current -- the sub-window of now
local newest -- the sub-window of the last charge; -1 if nothing of it counts

local function stopsCounting(i) return (i + 1) * c.width + c.period - 1 end
local function newestOf(left) return floor((left + 1 - c.period) / c.width) - 1 end
local function oldestAt(t) return floor(max(0, t - c.period + 1) / c.width) end

-- What no limiter has written counts as nothing.
local function readableBuckets() return c.buckets <= WORDS[k] and newestOf(FRESH[k]) >= 0 end

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
openTail()
local width = c.width
current, newest = floor(at / width), -1
a, b = 0, 0
if current * width < old and readableBuckets() then
  newest = newestOf(old)
  if newest >= current then
    if at < newest * width then at = newest * width end
    current = newest
    a, b = A[k], B[k]
  else
    b = B[k] + A[k] - between(oldestAt(newest * width), oldestAt(current * width))
  end
else
  old = 0
end
fresh = stopsCounting(current)
free = c.n - inSubWindows()

--: charge
nextFresh, nextA, nextB = fresh, debt and a + units or max(a, min(a + units, c.n)), b

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
local to = newestOf(nextFresh)
if FRESH[k] <= to * c.width or not readableBuckets() then
  renew(c.buckets, {})
else
  local from, words = newestOf(FRESH[k]), WORDS[k]
  if from ~= to then
    setWord(from % words, A[k])
    for i = from + 1, to - 1 do setWord(i % words, 0) end
  end
end
