-- Returns the size of the document, and the document if it is not too large. Returns nothing if
-- it is the one that the client knows already.
--
-- KEYS the hash; ARGV the sha256 that is known, the largest size
if (redis.call('HGET', KEYS[1], 'sha256') or '') == ARGV[1] then
  return {}
end
local size = redis.call('HSTRLEN', KEYS[1], 'source')
if size > tonumber(ARGV[2]) then
  return {tostring(size)}
end
return {tostring(size), redis.call('HGET', KEYS[1], 'source') or ''}
