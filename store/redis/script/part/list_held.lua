-- The list of a key whose state is at hand. Most have no hold or one, so the text is cut only if
-- there are more: each text that Lua makes costs time.

local FULL_HEAD = 38 -- bytes of the state and the head of its list

local origin -- where in the text of the list its entries begin; 0 if it was cut, or is new
local id -- of the entry that was read
local entry -- a new one
local endOfEntry -- what all entries of a limit end with

--: readHeld
from = EXACT
to = 0
stored = 0
if head then stored = #head end
if stored >= FULL_HEAD then
  changed = false
  oldFresh, oldA, oldB, expires, listed, firstDue = unpack('>I7I7I7I7I3I7', head)
  foreign = oldFresh >= EXACT
  isFirst = 0
  if listed >= 65536 then
    listed = listed - 65536
    isFirst = 1
  end
  -- A text that is damaged counts as none.
  if listed > 0 and (listed > MAX_HOLDS or listed * ENTRY + FULL_HEAD > stored) then listed = 0 end
  list = head
  origin = FULL_HEAD
else
  --> readState
  listed = 0
end

--: cutList
if origin > 0 then
  list = cut(list, origin + 1, origin + listed * ENTRY)
  origin = 0
end

--: findHeld
place = nil
if listed == 1 then
  --> readEntry
  if id == wanted then place = 0 end
elseif listed > 1 then
  --> cutList
  --> findHold
end

--: removeHeld
if listed == 1 then
  listed = 0
  from = 0
else
  --> removeHold
end

--: addHeld
-- The only hold of a key is written with the state, if no other request follows.
if listed == 0 then
  isFirst = 1
  firstDue = usualDue
  list = nil
else
  if usualDue <= firstDue then isFirst, firstDue = 1, usualDue end
  --> cutList
end
place = listed * ENTRY
if place < from then from = place end
listed = listed + 1
if list or count > 1 then
  --> newEntry
  list = (list or '') .. entry
  origin = 0
  to = place + ENTRY
end
if usualDue > expires then expires = usualExpires end

--: writeHeld
if oldFresh > expires then
  --> setExpires
end
local size = listed * ENTRY
if size == 0 and oldFresh == 0 then
  call('UNLINK', KEYS[key])
else
  local shrinks = stored > 1024 and stored > 4 * (FULL_HEAD + size)
  local apart -- what has changed far from the state
  if size == 0 then -- it does not matter when the first one expires
    head = pack('>I7I7I7I7I3', oldFresh, oldA, oldB, expires, 0)
  elseif not list then
    --> newState
  else
    local near = list
    if size > 4 * ENTRY and not shrinks then
      if to > size then to = size end
      if from <= 4 * ENTRY then
        near = cut(list, 1, to)
      else
        near = ''
        apart = to > from and cut(list, from + 1, to)
      end
    end
    head = pack('>I7I7I7I7I3I7c0', oldFresh, oldA, oldB, expires, isFirst * 65536 + listed, firstDue, near)
  end
  if before == 0 then
    --> setLasts
    call('PSETEX', KEYS[key], lasts, head)
  else
    if shrinks then call('SET', KEYS[key], head, 'KEEPTTL') else call('SETRANGE', KEYS[key], '0', head) end
    if apart then call('SETRANGE', KEYS[key], format('%d', FULL_HEAD + from), apart) end
    if before ~= expires then
      --> setLasts
      call('PEXPIRE', KEYS[key], lasts)
    end
  end
end
