-- Token and leaky bucket. fresh: when the level is down to nothing. a: the level
-- at the last charge, in parts. b: the N under which the parts were counted.

local bucket = {}

-- recount turns a level that was counted under another N into parts of this
-- limit, rounded up, and returns the old rate too.
local function recount(c, level, under)
  local g = gcd(under, c.period)
  local n, p = under / g, c.period / g
  if div(level, p) >= div(EXACT - 1, c.p) then return n, EXACT - 1 end
  return n, mulDivUp(level, c.p, p)
end

function bucket.look(v)
  local s, c = v.s, v.c
  local level = 0
  if v.now < s.fresh and s.b > 0 then
    local rate = c.rate
    level = s.a
    if s.b ~= c.n then rate, level = recount(c, level, s.b) end
    local last = s.fresh - divUp(s.a, rate)
    v.now = max(v.now, last)
    local elapsed = v.now - last
    if elapsed >= divUp(level, c.rate) then level = 0 else level = level - elapsed * c.rate end
  end
  v.a, v.b = level, c.n
  v.free = max(0, div(c.full - level, c.p))
end

function bucket.charge(v, cost)
  local a = v.a + cost * v.c.p
  return v.now + divUp(a, v.c.rate), a, v.b
end

function bucket.wait(v, cost)
  return divUp(cost * v.c.p - (v.c.full - v.a), v.c.rate)
end

function bucket.delay(v)
  return divUp(v.a, v.c.rate)
end

function bucket.refund(s, c, receipt, cost)
  if s.b <= 0 then return end
  local latest, rate, level = receipt == LATEST, c.rate, s.a
  if s.b ~= c.n then rate, level = recount(c, level, s.b) end
  local last = s.fresh - divUp(s.a, rate)
  local back = min(cost, c.capacity) * c.p
  if not latest and (receipt < s.fresh or c.p < c.rate) then
    if c.shape and receipt < s.fresh then return end
    local left = min(EXACT, max(0, receipt - last) * c.rate) - (c.rate - 1)
    back = min(back, max(0, left))
  end
  level = level - min(level, back)
  s.fresh, s.a, s.b = level > 0 and last + divUp(level, c.rate) or 0, level, c.n
end
