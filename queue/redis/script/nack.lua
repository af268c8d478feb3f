-- Ends a lease: the item has failed. ARGV the item, the secret, the reason, and 1 for a
-- dead letter at once. Returns what becomes of it, and after how long it is tried again.
local m, reason, atOnce = member(tonumber(ARGV[first])), ARGV[first + 2], ARGV[first + 3] == '1'
local i, set = held(m, ARGV[first + 1])
if not set or set == dead then
  settle()
  return {'lost'}
end
call('ZREM', set, m)
i.secret = '-'
if atOnce or i.tries >= maxTries then
  bury(i, reason)
  settle()
  return {'dead', 0}
end
local back = backoff
for _ = 2, i.tries do
  if back >= maxBackoff then
    break
  end
  back = back * 2
end
back = math.min(back, maxBackoff)
call('ZADD', delayed, text(now + back), m)
write(i)
settle()
if call('ZCARD', ready) == 0 then
  wake()
end
return {'delayed', back}
