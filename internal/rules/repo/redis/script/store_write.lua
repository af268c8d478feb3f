-- Puts a document there if what is there is still what it is based on. Returns 1, or 0 if it is
-- not.
--
-- KEYS the hash; ARGV the sha256 of what it is based on, its own, the document, the channel
if (redis.call('HGET', KEYS[1], 'sha256') or '') ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'sha256', ARGV[2], 'source', ARGV[3])
redis.call('PUBLISH', ARGV[4], ARGV[2])
return 1
