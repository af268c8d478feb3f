-- Each distribution has three keys, and in ARGV from 2 on: its window, its zone, the number of
-- the first key's window, for how many milliseconds to keep it, the sum, least and greatest of
-- the values, and how many buckets there are; then the numbers and counts of these.
local MOST = 9e18

-- less compares whole numbers that are too large for Lua, and not negative.
local function less(a, b) return #a < #b or #a == #b and a < b end

local ops, sums = {}, {}
local k, a = 1, 2
while k <= #KEYS do
  local at = place(ARGV[a], ARGV[a + 1], ARGV[a + 2], k, 3)
  if not at then return { 'when', text(now) } end
  local op = { key = KEYS[at], ttl = ARGV[a + 3], sum = ARGV[a + 4], min = ARGV[a + 5], max = ARGV[a + 6], first = a + 8, last = a + 7 + 2 * tonumber(ARGV[a + 7]) }
  sums[op.key] = (sums[op.key] or tonumber(redis.call('HGET', op.key, 'sum') or 0)) + tonumber(op.sum)
  if sums[op.key] > MOST then return { 'range' } end
  ops[#ops + 1] = op
  k, a = k + 3, op.last + 1
end

local answer = { 'ok' }
for i, op in ipairs(ops) do
  redis.call('HINCRBY', op.key, 'sum', op.sum)
  local known = redis.call('HMGET', op.key, 'min', 'max')
  if not known[1] or less(op.min, known[1]) then redis.call('HSET', op.key, 'min', op.min) end
  if not known[2] or less(known[2], op.max) then redis.call('HSET', op.key, 'max', op.max) end
  for j = op.first, op.last, 2 do redis.call('HINCRBY', op.key, ARGV[j], ARGV[j + 1]) end
  redis.call('PEXPIRE', op.key, op.ttl)
  answer[i + 1] = 1
end
return answer
