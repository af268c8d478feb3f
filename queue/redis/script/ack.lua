-- Ends a lease: the item is done. ARGV the item and the secret. Returns whether it was held.
local m = member(tonumber(ARGV[first]))
local i, set = held(m, ARGV[first + 1])
if not set then
  settle()
  return {'lost'}
end
call('ZREM', set, m)
erase(m, i.id)
if i.id ~= '' and remember > 0 then
  call('ZADD', done, text(now + remember), i.id)
  local over = math.min(maxSweep, call('ZCARD', done) - capacity)
  if over > 0 then
    call('ZREMRANGEBYRANK', done, 0, over - 1)
  end
  call('PEXPIRE', done, text(math.ceil(remember / 1000) + 60000))
end
settle()
return {'ok'}
