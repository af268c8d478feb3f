-- Adds a part to a slot of the finest level, once, and marks the coarser slots that it
-- belongs to. Returns 1, or 0 if the part was there already.
--
-- KEYS the slot; the counter of marks; the marks of each coarser level
-- ARGV the part's id; its frame; seconds to keep it; seconds to keep marks; the slot of
--      each coarser level
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 then
  return 0
end
redis.call('EXPIRE', KEYS[1], ARGV[3])
local mark = redis.call('INCR', KEYS[2])
redis.call('EXPIRE', KEYS[2], ARGV[4])
for i = 3, #KEYS do
  redis.call('HSET', KEYS[i], ARGV[i + 2], mark)
  redis.call('EXPIRE', KEYS[i], ARGV[4])
end
return 1
