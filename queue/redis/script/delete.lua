-- Forgets dead letters. ARGV their numbers. Returns how many.
local deleted = 0
for at = first, #ARGV do
  local m = member(tonumber(ARGV[at]))
  local i = read(m)
  if call('ZREM', dead, m) == 1 then
    erase(m, i and i.id)
    deleted = deleted + 1
  end
end
settle()
return {deleted}
