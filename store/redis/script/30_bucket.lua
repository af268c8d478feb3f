-- Token and leaky bucket. fresh: when the level is down to nothing. a: the level at
-- the last charge, in parts. b: the N under which the parts were counted.

-- recount turns a level that was counted under another N into parts of this limit,
-- rounded up, and returns the old rate too.
local function recount(level, under)
  local _, mulDivUp, gcd = wide()
  local g = gcd(under, c.period)
  local n, p = under / g, c.period / g
  if floor(level / p) >= floor((EXACT - 1) / c.p) then return n, EXACT - 1 end
  return n, mulDivUp(level, c.p, p)
end

local function lookBucket()
  local level, rate = 0, c.rate
  if at < old and B[k] > 0 then
    level = A[k]
    local n = rate
    if B[k] ~= c.n then n, level = recount(level, B[k]) end
    local last = old - divUp(A[k], n)
    if at < last then at = last end
    local drained = (at - last) * rate -- less precise above 2^53, but then it is all
    if drained >= level then level = 0 else level = level - drained end
  end
  a, b = level, c.n
  free = floor((c.full - level) / c.p)
end

local function chargeBucket(cost)
  local level = a + cost * c.p
  return at + divUp(level, c.rate), level, b
end

local function waitBucket(cost) return divUp(cost * c.p - (c.full - a), c.rate) end
local function delayBucket() return divUp(a, c.rate) end

ALGORITHM[0] = { look = lookBucket, charge = chargeBucket, wait = waitBucket, delay = delayBucket }
ALGORITHM[1] = ALGORITHM[0]
