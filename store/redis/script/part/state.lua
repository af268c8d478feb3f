-- The state of a key while it is read or written, and what all scripts begin with.

local oldFresh, oldA, oldB -- as far as it is charged
local changed -- whether it has been
local foreign -- whether it holds something else
local expires -- when Redis forgets it

--: begin
input = { cmsgpack.unpack(ARGV[1]) }
if not input[2] then input = input[1] end -- an array, because they are many
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

--: readState
foreign = false
changed = false
if not head then -- it may be something foreign
  head = pcall('GETRANGE', KEYS[key], '0', '27')
  foreign = type(head) == 'table'
end
if not foreign and #head >= HEAD then
  oldFresh, oldA, oldB, expires = unpack('>I7I7I7I7', head)
  foreign = oldFresh >= EXACT
else
  if not foreign and head ~= '' then foreign = string.byte(head) >= STRANGE end
  oldFresh = 0
  oldA = 0
  oldB = 0
  expires = 0
end

--: writeState
local before = expires
if oldFresh > expires then
  --> setExpires
end
head = pack('>I7I7I7I7', oldFresh, oldA, oldB, expires)
if before > 0 then
  call('SETRANGE', KEYS[key], '0', head)
  if before ~= expires then
    --> setLasts
    call('PEXPIRE', KEYS[key], lasts)
  end
else
  --> setLasts
  call('PSETEX', KEYS[key], lasts, head)
end

--: readLimits
limits = {}
for l = 1, input[i] do
  local at = i + 11 * l - 10
  limits[l] = {
    kind = input[at], n = input[at + 1], period = input[at + 2], capacity = input[at + 3], shape = input[at + 4] == 1,
    countDenied = input[at + 5] == 1, rate = input[at + 6], p = input[at + 7], full = input[at + 8], width = input[at + 9],
    buckets = input[at + 10],
  }
end
i = i + 1 + 11 * input[i]
