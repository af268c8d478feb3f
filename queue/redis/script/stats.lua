-- Tells what is in the queue: how many are ready, delayed, leased and dead, how many were
-- dropped, when the oldest that is ready was pushed, the next slot, and the time.
local oldest = now
local m = call('ZRANGE', ready, 0, 0)[1]
local i = m and read(m)
if i then
  oldest = math.min(now, i.pushed)
end
settle()
local next, part = slot()
return {
  call('ZCARD', ready), call('ZCARD', delayed), call('ZCARD', leased), call('ZCARD', dead),
  tonumber(call('HGET', meta, 'dropped') or '0'), oldest, next, part, now,
}
