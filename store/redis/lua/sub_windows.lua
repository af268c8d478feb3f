-- Sliding buckets. fresh: when the newest sub-window stops counting. a: units in the newest one. b: units in the older ones
-- that count when the newest begins. Behind the state is a tail with the older counts, sub-window i at i mod its length.
--
-- Of a key there is besides the state
--
--   words            how many counts the tail has
--   text             the value, if all of it was read
--   known, changed   counts that were read, or have changed, and which have; nil if there are none
--   isNew            whether all others are 0, whatever is in Redis
--   current, newest  the sub-window of the time that is looked at, and that of the last charge; -1 if nothing of it counts

local WORD = 7 -- bytes
local MOST = 64 -- words that are read at once otherwise

SUB_WINDOWS = { read = nil, write = nil, limit = nil, look = nil, charge = nil, commit = nil, wait = nil, prepare = nil }

function SUB_WINDOWS:limit(_, n, period, capacity, _, countDenied, _, _, _, width, buckets)
  return { does = self, n = n, period = period, capacity = capacity, countDenied = countDenied == 1, width = width, buckets = buckets }
end

-- read returns what readHead does, and the rest: another tail, which is used again, if there is one. A
-- tail that is long is read as it is asked for.
function SUB_WINDOWS.read(name, value, c, tail)
  local isLong = not value and c.buckets > FEW
  if isLong then
    value = try('GETRANGE', name, '0', '27')
  elseif not value then
    value = try('GET', name) or ''
  end
  if type(value) == 'table' then return nil end
  local fresh, a, b, expires = readHead(name, value)
  if not fresh then return nil end
  local words = 0
  if fresh > 0 then
    words = isLong and call('STRLEN', name) or #value
    words = (words - HEAD - words % WORD) / WORD -- HEAD is four words
  end
  if tail then
    tail.name, tail.words, tail.text, tail.known, tail.isNew = name, words, value, nil, nil
  else
    tail = { name = name, words = words, text = value, newest = -1, current = 0, used = 0 }
  end
  if isLong then tail.text, tail.ahead = nil, 1 end
  return fresh, a, b, expires, tail
end

-- word returns a count of the tail. Of a long one more are read at a time the more are asked for.
local function word(tail, i)
  local known = tail.known
  local count = known and known[i]
  if count then return count end
  if tail.isNew then return 0 end
  local from = HEAD + i * WORD
  if tail.text then return (parse('>I7', tail.text, from + 1)) end
  local n = math.min(tail.ahead, tail.words - i)
  local text = call('GETRANGE', tail.name, from, from + n * WORD - 1)
  if not known then
    known = {}
    tail.known, tail.changed = known, {}
  end
  for j = 0, n - 1 do
    if not known[i + j] then known[i + j] = parse('>I7', text, j * WORD + 1) end
  end
  tail.ahead = math.min(2 * tail.ahead, MOST)
  return known[i]
end

local function setWord(tail, i, count)
  if not tail.known then tail.known, tail.changed = {}, {} end
  tail.known[i], tail.changed[i] = count, true
end

-- renew gives a key another tail, whatever is in Redis.
local function renew(tail, words) tail.words, tail.known, tail.isNew = words, nil, true end

local function stopsCounting(c, i) return (i + 1) * c.width + c.period - 1 end

-- newestOf is the sub-window of the charge that left so much to go.
local function newestOf(c, fresh)
  local counts, width = fresh + 1 - c.period, c.width
  return (counts - counts % width) / width - 1
end

-- oldestAt is the first sub-window that counts at a time.
local function oldestAt(c, time)
  local from, width = time - c.period + 1, c.width
  if from < 0 then return 0 end
  return (from - from % width) / width
end

-- between adds up the sub-windows from one to another, the latter excluded; used is the count of the newest.
local function between(tail, used, from, to)
  local sum, newest, words = 0, tail.newest, tail.words
  for i = from, math.min(to, newest) - 1 do sum = sum + word(tail, i % words) end
  if from <= newest and newest < to then sum = sum + used end
  return sum
end

-- What no limiter has written counts as nothing.
function SUB_WINDOWS.look(c, now, fresh, used, older, tail)
  local width, period, at, a, b, newest = c.width, c.period, now, 0, 0, -1
  local current = (at - at % width) / width
  if current * width < fresh and c.buckets <= tail.words then newest = newestOf(c, fresh) end
  tail.newest = newest
  tail.used = used
  local free = c.n
  if newest >= 0 then
    if newest >= current then
      current = newest
      if at < current * width then at = current * width end
      a = used
      b = older
    else
      b = older + used - between(tail, used, oldestAt(c, newest * width), oldestAt(c, current * width))
    end
    free = free - a - b
    local since = at - period + 1
    if since >= width and since - since % width > current * width - period + 1 then -- some count no more that did when the current one began
      free = free + between(tail, used, oldestAt(c, current * width), oldestAt(c, at))
    end
  end
  tail.current = current
  return at, (current + 1) * width + period - 1, a, b, free
