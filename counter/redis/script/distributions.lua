-- ARGV[2] is how many windows to read. Each distribution has two keys more, and three in ARGV:
-- its window, its zone, and the number of the first key's window.
local count = tonumber(ARGV[2])
local answer = { 'ok' }
local a = 3
for k = 1, #KEYS, count + 2 do
  local at, current = place(ARGV[a], ARGV[a + 1], ARGV[a + 2], k, count + 2)
  if not at or at - k < count - 1 then return { 'when', text(now) } end
  local line = { current }
  for i = at - count + 1, at do line[#line + 1] = redis.call('HGETALL', KEYS[i]) end
  answer[#answer + 1] = line
  a = a + 3
end
return answer
