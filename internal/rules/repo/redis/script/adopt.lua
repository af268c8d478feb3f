-- Makes a proper version of a document that somebody has put there by hand, if it is still
-- the one that was found good. Returns its number and time, or nothing if it is not.
--
-- ARGV how many versions to keep, and how many bytes; its number and sha256 as they are;
--      the sha1 of its source; sha256, author and summary as they should be; the channel
local versions, bytes, number, oldSum, sha1, sha256, author, summary, channel = unpack(ARGV)
local source = redis.call('HGET', current, 'source')
if not is(number, oldSum) or not source or redis.sha1hex(source) ~= sha1 then
  return {}
end
-- Who has changed the document but not the number means a new version all the same.
if redis.call('HEXISTS', history, number) == 1 then
  number = next(number)
end
local time = now()
redis.call('HSET', current, 'number', number, 'time', time, 'author', author, 'summary', summary, 'sha256', sha256)
keep(number, time, author, summary, source, tonumber(versions), tonumber(bytes))
redis.call('PUBLISH', channel, number)
return {number, time}
