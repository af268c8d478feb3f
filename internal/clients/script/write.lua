-- KEYS: entries, position, changes. ARGV: the token and the number of the base, the token of this write, the channel, how many
-- changes are kept, and a name and a text for each change; the text of a client that is deleted is empty.
local token = redis.call('HGET', KEYS[2], 'token') or ''
local number = tonumber(redis.call('HGET', KEYS[2], 'number') or '0')
if token ~= ARGV[1] or number ~= tonumber(ARGV[2]) then
  return {}
end
if token == '' then
  redis.call('DEL', KEYS[1], KEYS[3])
end
for i = 6, #ARGV, 2 do
  number = number + 1
  if ARGV[i + 1] == '' then
    redis.call('HDEL', KEYS[1], ARGV[i])
  else
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  end
  redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[5], string.format('%.0f-0', number), 'name', ARGV[i], 'entry', ARGV[i + 1], 'token', ARGV[3])
end
local text = string.format('%.0f', number)
redis.call('HSET', KEYS[2], 'token', ARGV[3], 'number', text)
redis.call('PUBLISH', ARGV[4], text)
return {ARGV[3], text}
