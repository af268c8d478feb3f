-- A counter is a hash: the number of a window → the amount in it.
-- ARGV[2] is what to do; ARGV[3] how many windows to read. Each key then has five: its
-- window, how many are kept, for how many milliseconds, its zone, and by how much to
-- change it, or what to set it to.
local verb, count = ARGV[2], tonumber(ARGV[3])
local MOST = 9e18

local ops = {}
for i, key in ipairs(KEYS) do
  local a = 5 * i - 2
  local current = index(ARGV[a + 1], ARGV[a + 4])
  ops[i] = { key = key, index = current, field = text(current), kept = tonumber(ARGV[a + 2]), ttl = ARGV[a + 3], by = ARGV[a + 5] }
end

-- forget removes windows that nobody can read any more, once there are many.
local function forget(op)
  if redis.call('HLEN', op.key) <= op.kept + math.floor(op.kept / 4) + 16 then return end
  for _, field in ipairs(redis.call('HKEYS', op.key)) do
    local n = tonumber(field)
    if not n or n <= op.index - op.kept or n > op.index + op.kept then redis.call('HDEL', op.key, field) end
  end
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
    redis.call('HINCRBY', op.key, op.field, op.by)
    forget(op)
    redis.call('PEXPIRE', op.key, op.ttl)
    answer[i + 1] = { op.index, redis.call('HGET', op.key, op.field) } -- what HINCRBY returns would be rounded
  end
elseif verb == 'set' then
  for i, op in ipairs(ops) do
    answer[i + 1] = { op.index, redis.call('HGET', op.key, op.field) or '0' }
    if op.by == '0' then
      redis.call('HDEL', op.key, op.field)
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
