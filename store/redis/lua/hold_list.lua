-- Lists of open holds, which are as hold_names.lua says.

local LISTS -- what can be done with them

-- prepareLists is called before there can be a list. The usual call for one key has none, and a script
-- defines this at each call.
local function prepareLists()
  if LISTS then return end
  local MAX_LISTED = 1000
  local lists = { -- LISTS at the end: a call that is stopped before leaves nothing
    read = nil, sweep = nil, fullUntil = nil, find = nil, add = nil, remove = nil, move = nil, openLevels = nil, closeLevels = nil, moveUp = nil,
    readRecord = nil, tellEnd = nil, writeApart = nil, write = nil,
  }

  -- read makes a list of a text. One that is damaged counts as none.
  function lists.read(name, base, text)
    local l = { name = name, base = base, entries = '', count = 0, isFirst = 1, firstDue = EXACT, stored = 0, from = EXACT, to = 0, needed = 0 }
    if text and #text >= base + LIST_HEAD then
      local isFirst, count, firstDue = parse(LIST, text, base + 1)
      if isFirst <= 1 and count <= MAX_LISTED and #text >= base + LIST_HEAD + count * ENTRY then
        l.isFirst, l.count, l.firstDue, l.stored = isFirst, count, firstDue, #text - base
        if count > 0 then l.entries = string.sub(text, base + LIST_HEAD + 1, base + LIST_HEAD + count * ENTRY) end
      end
    end
    return l
  end

  -- sweep removes what has expired, and finds what expires first. Of what expires at that very time, only
  -- ids that are before another are removed, if there is one.
  function lists.sweep(l, now, before)
    local left, first = {}, EXACT
    for place = 0, #l.entries - 1, ENTRY do
      local id, due = parse('>c16I7', l.entries, place + 1)
      if due > now or due == now and before and id >= before then left[#left + 1], first = string.sub(l.entries, place + 1, place + ENTRY), math.min(first, due) end
    end
    l.entries, l.count, l.isFirst, l.firstDue = table.concat(left), #left, 1, first
    l.from, l.to = 0, #l.entries
  end

  -- fullUntil is when the first hold expires, if there are as many as there may be. What has expired is
  -- removed now and then, so that it does not pile up.
  function lists.fullUntil(l, now)
    if l.count > 0 and l.count % 64 == 0 and l.firstDue <= now then lists.sweep(l, now) end
    if l.count < MAX_LISTED then return nil end
    if l.isFirst == 0 or l.firstDue <= now then lists.sweep(l, now) end
    return l.count >= MAX_LISTED and l.firstDue or nil
  end

  -- find returns of the hold with an id, if there is one, where its entry begins, from 0, and its due,
  -- cost, receipt, level and since.
  function lists.find(l, id)
    if l.count == 0 then return nil end
    local place = string.find(l.entries, id, 1, true)
    while place and place % ENTRY ~= 1 do place = string.find(l.entries, id, place + 1, true) end
    if not place then return nil end
    return place - 1, parse(HELD, l.entries, place + 16)
  end

  local function noteChange(l, from, to)
    if from < l.from then l.from = from end
    if to > l.to then l.to = to end
  end

  -- keepHold is for one that is on the list until it expires or, if what has expired is to be given back,
  -- as long as there may be something to give back.
  local function keepHold(l, due, receipt, releases)
    if due <= l.firstDue then l.isFirst, l.firstDue = 1, due end
    if due > l.needed then l.needed = due end
    if releases and receipt > l.needed then l.needed = receipt end
  end

  -- add adds one of what was just charged.
  function lists.add(l, id, due, cost, c, fresh, a, releases)
    local level, since = 0, 0
    if c.does == BUCKET then level, since = a, fresh - divUp(a, c.rate) end
    local entry, place = id .. pack(HELD, due, cost, fresh, level, since, c.n, c.shape and 1 or 0), #l.entries
    if l.count == 0 then l.entries, l.firstDue = entry, EXACT else l.entries = l.entries .. entry end
    l.count = l.count + 1
    noteChange(l, place, place + ENTRY)
    keepHold(l, due, fresh, releases)
  end

  -- remove puts the last entry in the place of a hold that was found.
  function lists.remove(l, place, due)
    local entries = l.entries
    local last = #entries - ENTRY
    if due <= l.firstDue then l.isFirst = 0 end
    if last == 0 then
      l.entries = ''
    elseif place < last then
      l.entries = string.sub(entries, 1, place) .. string.sub(entries, last + 1) .. string.sub(entries, place + ENTRY + 1, last)
    else
      l.entries = string.sub(entries, 1, last)
    end
    l.count = l.count - 1
    noteChange(l, place, place + ENTRY)
  end

  -- move gives a hold that was found, and was due at that time, another time to expire and another receipt.
  function lists.move(l, place, before, due, cost, receipt, releases)
    if before <= l.firstDue then l.isFirst = 0 end
    l.entries = string.sub(l.entries, 1, place + 16) .. pack('>I7I7I7', due, cost, receipt) .. string.sub(l.entries, place + 38)
    noteChange(l, place, place + ENTRY)
    keepHold(l, due, receipt, releases)
  end

  -- openLevels and closeLevels are around what moves holds of a bucket up.
  function lists.openLevels(l)
    l.levels, l.since = {}, {}
    for j = 1, l.count do l.levels[j], l.since[j] = parse('>I7I7', l.entries, j * ENTRY - 21) end
  end

  function lists.closeLevels(l)
    local parts = {}
    for j = 1, l.count do
      parts[j] = string.sub(l.entries, (j - 1) * ENTRY + 1, j * ENTRY - 22) .. pack('>I7', l.levels[j]) .. string.sub(l.entries, j * ENTRY - 14, j * ENTRY)
    end
    l.entries, l.levels = table.concat(parts), nil
    l.from, l.to = 0, #l.entries
  end

  -- moveUp moves those up that were reserved after a hold of which something was given back.
  function lists.moveUp(l, height, since, back)
    if l.count == 0 then return end
    local isOpen = l.levels
    if not isOpen then lists.openLevels(l) end
    for j = 1, l.count do
      if l.since[j] > since or l.since[j] == since and l.levels[j] > height then l.levels[j] = math.max(0, l.levels[j] - back) end
    end
    if not isOpen then lists.closeLevels(l) end
  end

  -- readRecord tells of a hold that is not on the list whether it has ended, when it ends or is
  -- forgotten, and its record, if that is one; ends is when it was known to expire.
  function lists.readRecord(now, name, ends)
    local record = try('GET', name)
    if type(record) == 'table' or not record or #record < RECORD_HEAD then
      if ends == 0 then ends = now + MEMORY end
      return false, ends, nil
    end
    local how, ops, time = parse(RECORD, record)
    if how == 1 and (ops ~= 1 or #record < ENDED_LENGTH) then time = 0 end
    return how == 1, time, how <= 1 and ops == 1 and record or nil
  end

  -- tellEnd says how a hold ended that cannot be settled any more, and returns how long out is then.
  function lists.tellEnd(out, length, now, ended, ends, record)
    local how, used, over = UNKNOWN, 0, 0
    if not ended then
      if ends + MEMORY > now then how = EXPIRED end
    elseif ends > now then
      how = REPEATED
      used, over = parse(OUTCOME, record, RECORD_HEAD + 1)
    end
    out[length + 1], out[length + 2], out[length + 3] = how, used, over
    return length + 3
  end

  -- save writes what has changed of a list that is there, and what is before its entries.
  local function save(name, head, l)
    local entries, to = l.entries, math.min(l.to, #l.entries)
    if l.stored > 4 * (LIST_HEAD + #entries) and l.stored > 1024 then
      call('SET', name, head .. entries, 'KEEPTTL')
    elseif l.from <= 4 * ENTRY then
      call('SETRANGE', name, '0', head .. (to < #entries and string.sub(entries, 1, to) or entries))
    else
      call('SETRANGE', name, '0', head)
      if to > l.from then call('SETRANGE', name, string.format('%d', l.base + LIST_HEAD + l.from), string.sub(entries, l.from + 1, to)) end
    end
  end

  -- writeApart writes a list that has a key of its own.
  function lists.writeApart(now, keep, l)
    local head, name, needed = pack(LIST, l.isFirst, l.count, l.firstDue), l.name, l.needed
    if l.stored == 0 then
      call('PSETEX', name, ttl(now, keep, expiry(now, needed)), head .. l.entries)
      return
    end
    save(name, head, l)
    if needed == 0 or call('PTTL', name) >= tonumber(ttl(now, keep, needed)) then return end
    call('PEXPIRE', name, ttl(now, keep, expiry(now, needed)))
  end

  -- write writes a state and the list behind it.
  function lists.write(now, keep, name, fresh, a, b, before, l)
    if fresh <= 0 and l.count == 0 then
      call('UNLINK', name)
      return
    end
    local expires = before
    if fresh > expires then expires = expiry(now, fresh) end
    if l.needed > expires then expires = expiry(now, l.needed) end
    local head = pack('>I7I7I7I7BI2I7', fresh, a, b, expires, l.isFirst, l.count, l.firstDue)
    if before == 0 then
      call('PSETEX', name, ttl(now, keep, expires), head .. l.entries)
      return
    end
    save(name, head, l)
    if expires ~= before then call('PEXPIRE', name, ttl(now, keep, expires)) end
  end
  LISTS = lists
end
