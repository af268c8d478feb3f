-- Returns number, time, author, summary and sha256 of what is current, the size of its
-- source, and the source if it is not too large: a client should not have to read what it
-- will not use. Returns nothing if that is what the client knows already.
--
-- KEYS current; ARGV number, sha256 and size that are known, the largest size
local fields = redis.call('HMGET', KEYS[1], 'number', 'time', 'author', 'summary', 'sha256')
for i = 1, 5 do
  fields[i] = fields[i] or ''
end
local size = redis.call('HSTRLEN', KEYS[1], 'source')
fields[6] = tostring(size)
if fields[1] == ARGV[1] and fields[5] == ARGV[2] and fields[6] == ARGV[3] then
  return {}
end
fields[7] = ''
if size > 0 and size <= tonumber(ARGV[4]) then
  fields[7] = redis.call('HGET', KEYS[1], 'source')
end
return fields
