-- Releases what is ready. ARGV how many, how far ahead, and the secret of the leases.
-- Returns how long until it makes sense to ask again, -1 for never; the time; and the items.
local most, ahead, secret = tonumber(ARGV[first]), tonumber(ARGV[first + 1]), ARGV[first + 2]
local next, part = slot()
local leases, size = {}, 0
while #leases < most and size < maxPage and release(next, part) <= now + ahead do
  local m = call('ZRANGE', ready, 0, 0)[1]
  if not m then
    break
  end
  call('ZREM', ready, m)
  local i, payload = read(m), call('HGET', work, m)
  if not i or not payload then
    erase(m, i and i.id) -- somebody has removed a part of it by hand
  else
    local turn = release(next, part)
    i.tries, i.secret, i.next, i.part, i.rate = i.tries + 1, secret, next, part, rate
    call('ZADD', leased, text(turn + visibility), m)
    write(i)
    next, part = after(next, part)
    keepPace(next, part)
    next, part = slotAfter(next, part, rate)
    size = size + #payload
    leases[#leases + 1] = {tonumber(m), i.id, payload, i.tries, i.pushed, turn, turn + visibility}
  end
end
local wait = -1
if length() > 0 then
  local soonest = now
  if call('ZCARD', ready) == 0 then
    soonest = math.huge
    for _, set in ipairs({delayed, leased}) do
      local top = call('ZRANGE', set, 0, 0, 'WITHSCORES')
      if top[2] then
        soonest = math.min(soonest, tonumber(top[2]))
      end
    end
  end
  wait = math.max(soonest, release(next, part) - ahead, now) - now
end
settle()
return {wait, now, leases}
