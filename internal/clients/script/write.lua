-- ARGV: the token and the number of the base, the token of this write, the channel, how many changes are kept, and a name and a text
-- for each change; the text of a client that is deleted is empty. Returns 1, or 0 if there is another position, or not all is there.
number = tonumber(number)
if token ~= ARGV[1] or number ~= tonumber(ARGV[2]) or entries ~= clients then
  return 0
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
redis.call('HSET', KEYS[2], 'token', ARGV[3], 'number', text, 'clients', redis.call('HLEN', KEYS[1]))
redis.call('PUBLISH', ARGV[4], text)
return 1
