-- Pushes dead letters again. ARGV their numbers. Returns how many, and 1 if the queue is
-- full.
local idle, moved, full = call('ZCARD', ready) == 0, 0, 0
for at = first, #ARGV do
  local m = member(tonumber(ARGV[at]))
  if call('ZSCORE', dead, m) then
    if length() >= capacity then
      full = 1
      break
    end
    local i, payload = read(m), call('HGET', work, m)
    call('ZREM', dead, m)
    erase(m, i and i.id)
    if i and payload then
      append(i.id, payload)
      moved = moved + 1
    end
  end
end
settle()
if idle and moved > 0 then
  wake()
end
return {moved, full}
