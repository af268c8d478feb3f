-- Tails. Words are read as they are asked for, more at a time the more are asked for, and
-- written if they have changed. DIRTY is the set of those, or true if all has to be
-- written again.

local WORD = 7
local MOST = 64 -- words that are read at once, or written one by one
local WORDS, DIRTY, CHANGES, AHEAD = {}, {}, {}, {}
TAIL = {}

local function word(i)
  local tail = TAIL[k]
  local w = tail[i]
  if w then return w end
  if DIRTY[k] == true then return 0 end
  local from, count = HEAD + i * WORD, min(AHEAD[k], WORDS[k] - i)
  local words = call('GETRANGE', KEYS[k], from, from + count * WORD - 1)
  for j = 0, count - 1 do
    if not tail[i + j] then tail[i + j] = unpack('>I7', words, j * WORD + 1) end
  end
  AHEAD[k] = min(2 * AHEAD[k], MOST)
  return tail[i]
end

local function setWord(i, w)
  TAIL[k][i] = w
  if DIRTY[k] ~= true and not DIRTY[k][i] then DIRTY[k][i], CHANGES[k] = true, CHANGES[k] + 1 end
end

-- renew gives k another tail, of so many words.
local function renew(words, tail)
  WORDS[k], TAIL[k], DIRTY[k] = words, tail, true
end

saveTail = function(head, ttl)
  local key, tail, dirty = KEYS[k], TAIL[k], DIRTY[k]
  if dirty ~= true and CHANGES[k] > MOST then
    for i = 0, WORDS[k] - 1 do word(i) end
    dirty = true
  end
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

--: openTail
-- How long the tail of k is.
if not TAIL[k] then
  TAIL[k], WORDS[k], DIRTY[k], CHANGES[k], AHEAD[k] = {}, 0, {}, 0, 1
  if FRESH[k] > 0 then WORDS[k] = floor((call('STRLEN', KEYS[k]) - HEAD) / WORD) end
end
