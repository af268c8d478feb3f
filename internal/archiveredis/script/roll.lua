-- Writes the sum of what is below a slot. Returns 1, or 0 if it was not to be written.
--
-- That of a slot that has ended is written if nothing has changed below since it was added
-- up, and counts from then on: its mark is removed. That of one that goes on is written as
-- long as there is a mark, by which everybody knows not to rely on it.
--
-- KEYS the slot; the marks of its level
-- ARGV the mark as it was, or nothing if the slot goes on; the slot as the marks name it;
--      the sum, or nothing if the slot is to stay as it is; seconds to keep it
local mark = redis.call('HGET', KEYS[2], ARGV[2])
if not mark or ARGV[1] ~= '' and ARGV[1] ~= mark then
  return 0
end
if ARGV[3] ~= '' then
  redis.call('SET', KEYS[1], ARGV[3], 'EX', ARGV[4])
end
if ARGV[1] ~= '' then
  redis.call('HDEL', KEYS[2], ARGV[2])
end
return 1
