-- What a sliding log does; how it is kept is in log.lua and pages.lua.

-- read returns the state of a value, or of what MGET does not find, and the log. It does not ask for a
-- type that may be wrong, for Redis counts errors.
function LOG.read(name, value, _, log)
  local head = 23
  if not log then
    log = { name = name, open = '', added = '', first = 0, stored = 0, lastTime = 0, base = 0 }
  else -- one that is used again
    log.name, log.open, log.added, log.first, log.stored = name, '', '', 0, 0
    if log.hashed or log.pages then
      log.hashed, log.skip, log.next, log.pages, log.directory, log.redirected = nil, nil, nil, nil, nil, nil
    end
  end
  if value == nil then value = call('MGET', name)[1] end
  if not value then
    local kind = call('TYPE', name).ok
    if kind == 'hash' then
      value, log.hashed, head = call('HGET', name, 's'), true, 41
    elseif kind == 'none' then
      return 0, 0, 0, 0, log
    end
    if not value then return nil end
  end
  local size = #value
  if size <= head then
    if size > 0 and string.byte(value) > FORM then return nil end
    return 0, 0, 0, 0, log
  end
  local form, fresh, rank, units, expires = parse('>BI7I4I4I7', value)
  if form > FORM then return nil end
  if form < FORM or (size - head) % 8 ~= 0 then return 0, 0, 0, 0, log end
  if head > 23 then
    preparePages()
    log.first, log.after, log.skip, log.next, log.swept = parse('>I4I4I2I4I4', value, 24)
  else
    log.stored = size
  end
  if fresh > 0 then log.open = string.sub(value, head + 1) end
  return fresh, rank, units, expires, log
end

