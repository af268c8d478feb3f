-- A sequence is the last number that was given out. It may expire once the time has
-- passed it. ARGV[2] is after how many milliseconds.
local id = math.max(tonumber(redis.call('GET', KEYS[1]) or 0) + 1, now)
redis.call('SET', KEYS[1], text(id), 'PX', text(math.ceil((id - now) / 1000) + tonumber(ARGV[2])))
return { 'ok', text(id) }
