-- ARGV[1] is the time in microseconds; empty for that of Redis.
local now = tonumber(ARGV[1])
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end

-- text writes a whole number in full; Lua by itself would round it.
local function text(n) return string.format('%.0f', n) end

-- offset is how far the clocks of a zone are ahead, in seconds. A zone is what it is
-- ahead, until when, what then, until when, and what after that; empty for UTC.
local function offset(second, zone)
  if zone == '' then return 0 end
  local before, from, here, to, after = string.match(zone, '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
  if second < tonumber(from) then return tonumber(before) end
  if second < tonumber(to) then return tonumber(here) end
  return tonumber(after)
end

-- index numbers the windows of a width in seconds, as Window.Index does.
local function index(width, zone)
  if width == 0 then return 0 end
  local second = math.floor(now / 1000000)
  local ahead = offset(second, zone)
  if width < 86400 then ahead = ahead % width end
  return math.floor((second + ahead) / width)
end
