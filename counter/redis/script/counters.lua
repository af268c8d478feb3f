-- A counter is a hash: the number of a window → the amount in it.
-- ARGV[2] is what to do; ARGV[3] how many windows to read. Each counter then has six: its
-- window, how many are kept, for how many milliseconds, its zone, by how much to change it,
-- or what to set it to, and nothing. One of distinct members has three keys rather than one,
-- with those of its two sketches, and a secret rather than nothing, then for how many
-- milliseconds the sketches are kept, and its members after their number.
local verb, count = ARGV[2], tonumber(ARGV[3])
local MOST = 9e18
local EXACT = 512 -- members that are counted one by one

local ops = {}
local k, a = 1, 4
while k <= #KEYS do
  local current = index(ARGV[a], ARGV[a + 3])
  local op = {
    key = KEYS[k], index = current, field = text(current), kept = tonumber(ARGV[a + 1]), ttl = ARGV[a + 2],
    by = ARGV[a + 4], secret = ARGV[a + 5],
  }
  k, a = k + 1, a + 6
  if op.secret ~= '' then
    local slot = current % 2
    op.slot, op.sketch, op.brief, op.members = 'slot' .. slot, KEYS[k + slot], ARGV[a], {}
    local n = tonumber(ARGV[a + 1])
    for i = 1, n do op.members[i] = ARGV[a + 1 + i] end
    k, a = k + 2, a + 2 + n
  end
  ops[#ops + 1] = op
end

-- forget removes windows that nobody can read any more, once there are many.
local function forget(op)
  if redis.call('HLEN', op.key) <= op.kept + math.floor(op.kept / 4) + 16 then return end
  for _, field in ipairs(redis.call('HKEYS', op.key)) do
    local n = tonumber(field)
    if n and (n <= op.index - op.kept or n > op.index + op.kept) then redis.call('HDEL', op.key, field) end
  end
end

-- include adds members to the sketch of the window, and sets the counter to their number.
-- A secret keeps clients from foreseeing hashes; otherwise a few members, well chosen, would
-- be estimated as many.
local function include(op)
  if redis.call('HGET', op.key, op.slot) ~= op.field then
    redis.call('HSET', op.key, op.slot, op.field) -- first: a Redis that is full refuses it
    redis.call('DEL', op.sketch)
  end
  if redis.call('HSETNX', op.key, 'secret', op.secret) == 0 then op.secret = redis.call('HGET', op.key, 'secret') end
  local hashes = {}
  for i, member in ipairs(op.members) do
    hashes[i] = text(tonumber(string.sub(redis.sha1hex(op.secret .. member), 1, 13), 16))
  end
  local n
  if redis.call('TYPE', op.sketch).ok == 'string' then
    redis.call('PFADD', op.sketch, unpack(hashes))
    n = redis.call('PFCOUNT', op.sketch)
  else
    redis.call('SADD', op.sketch, unpack(hashes))
    n = redis.call('SCARD', op.sketch)
    if n > EXACT then
      local all = redis.call('SMEMBERS', op.sketch)
      redis.call('DEL', op.sketch)
      redis.call('PFADD', op.sketch, unpack(all))
      n = redis.call('PFCOUNT', op.sketch)
    end
  end
  redis.call('PEXPIRE', op.sketch, op.brief)
  -- It may have been counted with a sketch that is gone, after the clock went back.
  n = math.max(math.min(n * 1000000, MOST), tonumber(redis.call('HGET', op.key, op.field) or 0))
  redis.call('HSET', op.key, op.field, text(n))
end

local answer = { 'ok' }
if verb == 'add' then
  -- First all are tried, whichever may be named twice.
  local sums = {}
  for _, op in ipairs(ops) do
    local sum = (sums[op.key] or tonumber(redis.call('HGET', op.key, op.field) or 0)) + tonumber(op.by)
    if math.abs(sum) > MOST then return { 'range' } end
    sums[op.key] = sum
  end
  for i, op in ipairs(ops) do
    if op.members then include(op) else redis.call('HINCRBY', op.key, op.field, op.by) end
    forget(op)
    redis.call('PEXPIRE', op.key, op.ttl)
    answer[i + 1] = { op.index, redis.call('HGET', op.key, op.field) } -- what HINCRBY returns would be rounded
  end
elseif verb == 'set' then
  for _, op in ipairs(ops) do
    if op.by ~= '0' then
      redis.call('HINCRBY', op.key, op.field, 0) -- a Redis that is full refuses it before anything is deleted
      break
    end
  end
  for i, op in ipairs(ops) do
    answer[i + 1] = { op.index, redis.call('HGET', op.key, op.field) or '0' }
    if op.by == '0' then
      redis.call('HDEL', op.key, op.field)
      if op.members and redis.call('HGET', op.key, op.slot) == op.field then redis.call('DEL', op.sketch) end
    else
      redis.call('HSET', op.key, op.field, op.by)
      forget(op)
      redis.call('PEXPIRE', op.key, op.ttl)
    end
  end
else
  for i, op in ipairs(ops) do
    local line = { op.index }
    for first = op.index - count + 1, op.index, 1000 do
      local fields = {}
      for n = first, math.min(first + 999, op.index) do fields[#fields + 1] = text(n) end
      for _, amount in ipairs(redis.call('HMGET', op.key, unpack(fields))) do line[#line + 1] = amount or '0' end
    end
    answer[i + 1] = line
  end
end
return answer
