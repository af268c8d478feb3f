-- fresh: a period after the newest unit. a: units ever recorded. b: how many of the
-- newest may still count. The tail is a ring of times, the unit of rank r at r mod
-- its length.

local base -- a, before the charge

-- What no limiter has written counts as nothing.
local function readableLog() return B[k] <= A[k] and B[k] <= WORDS[k] end

-- unitTime is the time of the unit that has newer others after it.
local function unitTime(newer)
  if newer < a - base then return at end
  return word((a - 1 - newer) % WORDS[k])
end

-- deadUnits is how many of the units that may count do so no more. They are the
-- oldest and, as a rule, few: the first living one is looked for in steps that
-- double, and then by halves.
local function deadUnits()
  local since, dead, alive, step = at - c.period, 0, b, 1
  while dead < alive do
    local probe = min(dead + step, alive) - 1
    if unitTime(b - 1 - probe) > since then
      alive = probe
      break
    end
    dead, step = probe + 1, step * 2
  end
  while dead < alive do
    local middle = floor((dead + alive) / 2)
    if unitTime(b - 1 - middle) > since then alive = middle else dead = middle + 1 end
  end
  return dead
end

--: look
openTail()
a, b, base = 0, 0, 0
if at < old and readableLog() then
  if at < old - c.period then at = old - c.period end
  a, b, base = A[k], B[k], A[k]
else
  old = 0
end
b = b - deadUnits()
free = c.n - b

--: charge
nextFresh, nextA, nextB = at + c.period, a + units, max(b, min(b + units, c.n))

--: wait
wait = unitTime(c.n - cost) + c.period - at

--: tail
-- A ring grows by a quarter, so that a unit costs less than ten bytes.
local taken, from, words = nextFresh - c.period, A[k], WORDS[k]
if FRESH[k] <= taken or not readableLog() then from = 0 end
if nextB > words then
  local longer, moved = max(nextB, min(c.n, words + floor(words / 4) + 4)), {}
  if from > 0 then
    for rank = A[k] - B[k], A[k] - 1 do moved[rank % longer] = word(rank % words) end
  end
  renew(longer, moved)
  words = longer
end
for rank = max(from, nextA - words), nextA - 1 do setWord(rank % words, taken) end
