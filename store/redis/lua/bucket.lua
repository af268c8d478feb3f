-- Token and leaky bucket. fresh: when the level is down to nothing. a: the level at the last
-- charge, in parts. b: the N under which the parts were counted.

BUCKET = { read = readHead, write = writeHead, limit = nil, look = nil, charge = nil, wait = nil, prepare = nil }

function BUCKET:limit(_, n, _, capacity, shape, countDenied, rate, p, full)
  return { does = self, n = n, capacity = capacity, shape = shape == 1, countDenied = countDenied == 1, rate = rate, p = p, full = full }
end

function BUCKET.look(c, now, fresh, level, n)
  local at = now
  if now < fresh and n > 0 then
    local drain = c.rate
    local rate, spent = drain, level
    if n ~= c.n then
      c.does:prepare()
      level, rate = c.does.recount(c, level, n)
    end
    local rest = spent % rate
    local last = fresh - (spent - rest) / rate
    if rest > 0 then last = last - 1 end
    if at < last then at = last end
    level = level - (at - last) * drain -- less precise above 2^53, but then it is all
    if level < 0 then level = 0 end
  else
    level = 0
  end
  local p, free = c.p, c.full - level
  return at, fresh, level, c.n, (free - free % p) / p
end

function BUCKET.charge(c, at, _, level, n, units)
  level = level + units * c.p
  local rate = c.rate
  local rest = level % rate
  if rest > 0 then at = at + 1 end
  return at + (level - rest) / rate, level, n
end

function BUCKET.wait(c, _, _, level, _, need)
  local rate, missing = c.rate, need * c.p - (c.full - level)
  local rest = missing % rate
  if rest > 0 then return (missing - rest) / rate + 1 end
  return missing / rate
end

function BUCKET:prepare()
  if self.letGo then return end
  -- partsOf returns the rate and the parts of a unit of what is counted under another N in the same period.
  function self.partsOf(c, n)
    local period = c.p * (c.n / c.rate) -- that of n units
    local divisor, rest = n, period
    while rest ~= 0 do divisor, rest = rest, divisor % rest end
    return n / divisor, period / divisor
  end

  -- recount makes a level that was counted under another N one in parts of this limit, rounded up. It
  -- returns the rate of the other, too.
  function self.recount(c, level, n)
    local rate, p = self.partsOf(c, n)
    if math.floor(level / p) >= math.floor((EXACT - 1) / c.p) then return EXACT - 1, rate end
    return mulDiv(level, c.p, p, true), rate
  end

  function self.delay(c, level) return mulDiv(level, 1, c.rate, true) end

  function self.room(c, at, level)
    local rest = math.min(11 * c.full, EXACT - 1, (EXACT - 1 - at) * c.rate) - level
    return (rest - rest % c.p) / c.p
  end

  function self.refund(c, fresh, spent, n, _, receipt, units)
    if n <= 0 then return fresh, spent, n end
    local level, rate = spent, c.rate
    if n ~= c.n then level, rate = self.recount(c, spent, n) end
    local last = fresh - mulDiv(spent, 1, rate, true)
    local back = math.min(units, math.floor((EXACT - 1) / c.p)) * c.p
    if receipt >= 0 and (receipt < fresh or c.p < c.rate) then
      if c.shape and receipt < fresh then return fresh, spent, n end
      back = math.min(back, math.max(0, math.min(EXACT, math.max(0, receipt - last) * c.rate) - (c.rate - 1)))
    end
    level = level - math.min(level, back)
    return level > 0 and last + mulDiv(level, 1, c.rate, true) or 0, level, c.n
  end

  -- letGo is the state without what has not drained of a hold, if what was there first drains first, and how
  -- much that was. Holds that were reserved later move up by as much.
  function self.letGo(c, fresh, spent, n, receipt, height, since, units)
    if n <= 0 or c.shape and receipt ~= fresh then return fresh, spent, n, 0 end
    local level, rate = spent, c.rate
    if n ~= c.n then level, rate = self.recount(c, spent, n) end
    local part = spent % rate
    local last, back, rest = fresh - (spent - part) / rate, units * c.p, height
    if part > 0 then last = last - 1 end
    if last > since then
      -- So much has left the bucket at most, if its N may have been another.
      local most = (last - since) * c.rate
      if n > c.n then
        local other, p = self.partsOf(c, n)
        other = (last - since) * other
        if other >= EXACT or math.floor(other / p) >= math.floor((EXACT - 1) / c.p) then
          most = EXACT
        else
          most = math.max(most, mulDiv(other, c.p, p, true))
        end
      end
      rest = rest - most
    end
    if back > level then back = level end
    if back > rest then back = rest end
    if back <= 0 then return fresh, spent, n, 0 end
    level = level - back
    if level <= 0 then return 0, level, c.n, back end
    part = level % c.rate
    if part > 0 then last = last + 1 end
    return last + (level - part) / c.rate, level, c.n, back
  end
end
