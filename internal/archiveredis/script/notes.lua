-- Sets a note of a kind: it returns 1, or 0 if another one is there than was expected, or -1 if
-- there is no room. Without one to set, it returns the id and the value of each. It reads all
-- notes, which are long, and removes those whose time has passed or that cannot be read, only
-- then, and for a note that takes no other's place, or if the key may end earlier.
--
-- A value is until when, a space, and the text, which is empty if the note was ended. Times
-- are in Unix microseconds.
--
-- KEYS the notes, by id
-- ARGV now; the last time that is believed; how many notes there may be; the longest id;
--      the longest text
--      and to set one: its id; until when; its text; and to set it only if no other is
--      there: the value that may be there
local key, now, furthest, most = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local id, till, text, was = ARGV[6], tonumber(ARGV[7]), ARGV[8], ARGV[9]

-- until when a note is valid, and its text
local function read(name, value)
  local digits, rest = string.match(value, '^(%d+) (.*)$')
  local time = tonumber(digits or '0')
  if time > now and time <= furthest and name ~= '' and #name <= tonumber(ARGV[4]) and #rest <= tonumber(ARGV[5]) then
    return time, rest
  end
end

-- reads all but the one to set, and counts those that were ended, or were not, as that one
local found, count, latest, first, firstTill = {}, 0, 0
local function look()
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local name, value = all[i], all[i + 1]
    local time, rest = read(name, value)
    if not time then
      redis.call('HDEL', key, name)
    elseif name ~= id then
      if #found < 4 * most then -- more only if somebody else has written them
        found[#found + 1] = name
        found[#found + 1] = value
      end
      latest = math.max(latest, time)
      if (rest == '') == (text == '') then
        count = count + 1
        if not first or time < firstTill or time == firstTill and name < first then
          first, firstTill = name, time
        end
      end
    end
  end
end
if not id then
  look()
  return found
end

local old = redis.call('HGET', key, id) or ''
local oldTill, oldText = read(id, old)
if was and oldTill and old ~= was then return 0 end
if text == '' then
  till = math.max(till, oldTill or 0)
  if till <= now then return 1 end
end
local lasts = redis.call('PTTL', key)
local alike = oldText and (oldText == '') == (text == '') -- it takes the place of the old one
if lasts == -1 or (oldTill or 0) > till or not alike then
  look()
  lasts = 0
  if not alike and count >= most then
    if text ~= '' then return -1 end
    redis.call('HDEL', key, first)
  end
end
redis.call('HSET', key, id, string.format('%.0f ', till) .. text)
local ms = math.ceil((math.max(latest, till) - now) / 1000)
if ms > lasts then redis.call('PEXPIRE', key, string.format('%.0f', ms)) end
return 1
