-- What both scripts that write need. KEYS are current, history and sources.
local current, history, sources = KEYS[1], KEYS[2], KEYS[3]

-- is says whether what is current has still this number and sha256.
local function is(number, sha256)
  local now = redis.call('HMGET', current, 'number', 'sha256')
  return (now[1] or '') == number and (now[2] or '') == sha256
end

-- whole reads a number that somebody may have written by hand.
local function whole(text)
  if text and #text <= 15 and string.match(text, '^%d+$') then
    return tonumber(text)
  end
  return 0
end

-- next is a number that was never used, whatever somebody has done to the keys.
local function next(number)
  local highest = whole(number)
  for _, n in ipairs(redis.call('HKEYS', history)) do
    highest = math.max(highest, whole(n))
  end
  return string.format('%.0f', highest + 1)
end

-- now is the time in microseconds, as text: a number would be rounded.
local function now()
  local clock = redis.call('TIME')
  return clock[1] .. string.format('%06d', clock[2])
end

-- keep puts a version into the history, and forgets what is too old or too much.
local function keep(number, time, author, summary, source, versions, bytes)
  redis.call('HSET', history, number, cjson.encode({time = time, author = author, summary = summary}))
  redis.call('HSET', sources, number, source)
  local kept = redis.call('HKEYS', history)
  table.sort(kept, function(a, b) return whole(a) > whole(b) end)
  local size = 0
  for i, n in ipairs(kept) do
    size = size + redis.call('HSTRLEN', sources, n)
    if i > 1 and (i > versions or size > bytes) then
      redis.call('HDEL', history, n)
      redis.call('HDEL', sources, n)
    end
  end
end
