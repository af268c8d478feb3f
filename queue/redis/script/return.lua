-- Undoes a lease. ARGV the item and the secret. Returns whether it was held. Only the last
-- turn can be given to somebody else.
local m = member(tonumber(ARGV[first]))
local i, set = held(m, ARGV[first + 1])
if not set or set == dead then
  settle()
  return {'lost'}
end
call('ZREM', set, m)
call('ZADD', ready, m, m)
local pace = call('HMGET', meta, 'next', 'part', 'rate')
if i.rate == rate and tonumber(pace[3] or '0') == rate then
  local next, part = after(i.next, i.part)
  if tonumber(pace[1]) == next and tonumber(pace[2]) == part then
    keepPace(i.next, i.part)
  end
end
i.tries, i.secret = i.tries - 1, '-'
write(i)
settle()
wake()
return {'ok'}
