-- Adds a part to a slot of the finest level, once, and marks the coarser slots that it
-- belongs to. A part with a revision replaces a lower one of its id. Returns 1, or 0 if the
-- part was there already.
--
-- KEYS the slot; the counter of marks; the revisions of the slot's parts; the marks of each
--      coarser level
-- ARGV the part's id; its frame; seconds to keep it; seconds to keep marks; its revision, or
--      0; the slot of each coarser level
local revision = tonumber(ARGV[5])
if revision > 0 then
  if revision <= tonumber(redis.call('HGET', KEYS[3], ARGV[1]) or '0') then
    return 0
  end
  redis.call('HSET', KEYS[3], ARGV[1], ARGV[5])
  redis.call('EXPIRE', KEYS[3], ARGV[3])
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
elseif redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 then
  return 0
end
redis.call('EXPIRE', KEYS[1], ARGV[3])
local mark = redis.call('INCR', KEYS[2])
redis.call('EXPIRE', KEYS[2], ARGV[4])
for i = 4, #KEYS do
  redis.call('HSET', KEYS[i], ARGV[i + 2], mark)
  redis.call('EXPIRE', KEYS[i], ARGV[4])
end
return 1
