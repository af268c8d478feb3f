-- Tails. Words are read one by one as they are asked for, and written if they have
-- changed: a log of a thousand units costs what the touched ones cost. DIRTY is the
-- set of those, or true if all has to be written anew.

local WORD = 7
local WORDS, DIRTY = {}, {}
TAIL = {}

-- openTail finds out how long the tail of k is.
local function openTail()
  if TAIL[k] then return end
  TAIL[k], WORDS[k], DIRTY[k] = {}, 0, {}
  if FRESH[k] > 0 then WORDS[k] = floor((call('STRLEN', KEYS[k]) - HEAD) / WORD) end
end

local function word(i)
  local tail = TAIL[k]
  local w = tail[i]
  if w then return w end
  if DIRTY[k] == true then return 0 end
  local from = HEAD + i * WORD
  w = unpack('>I7', call('GETRANGE', KEYS[k], from, from + WORD - 1))
  tail[i] = w
  return w
end

local function setWord(i, w)
  TAIL[k][i] = w
  if DIRTY[k] ~= true then DIRTY[k][i] = true end
end

-- renew gives k another tail, of so many words.
local function renew(words, tail)
  WORDS[k], TAIL[k], DIRTY[k] = words, tail, true
end

saveTail = function(head, ttl)
  local key, tail, dirty = KEYS[k], TAIL[k], DIRTY[k]
  if dirty == true then
    local parts = { head }
    for i = 0, WORDS[k] - 1 do parts[i + 2] = pack('>I7', tail[i] or 0) end
    call('PSETEX', key, ttl, table.concat(parts))
    return
  end
  call('SETRANGE', key, '0', head)
  for i in pairs(dirty) do call('SETRANGE', key, HEAD + i * WORD, pack('>I7', tail[i])) end
  call('PEXPIRE', key, ttl)
end
