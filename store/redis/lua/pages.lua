-- The pages of a large sliding log. Each is a field of the hash, named by its number in four bytes. The field 'd' is the
-- directory: for each page, oldest first, its number and the rank after its last unit. So nothing that a call reads or
-- writes is longer than a page or the directory, which grow with the square root of the log.
--
-- Between the ranks of two entries of a page there is what was taken in between, but pages need not
-- agree where to begin: what is given back changes ranks in its own page and in the directory.
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
local PAGES -- what can be done with them

-- preparePages is called before a log has pages. Most have none, and a script defines this at each call.
local function preparePages()
  if PAGES then return end
  LOG:prepare()
  PAGES = {}

  -- turnTo is called before anything is done with pages.
  local function turnTo(log)
    if log.pages then return end
    log.pages, log.written, log.removed = {}, {}, {}
    if log.first == 0 then
      log.directory, log.skip = '', 0
      if not log.next then log.next, log.swept = 1, 1 end
    end
  end

  local function directoryOf(log)
    if not log.directory then log.directory = call('HGET', log.name, 'd') or '' end
    return log.directory
  end

  -- pageCount does without the directory if there are no pages.
  local function pageCount(log)
    if log.first == 0 then return 0 end
    return #directoryOf(log) / 8
  end

  -- numberOf and rankAfter are what the directory says of the p-th page.
  local function numberOf(log, p)
    if p == 1 then return log.first end
    return (parse('>I4', directoryOf(log), 8 * p - 7))
  end

  local function rankAfter(log, p)
    if p == 1 then return log.after end
    return (parse('>I4', directoryOf(log), 8 * p - 3))
  end

  local function setDirectory(log, text)
    log.directory, log.redirected = text, true
    if text == '' then log.first, log.skip = 0, 0 else log.first, log.after = parse('>I4I4', text) end
  end

  local function readPage(log, number)
    local text = log.pages[number]
    if not text then
      text = call('HGET', log.name, pack('>I4', number))
      if not text or #text == 0 or #text % 8 ~= 0 then text = '\0\0\0\0\0\0\0\0' end -- which nobody has written
      log.pages[number] = text
    end
    return text
  end

  local function writePage(log, number, text)
    log.pages[number], log.written[number], log.removed[number] = text, true, nil
  end

  -- isOpen reports whether the p-th page is none, but the entries in the value.
  local function isOpen(log, p) return log.first == 0 or p > 1 and p > pageCount(log) end

  local function textOf(log, p)
    if isOpen(log, p) then return log.open end
    return readPage(log, numberOf(log, p))
  end

  -- unitsAfter is how many units are after the p-th page.
  local function unitsAfter(log, p, rank)
    if isOpen(log, p) then return 0 end
    return (rank - rankAfter(log, p)) % RANKS
  end

  -- skipOf is where the p-th page begins to count.
  local function skipOf(log, p) return p == 1 and log.skip or 0 end

  -- seek finds the first entry that is as new as that or, if it is not a time, has at most so many
  -- newer units: its page, the page's text, and the byte in it. The newest is taken to be one.
  local function seek(c, log, rank, isTime, bound)
    local p, last, step = 1, 1, 1
    local function passes(p)
      if not isTime then return unitsAfter(log, p, rank) <= bound end
      local text = textOf(log, p)
      return timeAt(c, log, text, #text - 8) >= bound
    end
    if not passes(1) then p, last = 2, pageCount(log) + 1 end
    while p < last do
      local probe = step > 0 and math.min(p + step, last) - 1 or (p + last - (p + last) % 2) / 2
      if passes(probe) then last, step = probe, 0 else p, step = probe + 1, step * 2 end
    end
    local text = textOf(log, p)
    if not isTime then bound = bound - unitsAfter(log, p, rank) end
    return p, text, search(c, log, text, skipOf(log, p), isTime, bound)
  end

  -- newerThan is how many units are after the entry at a byte of the p-th page.
  local function newerThan(c, log, rank, p, text, i)
    return (rankAt(c, text, #text - 8) - rankAt(c, text, i)) % c.rate + unitsAfter(log, p, rank)
  end

  -- unitsFrom is how many units that may count are in that entry and after it.
  local function unitsFrom(c, log, rank, units, p, text, i)
    if i > skipOf(log, p) then return math.min(units, newerThan(c, log, rank, p, text, i - 8)) end
    if p > 1 then return math.min(units, unitsAfter(log, p - 1, rank)) end
    return units
  end

  function PAGES.unitsSince(c, log, rank, units, time)
    turnTo(log)
    return unitsFrom(c, log, rank, units, seek(c, log, rank, true, time))
  end

  function PAGES.timeOf(c, log, rank, newer)
    turnTo(log)
    local _, text, i = seek(c, log, rank, false, newer)
    return timeAt(c, log, text, i)
  end

  function PAGES.keepUnits(c, log, rank, units)
    turnTo(log)
    local p, _, i = seek(c, log, rank, false, units - 1)
    if isOpen(log, p) then
      log.open = string.sub(log.open, i + 1)
      setDirectory(log, '')
      return
    end
    if p > 1 then setDirectory(log, string.sub(directoryOf(log), 8 * p - 7)) end
    log.skip = i
  end

  -- joined is two texts as one, with the rank after each.
  local function joined(c, left, afterLeft, right, afterRight)
    local by = rankAt(c, left, #left - 8) + afterRight - afterLeft - rankAt(c, right, #right - 8)
    return left .. LOG.shifted(right, 0, #right, by, c.rate)
  end

  -- close moves the entries in the value to the last page, or to another.
  function PAGES.close(c, log, rank)
    turnTo(log)
    local n = pageCount(log)
    if n > 0 then
      local number, last = numberOf(log, n), textOf(log, n)
      if #last + #log.open <= PAGE then
        writePage(log, number, joined(c, last, rankAfter(log, n), log.open, rank))
        setDirectory(log, string.sub(directoryOf(log), 1, -9) .. pack('>I4I4', number, rank))
        log.open = ''
        return
      end
    end
    writePage(log, log.next, log.open)
    setDirectory(log, (n > 0 and directoryOf(log) or '') .. pack('>I4I4', log.next, rank))
    log.next, log.open = log.next + 1, ''
  end

  -- save writes what has changed, and deletes some of what does not count any more.
  function PAGES.save(now, keep, log, fresh, rank, units, before)
    turnTo(log)
    local name, expires, garbage, fields = log.name, before, {}, {}
    if not log.hashed then
      call('UNLINK', name)
      before, expires = 0, 0
    end
    if fresh > expires then expires = expiry(now, fresh) end
    while log.swept < log.first and #garbage < SWEEP do
      garbage[#garbage + 1] = pack('>I4', log.swept)
      log.swept = log.swept + 1
    end
    for number in pairs(log.removed) do garbage[#garbage + 1] = pack('>I4', number) end
    if log.hashed and #garbage > 0 then call('HDEL', name, unpack(garbage)) end
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
    local head = pack('>BI7I4I4I7I4I4I2I4I4', FORM, fresh, rank, units, expires, log.first, log.after, log.skip, log.next, log.swept)
    call('HSET', name, 's', head .. log.open, unpack(fields))
    if expires ~= before then call('PEXPIRE', name, ttl(now, keep, expires)) end
  end

  -- reopen makes the p-th page the entries in the value, and forgets those after it.
  local function reopen(log, p)
    local number = numberOf(log, p)
    log.open, log.next = string.sub(readPage(log, number), skipOf(log, p) + 1), number
    setDirectory(log, string.sub(directoryOf(log), 1, 8 * p - 8))
  end

  -- join makes one page of the p-th and the next, if they fit into one.
  local function join(c, log, p)
    if p < 1 or p >= pageCount(log) then return false end
    local left, right = textOf(log, p), textOf(log, p + 1)
    if #left + #right > PAGE then return false end
    local number, after, directory = numberOf(log, p), rankAfter(log, p + 1), directoryOf(log)
    log.removed[numberOf(log, p + 1)] = true
    writePage(log, number, joined(c, left, rankAfter(log, p), right, after))
    setDirectory(log, string.sub(directory, 1, 8 * p - 8) .. pack('>I4I4', number, after) .. string.sub(directory, 8 * p + 9))
    return true
  end

  -- refundNewest takes out the newest units, whatever their entries, and returns the state. Some are left.
  function PAGES.refundNewest(c, log, rank, units, back)
    turnTo(log)
    local p, text, i = seek(c, log, rank, false, back)
    local taken, after = timeAt(c, log, text, i), rankAt(c, text, i) - back + newerThan(c, log, rank, p, text, i)
    if not isOpen(log, p) then
      i = i - skipOf(log, p)
      reopen(log, p)
    end
    log.open, log.added = string.sub(log.open, 1, i), entryOf(c, taken, after)
    return taken + c.period, (rank - back) % RANKS, units - back
  end

  -- refund takes units out of the entry of that time, and the entry out of its page if it has no more,
  -- and returns the state. Pages that have become short are joined.
  function PAGES.refund(c, log, fresh, rank, units, time, cost)
    turnTo(log)
    local p, text, i = seek(c, log, rank, true, time)
    local has = unitsFrom(c, log, rank, units, p, text, i) - newerThan(c, log, rank, p, text, i)
    local back = math.min(cost, has)
    if timeAt(c, log, text, i) ~= time or back <= 0 then return fresh, rank, units end
    if back == has then text = string.sub(text, 1, i) .. string.sub(text, i + 9) end
    text = LOG.parted(text, i, back, c.rate)
    units = units - back
    if isOpen(log, p) then
      rank = (rank - back) % RANKS
      log.open = text
      if #text == 0 and log.first > 0 then reopen(log, pageCount(log)) end
      if #log.open == 0 then return 0, rank, units end
      return timeAt(c, log, log.open, #log.open - 8) + c.period, rank, units
    end
    local directory, lower = LOG.parted(directoryOf(log), 8 * p - 8, back, RANKS)
    setDirectory(log, directory)
    rank = (rank - lower) % RANKS
    if #text > skipOf(log, p) then
      writePage(log, numberOf(log, p), text)
      if not join(c, log, p) then join(c, log, p - 1) end
      return fresh, rank, units
    end
    log.removed[numberOf(log, p)] = true
    if p == 1 then log.skip = 0 end
    setDirectory(log, string.sub(directory, 1, 8 * p - 8) .. string.sub(directory, 8 * p + 1))
    return fresh, rank, units
  end
end
