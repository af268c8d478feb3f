-- The open holds of a key are a text beside its state: a head and, in no order, an entry
-- for each, with its id and what was charged, as weir.Held has it. So they are read together
-- with the states, and only what has changed is written.

local MAX_HOLDS, MEMORY = 1000, 60 * SECOND
local LIST, LIST_HEAD = '>BI2I7I7', 17 -- is the third exact, how many, when the first expires or sooner, when Redis forgets it
local HELD, ENTRY = '>I7I7I7I7I7I7B', 59 -- behind 16 bytes of id: expires, cost, receipt, level, since, and of its limit N and whether it shapes
local NEW_ENTRY = '>c16I7I7I7I7I7I7B' -- with the id: each text that Lua makes costs time
local OUTCOMES = '>BBI7' -- of a record: has it ended, of how many ops, when it expires or is forgotten
local cut = string.sub

-- Of one key: the entries, what is in the head, and what of it is to be written.
local list, listed, isFirst, firstDue, forgets
local stored, prolonged, from, to -- bytes in Redis, whether it lives longer now, and which entries have changed
local due, heldCost, receipt, level, since, heldN, heldShape -- of one hold
local LEVELS, SINCE -- of all holds, while they move up

-- openList takes up a text; false if there is none. One that is damaged counts as none.
local function openList(text)
  list, listed, isFirst, firstDue, forgets, stored, prolonged, from = '', 0, 1, EXACT, 0, 0, false, nil
  if not text or #text < LIST_HEAD then return end
  local exact, count, first, ends = unpack(LIST, text)
  if exact > 1 or count > MAX_HOLDS or #text < LIST_HEAD + count * ENTRY then return end
  listed, isFirst, firstDue, forgets, stored = count, exact, first, ends, #text
  if count > 0 then list = cut(text, LIST_HEAD + 1, LIST_HEAD + count * ENTRY) end
end

-- touch says that bytes of the entries have changed.
local function touch(first, last)
  if not from then
    from, to = first, last
  else
    if first < from then from = first end
    if last > to then to = last end
  end
  if to > #list then to = #list end
end

local function closeList(key)
  if not from then return end
  local head = pack(LIST, isFirst, listed, firstDue, forgets)
  if stored == 0 or stored > 4 * (LIST_HEAD + #list) and stored > 1024 then
    call('PSETEX', key, ttl(forgets), head .. list)
    return
  end
  if from <= 4 * ENTRY then
    call('SETRANGE', key, '0', head .. (to < #list and cut(list, 1, to) or list))
  else
    call('SETRANGE', key, '0', head)
    if to > from then call('SETRANGE', key, format('%d', LIST_HEAD + from), cut(list, from + 1, to)) end
  end
  if prolonged then call('PEXPIRE', key, ttl(forgets)) end
end

-- findHold returns where the entry of a hold begins, from 0; nil if there is none.
local function findHold(id)
  if listed == 0 then return nil end
  local i = string.find(list, id, 1, true)
  while i and (i - 1) % ENTRY ~= 0 do i = string.find(list, id, i + 1, true) end
  return i and i - 1
end

local function readHold(place) due, heldCost, receipt, level, since, heldN, heldShape = unpack(HELD, list, place + 17) end

-- keepHold notes when a hold expires. The list lives a little longer; if what has expired is
-- to be given back, as long as there may be something to give back.
local function keepHold(expires, receipt, releases)
  if expires <= firstDue then isFirst, firstDue = 1, expires end
  local last = releases and max(expires, receipt) or expires
  if last >= forgets then forgets, prolonged = expiry(last), true end
end

-- addHold holds what k was just charged.
local function addHold(id, expires, cost, releases)
  local level, since = 0, 0
  if c.full > 0 then level, since = A[k], FRESH[k] - divUp(A[k], c.rate) end
  if listed == 0 then firstDue = EXACT end
  list, listed = list .. pack(NEW_ENTRY, id, expires, cost, FRESH[k], level, since, c.n, c.shape and 1 or 0), listed + 1
  touch(#list - ENTRY, #list)
  keepHold(expires, FRESH[k], releases)
end

-- removeHold puts the last entry in the place of one that has been read.
local function removeHold(place)
  local last = #list - ENTRY
  if due <= firstDue then isFirst = 0 end
  if place < last then
    list = cut(list, 1, place) .. cut(list, last + 1) .. cut(list, place + ENTRY + 1, last)
  else
    list = cut(list, 1, last)
  end
  listed = listed - 1
  touch(place, place + ENTRY)
end

-- sweep removes what has expired, and finds what expires first.
local function sweep()
  local left, count, first = {}, 0, EXACT
  for place = 0, #list - 1, ENTRY do
    local due = unpack('>I7', list, place + 17)
    if due > now then
      count = count + 1
      left[count], first = cut(list, place + 1, place + ENTRY), min(first, due)
    end
  end
  list, listed, isFirst, firstDue = table.concat(left), count, 1, first
  from = nil
  touch(0, #list)
end

-- fullUntil returns when the first hold expires, if there are as many as there may be. What
-- has expired is removed now and then, so that it does not pile up.
local function fullUntil()
  if listed % 64 == 0 and listed > 0 and firstDue <= now then sweep() end
  if listed < MAX_HOLDS then return nil end
  if isFirst == 0 or firstDue <= now then sweep() end
  return listed >= MAX_HOLDS and firstDue or nil
end

-- letGo gives back to k units of the hold that was read, which is not on the list any more.
local function letGo(units)
  if FRESH[k] <= 0 or units <= 0 then return end
  if c.algorithm.letGo then c.algorithm.letGo(units) else c.algorithm.refund(receipt, units) end
  CHANGED[k] = true
  if FRESH[k] <= 0 then forget() end
end

-- isEnded reports whether a record is of a hold that has ended, and until when it is known.
local function isEnded(record, n)
  if not record or #record < 9 then return false end
  local ended, ops, known = unpack(OUTCOMES, record)
  if ops ~= n or #record < 9 + 14 * n then known = 0 end
  return ended == 1, known
end

-- knownUntil is until when it is known how a hold has ended that would expire then.
local function knownUntil(expires)
  local known = now + MEMORY
  return known > expires and known or expires
end

-- remember writes how a hold has ended. What there is of an open one is kept: its record, or
-- true if there should be one.
local function remember(key, record, known, outcomes)
  local length = 0
  if record == true or record and #record >= #outcomes and string.byte(record) == 0 then
    length = pcall('SETRANGE', key, '0', outcomes)
  end
  -- Or it is lost, or something foreign.
  if type(length) == 'table' or length <= #outcomes then call('PSETEX', key, ttl(known + SECOND), outcomes) end
end
