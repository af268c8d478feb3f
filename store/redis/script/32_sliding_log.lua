-- fresh: a period after the newest unit. a: units ever recorded. b: how many of
-- the newest may still count. The tail is a ring of times, the unit of rank r at
-- r mod words.

local slidingLog = {}

-- What no limiter has written counts as nothing.
local function readableLog(s) return s.b <= s.a and s.b <= s.words end

-- unitTime is the time of the unit that has newer others after it.
local function unitTime(v, newer)
  if newer < v.a - v.base then return v.now end
  return word(v.s, (v.a - 1 - newer) % v.s.words)
end

-- deadUnits is how many of the units that may count do so no more. They are the
-- oldest and, as a rule, few: the first living one is looked for in steps that
-- double, and then by halves.
local function deadUnits(v)
  local since, dead, alive, step = v.now - v.c.period, 0, v.b, 1
  while dead < alive do
    local probe = min(dead + step, alive) - 1
    if unitTime(v, v.b - 1 - probe) > since then
      alive = probe
      break
    end
    dead, step = probe + 1, step * 2
  end
  while dead < alive do
    local middle = div(dead + alive, 2)
    if unitTime(v, v.b - 1 - middle) > since then alive = middle else dead = middle + 1 end
  end
  return dead
end

function slidingLog.look(v)
  local s, c = v.s, v.c
  openTail(s)
  v.a, v.b, v.base = 0, 0, 0
  if v.now < s.fresh and readableLog(s) then
    v.now = max(v.now, s.fresh - c.period)
    v.a, v.b, v.base = s.a, s.b, s.a
  end
  v.b = v.b - deadUnits(v)
  v.free = c.n - v.b
end

function slidingLog.charge(v, cost)
  return v.now + v.c.period, v.a + cost, max(v.b, min(v.b + cost, v.c.n))
end

function slidingLog.wait(v, cost)
  return unitTime(v, v.c.n - cost) + v.c.period - v.now
end

-- A ring grows by a quarter, so that a unit costs less than ten bytes.
function slidingLog.commit(s, c, fresh, a, b)
  local now, from = fresh - c.period, s.a
  if s.fresh <= now or not readableLog(s) then from = 0 end
  if b > s.words then
    local words = max(b, min(c.n, s.words + div(s.words, 4) + 4))
    local moved = {}
    for rank = max(0, s.a - s.b), s.a - 1 do
      if from > 0 then moved[rank % words] = word(s, rank % s.words) end
    end
    resize(s, words)
    s.tail = moved
  end
  for rank = max(from, a - s.words), a - 1 do setWord(s, rank % s.words, now) end
end

function slidingLog.refund(s, c, receipt, cost)
  if not readableLog(s) then return end
  local latest, taken = receipt == LATEST, receipt - c.period
  local oldest, last = s.a - s.b, s.a
  while not latest and last > oldest and word(s, (last - 1) % s.words) > taken do last = last - 1 end
  local from = last
  while from > oldest and last - from < cost and (latest or word(s, (from - 1) % s.words) == taken) do from = from - 1 end
  for rank = last, s.a - 1 do setWord(s, (rank - last + from) % s.words, word(s, rank % s.words)) end
  s.a, s.b = s.a - (last - from), s.b - (last - from)
  s.fresh = s.b > 0 and word(s, (s.a - 1) % s.words) + c.period or 0
end
