-- A leaderboard is a ring of sorted sets, one for each window that can be read. KEYS[1]
-- is a hash that tells which window each has, and how many members were dropped.
-- ARGV: 2 what to do, 3 its window, 4 its zone, 5 how many windows
-- ago, 6 for how many milliseconds to keep it, 7 the most members, 8 how many are left
-- when there were more; then what is to be done.
local verb, meta, ring = ARGV[2], KEYS[1], #KEYS - 1
local current = index(ARGV[3], ARGV[4]) - tonumber(ARGV[5])
local slot = text(current % ring)
local set = KEYS[2 + current % ring]
local mine = redis.call('HGET', meta, slot) == text(current)

if verb == 'score' then
  if not fits(mine and set, 9) then return { 'range' } end
  if not mine then
    redis.call('HSET', meta, slot, text(current)) -- first: a Redis that is full refuses it
    redis.call('DEL', set)
    redis.call('HDEL', meta, 'dropped' .. slot)
  end
  local after = {}
  for i = 9, #ARGV, 2 do after[#after + 1] = text(raise(set, ARGV[i], tonumber(ARGV[i + 1]))) end
  if redis.call('ZCARD', set) > tonumber(ARGV[7]) then
    redis.call('HINCRBY', meta, 'dropped' .. slot, redis.call('ZREMRANGEBYRANK', set, ARGV[8], -1))
  end
  redis.call('PEXPIRE', set, ARGV[6])
  redis.call('PEXPIRE', meta, ARGV[6])
  return { 'ok', current, after }
end

if verb == 'top' then
  if not mine then return { 'ok', current, {}, 0, '0' } end
  return { 'ok', current, list(set, tonumber(ARGV[9])), redis.call('ZCARD', set), redis.call('HGET', meta, 'dropped' .. slot) or '0' }
end

return { 'ok', current, mine and standing(set, 9) or {} }
