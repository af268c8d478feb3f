-- Every request is of one op. So the state of the one key and the numbers of the one
-- limit that are being looked at are locals, and not in tables as in the other scripts.

local oldFresh, oldA, oldB -- the state of the key, as far as it is charged
local changed -- whether it has been
local foreign -- whether it holds something else
local expires -- when Redis forgets it
local name -- of the key, where there is more than the state
local c_n, c_period, c_capacity, c_shape, c_countDenied, c_rate, c_p, c_full, c_width, c_buckets

--: begin
input = cmsgpack.unpack(ARGV[1])
now = input[1]
if now < 0 then now, i = -1 - now, 4 end
isTest = now > 0
if isTest then
  now = now - 1 -- so that tests can begin at 0
else
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
if i > 2 and (now < input[2] or now >= input[3]) then return cmsgpack.pack({ now }) end
out[1], length = now, 1

--: readLimit
c_n, c_period, c_capacity, c_shape, c_countDenied = input[i], input[i + 1], input[i + 2], input[i + 3] == 1, input[i + 4] == 1
c_rate, c_p, c_full, c_width, c_buckets = input[i + 5], input[i + 6], input[i + 7], input[i + 8], input[i + 9]
--> prepare

--: readState
-- What MGET does not find may be something foreign, too.
head = head or pcall('GETRANGE', KEYS[key], '0', '27')
foreign = type(head) == 'table'
oldFresh, oldA, oldB, expires, changed = 0, 0, 0, 0, false
if not foreign and #head >= HEAD then
  oldFresh, oldA, oldB, expires = unpack('>I7I7I7I7', head)
  foreign = oldFresh >= EXACT
end

--: writeState
local before = expires
if oldFresh > expires then expires = expiry(oldFresh) end
head = pack('>I7I7I7I7', oldFresh, oldA, oldB, expires)
if before > 0 then
  call('SETRANGE', KEYS[key], '0', head)
  if before ~= expires then call('PEXPIRE', KEYS[key], ttl(expires)) end
else
  call('PSETEX', KEYS[key], ttl(expires), head)
end
