-- A key's value is its state, three whole numbers of seven bytes each, and for
-- two algorithms a tail of more such numbers. A state is read and written once
-- a call, however many requests ask for it.

local HEAD = 21
local WORD = 7

-- A state that was never seen, or that nobody could have written, is zero. What
-- is no string at all is foreign: whoever asks for it is told, and nobody else.
local function load(key)
  local s = { key = key, fresh = 0, a = 0, b = 0, words = 0, tail = nil }
  local head = redis.pcall('GETRANGE', key, 0, HEAD - 1)
  if head.err then
    s.foreign = true
  elseif #head == HEAD then
    s.fresh, s.a, s.b = struct.unpack('>I7I7I7', head)
  end
  return s
end

-- openTail finds out how long the tail is, and then reads only what is asked for.
local function openTail(s)
  if not s.tail then
    s.tail = {}
    if s.fresh > 0 then
      s.words = floor((redis.call('STRLEN', s.key) - HEAD) / WORD)
    end
  end
end

local function word(s, i)
  local w = s.tail[i]
  if not w and s.whole then return 0 end
  if not w then
    local at = HEAD + i * WORD
    w = struct.unpack('>I7', redis.call('GETRANGE', s.key, at, at + WORD - 1))
    s.tail[i] = w
  end
  return w
end

-- setWord remembers what to write; save writes it.
local function setWord(s, i, w)
  s.tail[i] = w
  s.dirty = s.dirty or {}
  s.dirty[i] = true
end

-- resize gives the tail so many words; those that move are set by the caller.
local function resize(s, words)
  s.words, s.whole, s.dirty = words, true, {}
end

-- forget makes a state as good as new; save deletes it.
local function forget(s)
  s.fresh, s.a, s.b, s.changed, s.foreign = 0, 0, 0, true, false
  if s.tail then
    resize(s, 0)
    s.tail = {}
  end
end

local function pack(s)
  return struct.pack('>I7I7I7', s.fresh, s.a, s.b)
end

-- save writes a state that has changed, and lets Redis forget it when it is as
-- good as new. A test's clock is not Redis's own, so then it is kept for an hour.
local function save(s, now, isTest)
  if s.fresh == 0 then
    redis.call('DEL', s.key)
    return
  end
  local ttl = isTest and 3600000 or max(1, divUp(s.fresh - now, 1000))
  if not s.tail then
    redis.call('SET', s.key, pack(s), 'PX', ttl)
    return
  end
  if s.whole then
    local parts = { pack(s) }
    for i = 0, s.words - 1 do parts[i + 2] = struct.pack('>I7', s.tail[i] or 0) end
    redis.call('SET', s.key, table.concat(parts), 'PX', ttl)
    return
  end
  redis.call('SETRANGE', s.key, 0, pack(s))
  for i in pairs(s.dirty or {}) do
    redis.call('SETRANGE', s.key, HEAD + i * WORD, struct.pack('>I7', s.tail[i]))
  end
  redis.call('PEXPIRE', s.key, ttl)
end
