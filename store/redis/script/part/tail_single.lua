-- The tail of the one key that is being looked at.

local WORD = 7
local tailText -- the value
local keyWords -- how many words its tail has
local changedWords, isRenewed -- those that have changed; whether all others are 0

local function word(i)
  local w = changedWords and changedWords[i]
  if w then return w end
  if isRenewed then return 0 end
  return (unpack('>I7', tailText, HEAD + i * WORD + 1))
end

local function setWord(i, w)
  changedWords = changedWords or {}
  changedWords[i] = w
end

local function renew(words, tail) keyWords, changedWords, isRenewed = words, tail, true end

--: openTail
-- The tail was read with the state.

--: readState
name = KEYS[key]
head = head or pcall('GET', name) -- which may be something foreign
foreign = type(head) == 'table'
oldFresh, oldA, oldB, expires, changed = 0, 0, 0, 0, false
tailText, keyWords, changedWords, isRenewed = head, 0, nil, false
if not foreign and head and #head >= HEAD then
  oldFresh, oldA, oldB, expires = unpack('>I7I7I7I7', head)
  foreign = oldFresh >= EXACT
  if oldFresh > 0 then keyWords = floor((#head - HEAD) / WORD) end
elseif not foreign and head and head ~= '' then
  foreign = string.byte(head) >= STRANGE
end

--: writeState
local before = expires
if oldFresh > expires then expires = expiry(oldFresh) end
head = pack('>I7I7I7I7', oldFresh, oldA, oldB, expires)
if isRenewed then
  local parts = { head }
  for i = 0, keyWords - 1 do parts[i + 2] = pack('>I7', changedWords[i] or 0) end
  call('PSETEX', name, ttl(expires), table.concat(parts))
else
  call('SETRANGE', name, '0', head)
  if changedWords then -- those that follow one another are written together
    local i = 0
    while i < keyWords do
      local run, n, w = {}, 0, changedWords[i]
      while w do
        n = n + 1
        run[n], w = pack('>I7', w), changedWords[i + n]
      end
      if n > 0 then call('SETRANGE', name, format('%d', HEAD + i * WORD), table.concat(run)) end
      i = i + n + 1
    end
  end
  if before ~= expires then call('PEXPIRE', name, ttl(expires)) end
end
