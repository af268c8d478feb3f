-- fresh: when the newest sub-window stops counting. a: units in the newest one.
-- b: units in the older ones that count when the newest begins. The tail holds
-- the older counts, sub-window i at i mod words.

local slidingBuckets = {}

local function stopsCounting(c, i) return (i + 1) * c.width + c.period - 1 end
local function newestOf(c, fresh) return div(fresh + 1 - c.period, c.width) - 1 end
local function oldestAt(c, now) return div(max(0, now - c.period + 1), c.width) end

-- What no limiter has written counts as nothing.
local function readableBuckets(s, c) return c.buckets <= s.words and newestOf(c, s.fresh) >= 0 end

-- between adds up the sub-windows from one to another, the latter excluded.
local function between(v, from, to)
  if not v.known then return 0 end
  local newest, sum = v.newest, 0
  for i = from, min(to, newest) - 1 do sum = sum + word(v.s, i % v.s.words) end
  if from <= newest and newest < to then sum = sum + v.s.a end
  return sum
end

local function inSubWindows(v)
  local begin = v.current * v.c.width
  return v.a + v.b - between(v, oldestAt(v.c, begin), oldestAt(v.c, v.now))
end

function slidingBuckets.look(v)
  local s, c = v.s, v.c
  openTail(s)
  local current = div(v.now, c.width)
  v.a, v.b = 0, 0
  v.newest = newestOf(c, s.fresh)
  v.known = current * c.width < s.fresh and readableBuckets(s, c)
  if v.known then
    if v.newest >= current then
      v.now = max(v.now, v.newest * c.width)
      current = v.newest
      v.a, v.b = s.a, s.b
    else
      v.b = s.b + s.a - between(v, oldestAt(c, v.newest * c.width), oldestAt(c, current * c.width))
    end
  end
  v.current = current
  v.free = c.n - inSubWindows(v)
end

function slidingBuckets.charge(v, cost)
  return stopsCounting(v.c, v.current), max(v.a, min(v.a + cost, v.c.n)), v.b
end

function slidingBuckets.wait(v, cost)
  local c = v.c
  local missing = cost + inSubWindows(v) - c.n
  local i, newest = oldestAt(c, v.now), v.known and v.newest or -1
  while i < newest do
    missing = missing - word(v.s, i % v.s.words)
    if missing <= 0 then return stopsCounting(c, i) - v.now end
    i = i + 1
  end
  missing = missing - between(v, i, newest + 1)
  if missing <= 0 then return stopsCounting(c, newest) - v.now end
  return stopsCounting(c, v.current) - v.now
end

function slidingBuckets.commit(s, c, fresh)
  local current = newestOf(c, fresh)
  if s.fresh <= current * c.width or not readableBuckets(s, c) then
    resize(s, c.buckets)
    s.tail = {}
    return
  end
  local newest = newestOf(c, s.fresh)
  if newest == current then return end
  setWord(s, newest % s.words, s.a)
  for i = newest + 1, current - 1 do setWord(s, i % s.words, 0) end
end

function slidingBuckets.refund(s, c, receipt, cost)
  if not readableBuckets(s, c) then return end
  if receipt == LATEST then receipt = s.fresh end
  local newest, i = newestOf(c, s.fresh), newestOf(c, receipt)
  local oldest = oldestAt(c, newest * c.width)
  if i == newest then
    s.a = s.a - min(s.a, cost)
  elseif oldest <= i and i < newest then
    local count = word(s, i % s.words)
    local back = min(count, cost, s.b)
    setWord(s, i % s.words, count - back)
    s.b = s.b - back
  end
  if s.a > 0 then return end
  for j = newest - 1, oldest, -1 do
    local count = word(s, j % s.words)
    if count > 0 then
      setWord(s, j % s.words, 0)
      for k = oldestAt(c, j * c.width), oldest - 1 do setWord(s, k % s.words, 0) end
      s.fresh, s.a, s.b = stopsCounting(c, j), count, max(0, s.b - count)
      return
    end
  end
  s.fresh = 0
end