function LOG.look(c, now, fresh, rank, units, log)
  local at, open, added, period = now, log.open, log.added, c.period
  log.lastTime = fresh - period
  if added ~= '' then
    open = open .. added
    log.open, log.added = open, ''
  end
  if now >= fresh then
    log.base = 0
    return now, fresh, 0, 0, c.n
  end
  log.base = rank
  if at < fresh - period then at = fresh - period end
  local since = at - period + 1
  if log.first > 0 then
    units = PAGES.unitsSince(c, log, rank, units, since)
  elseif #open > 8 and timeAt(c, log, open, 0) < since then
    units = math.min(units, (rankAt(c, open, #open - 8) - rankAt(c, open, search(c, log, open, 8, true, since) - 8)) % c.rate)
  end
  return at, fresh, rank, units, c.n - units
end

function LOG.charge(c, at, _, rank, units, cost, debt)
  local total = units + cost
  if total > c.n and not debt then total = math.max(units, c.n) end
  return at + c.period, (rank + cost) % RANKS, total
end

-- commit removes the entries that do not count, and adds another one, or units to the last.
function LOG.commit(c, log, fresh, rank, units, nextFresh, nextRank, nextUnits)
  local taken, after = nextFresh - c.period, nextRank
  if fresh <= taken then
    log.open, log.first, log.skip = '', 0, 0
  else
    after = (nextRank - rank) % RANKS -- without what is there
    local kept = nextUnits - after
    if kept < units then
      if kept <= 0 then
        log.open, log.first, log.skip = '', 0, 0
      elseif log.first > 0 then
        PAGES.keepUnits(c, log, rank, kept)
      else
        log.open = string.sub(log.open, search(c, log, log.open, 0, false, kept - 1) + 1)
      end
    end
  end
  local open = log.open
  local last = #open - 8
  if last >= 0 then
    after = after + parse('>I4', open, last + 5)
    if fresh == nextFresh then
      log.open = string.sub(open, 1, last)
    elseif last + 8 >= OPEN then
      preparePages()
      PAGES.close(c, log, rank)
    end
  end
  log.added = entryOf(c, taken, after)
end

-- wait is for the newest unit that must not count any more.
function LOG.wait(c, at, _, rank, _, need, log)
  local newer = c.n - need - (rank - log.base) % RANKS
  if newer < 0 then return c.period end
  if log.first > 0 then return PAGES.timeOf(c, log, log.base, newer) + c.period - at end
  local open = log.open
  return timeAt(c, log, open, search(c, log, open, 0, false, newer)) + c.period - at
end

function LOG:prepare()
  if LOG.refund then return end
  -- shifted adds to the ranks in a text from a byte to another, the latter excluded: of entries, or of
  -- a directory.
  function LOG.shifted(text, from, to, by, modulus)
    if by % modulus == 0 or from >= to then return text end
    local parts = { string.sub(text, 1, from) }
    while from < to do
      local n = math.min(32, (to - from) / 8)
      local form = '>' .. ('I4I4'):rep(n)
      local words = { parse(form, text, from + 1) }
      for i = 2, 2 * n, 2 do
        local rank = words[i] % modulus
        words[i] = words[i] - rank + (rank + by) % modulus
      end
      parts[#parts + 1] = pack(form, unpack(words, 1, 2 * n))
      from = from + 8 * n
    end
    parts[#parts + 1] = string.sub(text, to + 1)
    return table.concat(parts)
  end

  -- parted takes units out between the ranks before a byte and those from it on: it lowers these or
  -- raises those, whichever are fewer, for only differences count. It returns by how much the ranks
  -- after the text are lower.
  function LOG.parted(text, i, units, modulus)
    if i < #text / 2 then return LOG.shifted(text, 0, i, units, modulus), 0 end
    return LOG.shifted(text, i, #text, -units, modulus), units
  end

  function LOG.room(c, _, _, units) return math.min(11 * c.n, c.rate - 1) - units end

  -- refundEntry takes units out of the entry of a time in a log without pages. The ranks change of the
  -- fewer entries: those before it, or those after.
  local function refundEntry(c, log, fresh, rank, units, taken, cost)
    local open = log.open
    local i, last, isThere = 0, #open - 8, taken == log.lastTime
    if isThere then
      i = last
    else
      if last > 8 then i = search(c, log, open, 0, true, taken) end
      isThere = timeAt(c, log, open, i) == taken
    end
    local at, newer, has = rankAt(c, open, i), 0, units
    if i < last then newer = (rankAt(c, open, last) - at) % c.rate end
    if i > 0 then has = math.min(has, (at - rankAt(c, open, i - 8)) % c.rate + newer) end
    has = has - newer
    local back = math.min(cost, has)
    if not isThere or back <= 0 then return fresh, rank, units end
    if back == has then
      open = string.sub(open, 1, i) .. string.sub(open, i + 9)
      if last == 0 then
        fresh = 0
      elseif i == last then
        fresh = timeAt(c, log, open, i - 8) + c.period
      end
    end
    log.open = LOG.parted(open, i, back, c.rate)
    return fresh, (rank - back) % RANKS, units - back
  end

  function LOG.refund(c, fresh, rank, units, log, receipt, cost)
    log.lastTime = fresh - c.period
    if log.added ~= '' then log.open, log.added = log.open .. log.added, '' end
    local taken, open = receipt - c.period, log.open
    if cost >= units and (receipt < 0 or receipt == fresh and #open == 8 and log.first == 0) then -- all there is
      fresh, units = 0, 0
    elseif receipt < 0 and log.first > 0 then
      fresh, rank, units = PAGES.refundNewest(c, log, rank, units, cost)
    elseif receipt < 0 then
      local i = search(c, log, open, 0, false, cost)
      local newest = timeAt(c, log, open, i)
      log.open, log.added = string.sub(open, 1, i), entryOf(c, newest, rankAt(c, open, #open - 8) - cost)
      fresh, rank, units = newest + c.period, (rank - cost) % RANKS, units - cost
    elseif taken <= log.lastTime and log.first > 0 then
      fresh, rank, units = PAGES.refund(c, log, fresh, rank, units, taken, cost)
    elseif taken <= log.lastTime and #open > 0 then
      fresh, rank, units = refundEntry(c, log, fresh, rank, units, taken, cost)
    end
    if units == 0 then fresh = 0 end
    if fresh == 0 then log.open, log.first, log.skip = '', 0, 0 end
    return fresh, rank, units
  end
end

-- write writes a log without pages as a string, whatever it was. If it is as long as it was, it is
-- written in place. Of one that is as good as new the value stays until it expires: a place in
-- flight that is given back will be taken again.
function LOG.write(now, keep, name, fresh, rank, units, before, log)
  local stored, expires = log.stored, before
  if fresh > 0 and log.first > 0 then
    if log.added ~= '' then log.open, log.added = log.open .. log.added, '' end
    PAGES.save(now, keep, log, fresh, rank, units, before)
    return
  end
  if log.hashed then call('UNLINK', name) end
  if fresh <= 0 then
    if stored > 0 then call('SETRANGE', name, '0', ' \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0') end -- the form, and zeros
    return
  end
  if stored == 0 or fresh > before then expires = expiry(now, fresh) end
  local value = pack('>BI7I4I4I7', FORM, fresh, rank, units, expires) .. log.open .. log.added
  if stored == 0 or expires ~= before then
    call('PSETEX', name, ttl(now, keep, expires), value)
  elseif #value == stored then
    call('SETRANGE', name, '0', value)
  else
    call('SET', name, value, 'KEEPTTL')
  end
end
