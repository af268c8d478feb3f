-- Lists dead letters. ARGV the number after which to begin, and how many.
local letters, size = {}, 0
for _, m in ipairs(call('ZRANGEBYSCORE', dead, '(' .. ARGV[first], '+inf', 'LIMIT', 0, tonumber(ARGV[first + 1]))) do
  if size >= maxPage then
    break
  end
  local i, payload = read(m), call('HGET', work, m)
  if i and payload then
    size = size + #payload
    letters[#letters + 1] = {tonumber(m), i.id, payload, i.tries, i.pushed, i.died, i.reason}
  end
end
settle()
return letters
