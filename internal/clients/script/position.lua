-- KEYS: entries, position, changes. What is known of the directory. Redis has lost a part of it if there are not as many entries
-- as clients; without a position, no key must be there. A position that an older version has written does not say how many.
local position = redis.call('HMGET', KEYS[2], 'token', 'number', 'clients')
local token, number = position[1] or '', position[2] or '0'
local entries = redis.call('HLEN', KEYS[1])
local clients = tonumber(position[3] or entries)
if token == '' then
  entries, clients = redis.call('EXISTS', KEYS[1], KEYS[3]), 0
end
