-- Makes a lease last. ARGV the item and the secret. Returns how long it lasts. If its time
-- was over but nobody has taken the item, it is still the worker's.
local m = member(tonumber(ARGV[first]))
local i, set = held(m, ARGV[first + 1])
if not set or set == dead then
  settle()
  return {'lost'}
end
local expires = math.max(now, release(i.next, i.part)) + visibility
call('ZREM', set, m)
call('ZADD', leased, text(expires), m)
settle()
return {'ok', expires - now}
