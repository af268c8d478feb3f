-- Makes a version if what is current is still what it is based on. Returns its number and
-- time, or nothing if it is not.
--
-- ARGV how many versions to keep, and how many bytes; the number and the sha256 of what
--      it is based on; sha256, author, summary and source of the new one; the channel
local versions, bytes, baseNumber, baseSum, sha256, author, summary, source, channel = unpack(ARGV)
if not is(baseNumber, baseSum) then
  return {}
end
local number, time = next(baseNumber), now()
redis.call('HSET', current, 'number', number, 'time', time, 'author', author, 'summary', summary, 'sha256', sha256, 'source', source)
keep(number, time, author, summary, source, tonumber(versions), tonumber(bytes))
redis.call('PUBLISH', channel, number)
return {number, time}
