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

-- months counts the months from January 1970 to a day, by years of the Gregorian
-- calendar that begin in March, so that a leap day is the last one.
local function months(day)
  day = day + 719468
  local era = math.floor(day / 146097)
  local rest = day - era * 146097
  local year = math.floor((rest - math.floor(rest / 1460) + math.floor(rest / 36524) - math.floor(rest / 146096)) / 365)
  rest = rest - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  return (year + era * 400 - 1970) * 12 + math.floor((5 * rest + 2) / 153) + 2
end

-- index numbers windows as Window.Index does. A window is its width in seconds, 'month' or
-- 'year'.
local function index(window, zone)
  if window == '0' then return 0 end
  local second = math.floor(now / 1000000)
  local ahead = offset(second, zone)
  local width = tonumber(window)
  if not width then
    local n = months(math.floor((second + ahead) / 86400))
    return window == 'month' and n or math.floor(n / 12)
  end
  if width < 86400 then ahead = ahead % width end
  return math.floor((second + ahead) / width)
end
