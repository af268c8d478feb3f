-- Accepts work. ARGV its ID and payload. Returns what is to be said of it: a word, number,
-- position, the next slot, and the time.
local id, payload = ARGV[first], ARGV[first + 1]
local next, part = slot()
if id ~= '' then
  local m = call('HGET', ids, id)
  local set = m and stateOf(m)
  if set then
    local position = 0
    if set == ready then
      position = call('ZRANK', ready, m) + 1
    end
    settle()
    local words = {[ready] = 'ready', [delayed] = 'delayed', [leased] = 'leased', [dead] = 'dead'}
    return {words[set], tonumber(m), position, next, part, now}
  end
  local untilTime = call('ZSCORE', done, id)
  if untilTime and tonumber(untilTime) > now then
    settle()
    return {'done', 0, 0, next, part, now}
  end
end
if length() >= capacity then
  settle()
  return {'full'}
end
local number = append(id, payload)
local position = call('ZCARD', ready)
settle()
if position == 1 then
  wake()
end
return {'new', number, position, next, part, now}
