-- Removes the notes of a kind whose time has passed, or that cannot be read. Then it sets
-- one: it returns 1, or 0 if another one is there than was expected, or -1 if there is no
-- room. Without one to set, it returns the id and the value of each.
--
-- A value is until when, a space, and the text, which is empty if the note was ended. Times
-- are in Unix microseconds.
--
-- KEYS the notes, by id
-- ARGV now; the last time that is believed; how many notes there may be; the longest id;
--      the longest text
--      and to set one: its id; until when; its text; and to set it only if no other is
--      there: the value that may be there
local now, furthest, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local id, till, text, was = ARGV[6], tonumber(ARGV[7]), ARGV[8], ARGV[9]
local found, live, ended, latest = {}, 0, 0, 0
local old, oldTill, oldText, first, firstTill
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local name, value = all[i], all[i + 1]
  local digits, rest = string.match(value, '^(%d+) (.*)$')
  local time = tonumber(digits or '0')
  if time <= now or time > furthest or name == '' or #name > tonumber(ARGV[4]) or #rest > tonumber(ARGV[5]) then
    redis.call('HDEL', KEYS[1], name)
  else
    if #found < 4 * most then -- more only if somebody else has written them
      found[#found + 1] = name
      found[#found + 1] = value
    end
    if name == id then
      old, oldTill, oldText = value, time, rest
    else
      latest = math.max(latest, time)
      if rest ~= '' then
        live = live + 1
      else
        ended = ended + 1
        if not first or time < firstTill or time == firstTill and name < first then
          first, firstTill = name, time
        end
      end
    end
  end
end
if not id then
  return found
end

if was and old and old ~= was then
  return 0
end
if text == '' then
  till = math.max(till, oldTill or 0)
  if till <= now then
    return 1
  end
  if ended >= most then
    redis.call('HDEL', KEYS[1], first)
  end
elseif live >= most and (oldText or '') == '' then
  return -1
end
redis.call('HSET', KEYS[1], id, string.format('%.0f ', till) .. text)
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil((math.max(latest, till) - now) / 1000)))
return 1
