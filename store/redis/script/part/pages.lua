-- The pages of a large sliding log. Each is a field of the hash, named by its number in
-- four bytes. The field 'd' is the directory: for each page, oldest first, its number and
-- the rank after its last unit. So nothing that a call reads or writes is longer than a
-- page or the directory, which grow with the square root of the log.
--
-- Between the ranks of two entries of a page there is what was taken in between, but pages
-- need not agree where to begin: what is given back changes ranks in its own page and in
-- the directory.
--
-- Beside what it has without pages, a log has
--
--   first, after   of the oldest page the number, and the rank after it; first is 0 if there is none
--   skip           bytes at the beginning of that page that do not count any more
--   next           the number of the next page
--   swept          the number of the oldest page that was not deleted
--   directory, pages              as far as they have been read
--   redirected, written, removed  what of these has changed, or is to be deleted

local PAGE = 3840 -- bytes
local SWEEP = 32 -- pages that are deleted in a call
local allPages

--: makePages
-- Functions cost time already when they are made, so these are made on demand.
pages = function()
  if allPages then
    allPages.enter()
    return allPages
  end
  local P = {}

  function P.enter()
    if log.pages then return end
    log.pages, log.written, log.removed = {}, {}, {}
    if log.first == 0 then
      log.directory, log.skip = '', 0
      if not log.next then log.next, log.swept, log.expires = 1, 1, 0 end
    end
  end

  local function directory()
    if not log.directory then log.directory = call('HGET', KEYS[k], 'd') or '' end
    return log.directory
  end

  -- count does without the directory if there are no pages.
  local function count()
    if log.first == 0 then return 0 end
    return #directory() / 8
  end

  -- numberOf and after are what the directory says of the p-th page.
  local function numberOf(p)
    if p == 1 then return log.first end
    return (unpack('>I4', directory(), 8 * p - 7))
  end
  local function after(p)
    if p == 1 then return log.after end
    return (unpack('>I4', directory(), 8 * p - 3))
  end

  local function setDirectory(text)
    log.directory, log.redirected = text, true
    if text == '' then log.first, log.skip = 0, 0 else log.first, log.after = unpack('>I4I4', text) end
  end

  local function read(number)
    local text = log.pages[number]
    if not text then
      text = call('HGET', KEYS[k], pack('>I4', number))
      if not text or #text == 0 or #text % 8 ~= 0 then text = '\0\0\0\0\0\0\0\0' end -- which nobody has written
      log.pages[number] = text
    end
    return text
  end

  local function write(number, text)
    log.pages[number], log.written[number], log.removed[number] = text, true, nil
  end

  -- isOpen reports whether the p-th page is none, but the entries in the value.
  local function isOpen(p) return log.first == 0 or p > 1 and p > count() end

  local function textOf(p)
    if isOpen(p) then return log.open end
    return read(numberOf(p))
  end

  -- afterPage is how many units are after the p-th page.
  local function afterPage(p)
    if isOpen(p) then return 0 end
    return (A[k] - after(p)) % RANKS
  end

  -- seek finds the first entry that is as new as that or, if it is not a time, has at most
  -- so many newer units: its page, the page's text, and the byte in it. The newest is taken
  -- to be one.
  local function seek(isTime, bound)
    local p, last, step = 1, 1, 1
    local function passes(p)
      if not isTime then return afterPage(p) <= bound end
      local text = textOf(p)
      return timeAt(text, #text - 8) >= bound
    end
    if not passes(1) then p, last = 2, count() + 1 end
    while p < last do
      local probe = step > 0 and min(p + step, last) - 1 or floor((p + last) / 2)
      if passes(probe) then last, step = probe, 0 else p, step = probe + 1, step * 2 end
    end
    local text = textOf(p)
    if not isTime then bound = bound - afterPage(p) end
    return p, text, find(text, p == 1 and log.skip or 0, isTime, bound)
  end

  -- newerThan is how many units are after the entry at a byte of the p-th page.
  local function newerThan(p, text, i)
    return (rankAt(text, #text - 8) - rankAt(text, i)) % ranks + afterPage(p)
  end

  -- unitsFrom is how many units that may count are in that entry and after it.
  local function unitsFrom(p, text, i)
    if i > (p == 1 and log.skip or 0) then return min(B[k], newerThan(p, text, i - 8)) end
    if p > 1 then return min(B[k], afterPage(p - 1)) end
    return B[k]
  end

  function P.unitsSince(time) return unitsFrom(seek(true, time)) end

  function P.timeOf(newer)
    local _, text, i = seek(false, newer)
    return timeAt(text, i)
  end

  function P.keepUnits(units)
    local p, _, i = seek(false, units - 1)
    if isOpen(p) then
      log.open = sub(log.open, i + 1)
      setDirectory('')
    else
      if p > 1 then setDirectory(sub(directory(), 8 * p - 7)) end
      log.skip = i
    end
  end

  -- shifted adds to the ranks in a text from a byte to another, the latter excluded: of
  -- entries, or of a directory.
  local whole = '>' .. string.rep('I4I4', 32)
  local function shifted(text, from, to, by, modulus)
    if by % modulus == 0 then return text end
    local parts = { sub(text, 1, from) }
    while from < to do
      local pairs = min(32, (to - from) / 8)
      local form = pairs == 32 and whole or '>' .. string.rep('I4I4', pairs)
      local words = { unpack(form, text, from + 1) }
      for i = 2, 2 * pairs, 2 do
        local rank = words[i] % modulus
        words[i] = words[i] - rank + (rank + by) % modulus
      end
      parts[#parts + 1] = pack(form, spread(words, 1, 2 * pairs))
      from = from + 8 * pairs
    end
    parts[#parts + 1] = sub(text, to + 1)
    return table.concat(parts)
  end

  -- parted takes units out between the ranks before a byte and those from it on: it lowers
  -- these or raises those, whichever are fewer, for only differences count. It returns by
  -- how much the ranks after the text are lower.
  local function parted(text, i, units, modulus)
    if i < #text / 2 then return shifted(text, 0, i, units, modulus), 0 end
    return shifted(text, i, #text, -units, modulus), units
  end

  -- joined is two texts as one, with the rank after each.
  local function joined(left, afterLeft, right, afterRight)
    local by = rankAt(left, #left - 8) + afterRight - afterLeft - rankAt(right, #right - 8)
    return left .. shifted(right, 0, #right, by, ranks)
  end

  -- close moves the entries in the value to the last page, or to another.
  function P.close()
    local n = count()
    if n > 0 then
      local number, last = numberOf(n), textOf(n)
      if #last + #log.open <= PAGE then
        write(number, joined(last, after(n), log.open, A[k]))
        setDirectory(sub(directory(), 1, -9) .. pack('>I4I4', number, A[k]))
        return
      end
    end
    write(log.next, log.open)
    setDirectory((n > 0 and directory() or '') .. pack('>I4I4', log.next, A[k]))
    log.next = log.next + 1
  end

  -- save writes what has changed, and deletes some of what does not count any more.
  function P.save(left)
    local key, expires = KEYS[k], log.expires
    if not log.hashed then
      call('UNLINK', key)
      expires = 0
    end
    if left > expires then log.expires = expiry(left) end
    local garbage, fields = {}, {}
    while log.swept < log.first and #garbage < SWEEP do
      garbage[#garbage + 1] = pack('>I4', log.swept)
      log.swept = log.swept + 1
    end
    for number in pairs(log.removed) do garbage[#garbage + 1] = pack('>I4', number) end
    if log.hashed and #garbage > 0 then call('HDEL', key, spread(garbage)) end
    for number in pairs(log.written) do
      if log.first <= number and number < log.next and not log.removed[number] then
        fields[#fields + 1] = pack('>I4', number)
        fields[#fields + 1] = log.pages[number]
      end
    end
    if log.redirected then
      fields[#fields + 1] = 'd'
      fields[#fields + 1] = log.directory
    end
    local head = pack('>BI7I4I4I7I4I4I2I4I4', FORM, left, A[k], B[k], log.expires, log.first, log.after, log.skip, log.next, log.swept)
    call('HSET', key, 's', head .. log.open, spread(fields))
    if left > expires then call('PEXPIRE', key, ttl(log.expires)) end
  end

  -- reopen makes the p-th page the entries in the value, and forgets those after it.
  local function reopen(p)
    local number = numberOf(p)
    log.open, log.next = sub(read(number), p == 1 and log.skip + 1 or 1), number
    setDirectory(sub(directory(), 1, 8 * p - 8))
  end

  -- join makes one page of the p-th and the next, if they fit into one.
  local function join(p)
    if p < 1 or p >= count() then return false end
    local left, right = textOf(p), textOf(p + 1)
    if #left + #right > PAGE then return false end
    local number, newAfter = numberOf(p), after(p + 1)
    log.removed[numberOf(p + 1)] = true
    write(number, joined(left, after(p), right, newAfter))
    setDirectory(sub(directory(), 1, 8 * p - 8) .. pack('>I4I4', number, newAfter) .. sub(directory(), 8 * p + 9))
    return true
  end

  -- refundNewest takes out the newest units, whatever their entries. Some are left.
  function P.refundNewest(units)
    local p, text, i = seek(false, units)
    local taken, after = timeAt(text, i), rankAt(text, i) - units + newerThan(p, text, i)
    if not isOpen(p) then
      if p == 1 then i = i - log.skip end
      reopen(p)
    end
    log.open = sub(log.open, 1, i)
    --> addEntry
    FRESH[k], A[k], B[k] = taken + c.period, (A[k] - units) % RANKS, B[k] - units
  end

  -- refund takes units out of the entry of that time, and the entry out of its page if it
  -- has no more. Pages that have become short are joined.
  function P.refund(time, cost)
    local p, text, i = seek(true, time)
    local has = unitsFrom(p, text, i) - newerThan(p, text, i)
    local back = min(cost, has)
    if timeAt(text, i) ~= time or back <= 0 then return end
    if back == has then text = sub(text, 1, i) .. sub(text, i + 9) end
    text = parted(text, i, back, ranks)
    B[k] = B[k] - back
    if isOpen(p) then
      A[k] = (A[k] - back) % RANKS
      log.open = text
      if #text == 0 and log.first > 0 then reopen(count()) end
      if #log.open == 0 then FRESH[k] = 0 else FRESH[k] = timeAt(log.open, #log.open - 8) + c.period end
      return
    end
    local d, lower = parted(directory(), 8 * p - 8, back, RANKS)
    setDirectory(d)
    A[k] = (A[k] - lower) % RANKS
    if #text > (p == 1 and log.skip or 0) then
      write(numberOf(p), text)
      if not join(p) then join(p - 1) end
    else
      log.removed[numberOf(p)] = true
      if p == 1 then log.skip = 0 end
      setDirectory(sub(directory(), 1, 8 * p - 8) .. sub(directory(), 8 * p + 1))
    end
  end

  allPages = P
  P.enter()
  return P
end