end

-- inAll is all that counts; the charge, if there was one, included.
local function inAll(c, at, a, b, tail)
  if tail.newest < 0 then return a + b end
  return a + b - between(tail, tail.used, oldestAt(c, tail.current * c.width), oldestAt(c, at))
end

function SUB_WINDOWS.wait(c, at, fresh, a, b, need, tail)
  local all, i, newest = inAll(c, at, a, b, tail), oldestAt(c, at), tail.newest
  local missing, older = need + all - c.n, all - a
  if newest < tail.current then older = older - tail.used end
  if i < newest and missing > older then i, missing = newest, missing - older end -- as after a burst: those before it are too few
  while i < newest do
    missing = missing - word(tail, i % tail.words)
    if missing <= 0 then return stopsCounting(c, i) - at end
    i = i + 1
  end
  if newest >= 0 then missing = missing - between(tail, tail.used, i, newest + 1) end
  if missing <= 0 then return stopsCounting(c, newest) - at end
  return fresh - at
end

function SUB_WINDOWS:prepare()
  if SUB_WINDOWS.refund then return end
  function SUB_WINDOWS.room(c, at, a, b, tail)
    return math.min(11 * c.n, EXACT - 1 - c.buckets * c.n) - inAll(c, at, a, b, tail)
  end

  function SUB_WINDOWS.refund(c, fresh, a, b, tail, receipt, units)
    local words, latest = tail.words, newestOf(c, fresh)
    if c.buckets > words or latest < 0 then return fresh, a, b end
    if receipt < 0 then receipt = fresh end
    local i, oldest = newestOf(c, receipt), oldestAt(c, latest * c.width)
    if i == latest then
      a = a - math.min(a, units)
    elseif oldest <= i and i < latest then
      local count = word(tail, i % words)
      local back = math.min(count, units, b)
      setWord(tail, i % words, count - back)
      b = b - back
    end
    if a > 0 then return fresh, a, b end
    for j = latest - 1, oldest, -1 do
      local count = word(tail, j % words)
      if count > 0 then
        setWord(tail, j % words, 0)
        for l = oldestAt(c, j * c.width), oldest - 1 do setWord(tail, l % words, 0) end
        return stopsCounting(c, j), count, math.max(0, b - count)
      end
    end
    return 0, a, b
  end
end

function SUB_WINDOWS.charge(c, _, fresh, a, b, units, debt)
  local total = a + units
  if total > c.n and not debt then total = math.max(a, c.n) end
  return fresh, total, b
end

-- commit moves the newest count to the tail, and clears the sub-windows without requests.
function SUB_WINDOWS.commit(c, tail, fresh, used, _, nextFresh)
  if fresh == nextFresh and c.buckets <= tail.words then return end -- it is the newest still
  local words, from, to = tail.words, newestOf(c, fresh), newestOf(c, nextFresh)
  if from < 0 or c.buckets > words or fresh <= to * c.width then
    renew(tail, c.buckets)
  elseif from ~= to then
    setWord(tail, from % words, used)
    for i = from + 1, to - 1 do setWord(tail, i % words, 0) end
  end
end

-- write writes the state and of the tail what has changed; words that follow one another together.
function SUB_WINDOWS.write(now, keep, name, fresh, a, b, before, tail)
  if fresh <= 0 then
    call('UNLINK', name)
    return
  end
  if tail.isNew then
    local expires = before
    if fresh > before then expires = expiry(now, fresh) end
    local parts = { pack('>I7I7I7I7', fresh, a, b, expires) }
    for i = 0, tail.words - 1 do parts[i + 2] = pack('>I7', word(tail, i)) end
    call('PSETEX', name, ttl(now, keep, expires), table.concat(parts))
    return
  end
  if tail.known then
    local changed, run = {}, {}
    for i in pairs(tail.changed) do changed[#changed + 1] = i end
    table.sort(changed)
    for j, i in ipairs(changed) do
      run[#run + 1] = pack('>I7', tail.known[i])
      if changed[j + 1] ~= i + 1 then
        call('SETRANGE', name, string.format('%d', HEAD + (i + 1 - #run) * WORD), table.concat(run))
        run = {}
      end
    end
  end
  writeHead(now, keep, name, fresh, a, b, before)
end
