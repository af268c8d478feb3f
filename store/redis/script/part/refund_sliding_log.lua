--: refundLog
-- Units of the entry of a receipt, or the newest. Without pages, which most logs have none of,
-- the ranks change of the fewer entries: those before it, or those after.
--> enterLog
local taken, open = receipt - c.period, log.open
if receipt == LATEST and units >= B[k] then
  FRESH[k] = 0
elseif receipt == LATEST and log.first > 0 then
  pages().refundNewest(units)
elseif receipt == LATEST then
  local i = find(open, 0, false, units)
  local taken, after = timeAt(open, i), rankAt(open, #open - 8) - units
  log.open = sub(open, 1, i)
  --> addEntry
  FRESH[k], A[k], B[k] = taken + c.period, (A[k] - units) % RANKS, B[k] - units
elseif taken <= lastTime and log.first > 0 then
  pages().refund(taken, units)
elseif taken <= lastTime and #open > 0 then
  local i, last, isThere = 0, #open - 8, taken == lastTime
  if isThere then
    i = last
  else
    if last > 8 then i = find(open, 0, true, taken) end
    isThere = timeAt(open, i) == taken
  end
  local rank, newer, has = rankAt(open, i), 0, B[k]
  if i < last then newer = (rankAt(open, last) - rank) % ranks end
  if i > 0 then has = min(has, (rank - rankAt(open, i - 8)) % ranks + newer) end
  has = has - newer
  local back = min(units, has)
  if isThere and back > 0 then
    if back == has then
      open = sub(open, 1, i) .. sub(open, i + 9)
      if i == 0 and last == 0 then FRESH[k] = 0 elseif i == last then FRESH[k] = timeAt(open, i - 8) + c.period end
    end
    local from, to, by = i, #open, -back
    if i < #open / 2 then from, to, by = 0, i, back end
    if from < to then
      local parts, n = { sub(open, 1, from) }, 1
      for j = from, to - 8, 8 do
        local high, low = unpack('>I4I4', open, j + 1)
        local rank = low % ranks
        n = n + 1
        parts[n] = pack('>I4I4', high, low - rank + (rank + by) % ranks)
      end
      parts[n + 1] = sub(open, to + 1)
      open = table.concat(parts)
    end
    log.open, A[k], B[k] = open, (A[k] - back) % RANKS, B[k] - back
  end
end
if B[k] == 0 then FRESH[k] = 0 end
