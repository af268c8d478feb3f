-- What a denied request lacks may only be reserved: the same arithmetic as TellReserved in package weir.
--
-- What open holds of a key would give back is
--
--   missing          units that must come back
--   back, previous   units that would; of a bucket parts, and of a sliding window also those of the window before
--   last             of a bucket: when it was charged last
--   left             how many holds are looked at at most

local RESERVED -- what can be done with it

-- prepareReserved is called before it is needed, which is seldom; a script defines this at each call.
local function prepareReserved()
  if RESERVED then return end
  local reserved, MOST_LOOKS, ANSWER = { lacking = nil, returned = nil, isAll = nil, answer = nil }, 64, 15

  -- lacking is what is missing of a cost that was denied at a time, as look has found it; free is less what
  -- is left for others. It is nil if waiting does not help, or nothing is told of such a limit.
  function reserved.lacking(c, at, fresh, a, b, viewA, viewB, free, cost, leave, retry)
    if retry == NEVER or c.countDenied or c.shape then return nil end
    local r = { c = c, at = at, missing = cost - free, back = 0, previous = 0, last = 0, left = MOST_LOOKS, a = viewA, b = viewB, free = free + leave }
    if c.does == BUCKET then
      if b ~= c.n then return nil end
      r.last = fresh - divUp(a, c.rate)
    end
    return r
  end

  -- returned adds what a hold would give back, and tells whether that is enough.
  function reserved.returned(r, cost, receipt, level, since, n, shape)
    local c, does, at = r.c, r.c.does, r.at
    r.left = r.left - 1
    if does == BUCKET then
      if n ~= c.n or shape then return false end
      local rest = level
      if r.last > since then rest = level - (r.last - since) * c.rate end
      r.back = r.back + math.max(0, math.min(cost * c.p, rest))
      local free = c.full - r.a + math.min(r.a, r.back)
      return (free - free % c.p) / c.p - r.free >= r.missing
    elseif does == SLIDING_WINDOW then
      local period = c.period
      local start, taken = at - at % period, receipt - 1
      taken = taken - taken % period - period
      if taken == start then r.back = r.back + cost elseif taken == start - period then r.previous = r.previous + cost end
      local left = start + period - at
      local faded = mulDiv(r.b, left, period) - mulDiv(math.max(0, r.b - r.previous), left, period)
      return math.min(r.a, r.back) + faded >= r.missing
    end
    if receipt > at then r.back = r.back + cost end
    return math.min(c.n - r.free, r.back) >= r.missing
  end

  -- isAll tells whether the holds on a list would give back what is missing. Those at its end are
  -- the newest.
  function reserved.isAll(r, l, now)
    for place = #l.entries - ENTRY, 0, -ENTRY do
      if r.left == 0 then return false end
      local due, cost, receipt, level, since, n, shape = parse(HELD, l.entries, place + 17)
      if due <= now then cost = 0 end
      if reserved.returned(r, cost, receipt, level, since, n, shape == 1) then return true end
    end
    return false
  end

  -- answer writes a denial of an op that lacks only what is reserved, and returns how long out is then.
  function reserved.answer(out, length, remaining, retry, reset, missing)
    out[length + 1], out[length + 2], out[length + 3], out[length + 4], out[length + 5] = ANSWER, remaining, missing, math.max(0, reset), retry
    return length + 5
  end
  RESERVED = reserved
end
