-- The open holds of a key are a text: a head and, in no order, an entry for each, with its id
-- and what was charged, as weir.Held has it. It is behind the state or, if that has a tail or
-- is a log, in a key of its own. Only what has changed is written.

local MAX_HOLDS, MEMORY = 1000, 60 * SECOND
local LIST, LIST_HEAD = '>BI2I7', 10 -- is the third exact, how many, when the first expires or sooner
local HELD, ENTRY = '>I7I7I7I7I7I7B', 59 -- behind 16 bytes of id: expires, cost, receipt, level, since, and of its limit N and whether it shapes
local NEW_ENTRY = '>c16I7I7I7I7I7I7B' -- with the id: each text that Lua makes costs time
local OUTCOMES = '>BBI7' -- of a record: has it ended, of how many ops, when it expires or is forgotten
local cut, find = string.sub, string.find

-- Of one key: the entries, and what is in the head.
local text, base -- what was read, and where in it the list begins
local list, listed, isFirst, firstDue
local stored, from, to, needed -- bytes in Redis, which entries have changed, and until when they are needed at least
local wanted, place -- the id of one hold, and where its entry begins, from 0; nil if there is none
local due, heldCost, receipt, level, since, heldN, heldShape -- of that hold
local LEVELS, SINCE -- of all holds, while they move up
local full -- when the first hold expires, if there are as many as there may be; else nil

--: sweep
-- Removes what has expired, and finds what expires first.
local left, count, first = {}, 0, EXACT
for place = 0, #list - 1, ENTRY do
  local due = unpack('>I7', list, place + 17)
  if due > now then
    count = count + 1
    left[count], first = cut(list, place + 1, place + ENTRY), min(first, due)
  end
end
list, listed, isFirst, firstDue = table.concat(left), count, 1, first
from, to = 0, #list

--: findFull
-- What has expired is removed now and then, so that it does not pile up.
if listed % 64 == 0 and listed > 0 and firstDue <= now then
  --> sweep
end
full = nil
if listed >= MAX_HOLDS then
  if isFirst == 0 or firstDue <= now then
    --> sweep
  end
  if listed >= MAX_HOLDS then full = firstDue end
end

--: openList
-- A text that is damaged counts as none.
list, listed, isFirst, firstDue, stored, from, to, needed = '', 0, 1, EXACT, 0, EXACT, 0, 0
if text and #text >= base + LIST_HEAD then
  local exact, count, first = unpack(LIST, text, base + 1)
  if exact <= 1 and count <= MAX_HOLDS and #text >= base + LIST_HEAD + count * ENTRY then
    listed, isFirst, firstDue, stored = count, exact, first, #text - base
    if count > 0 then list = cut(text, base + LIST_HEAD + 1, base + LIST_HEAD + count * ENTRY) end
  end
end

--: findHold
place = listed > 0 and find(list, wanted, 1, true) or nil
while place and place % ENTRY ~= 1 do place = find(list, wanted, place + 1, true) end
if place then
  place = place - 1
  due, heldCost, receipt, level, since, heldN, heldShape = unpack(HELD, list, place + 17)
end

--: keepHold
-- A hold is needed until it expires or, if what has expired is to be given back, as long as
-- there may be something to give back.
if due <= firstDue then isFirst, firstDue = 1, due end
if due > needed then needed = due end
if c.release and receipt > needed then needed = receipt end

--: addHold
-- It is of what k was just charged.
level, since, receipt = 0, 0, FRESH[k]
if c.rate > 0 then
  level = A[k]
  local rest = level % c.rate
  since = receipt - (level - rest) / c.rate
  if rest > 0 then since = since - 1 end
end
local entry = pack(NEW_ENTRY, wanted, due, cost, receipt, level, since, c.n, c.shape and 1 or 0)
if #list < from then from = #list end
if listed == 0 then list, firstDue = entry, EXACT else list = list .. entry end
listed, to = listed + 1, #list
--> keepHold

--: removeHold
-- The last entry comes in the place of the one that was found.
local last = #list - ENTRY
if due <= firstDue then isFirst = 0 end
if last == 0 then
  list = ''
elseif place < last then
  list = cut(list, 1, place) .. cut(list, last + 1) .. cut(list, place + ENTRY + 1, last)
else
  list = cut(list, 1, last)
end
listed = listed - 1
if place < from then from = place end
if place + ENTRY > to then to = place + ENTRY end
