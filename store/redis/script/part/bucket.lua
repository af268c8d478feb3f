-- Token and leaky bucket. fresh: when the level is down to nothing. a: the level at
-- the last charge, in parts. b: the N under which the parts were counted.

--: look
local level, rate = 0, c.rate
if at < old and B[k] > 0 then
  level = A[k]
  local n, spent = rate, level
  if B[k] ~= c.n then
    --> recount
  end
  local rest = spent % n
  local last = (spent - rest) / n
  if rest > 0 then last = last + 1 end
  last = old - last
  if at < last then at = last end
  local drained = (at - last) * rate -- less precise above 2^53, but then it is all
  if drained >= level then level = 0 else level = level - drained end
end
a = level
b = c.n
local room = c.full - level
free = (room - room % c.p) / c.p

--: charge
local rate = c.rate
nextA = a + units * c.p
nextB = b
local rest = nextA % rate
nextFresh = (nextA - rest) / rate + at
if rest > 0 then nextFresh = nextFresh + 1 end

--: room
local rest = min(11 * c.full, EXACT - 1, (EXACT - 1 - at) * c.rate) - a
units = (rest - rest % c.p) / c.p

--: wait
wait = divUp(need * c.p - (c.full - a), c.rate)

--: hold
hold = divUp(a, c.rate)
