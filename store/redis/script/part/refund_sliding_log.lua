-- A script of this algorithm alone has no table of what it does.
ALGORITHM[4] = ALGORITHM[4] or {}

-- refundOpen does what refund of pages does, for a log that has none, as most. Of the entries
-- before and after it changes the ranks of the fewer ones.
local function refundOpen(time, cost)
  local open, last = log.open, #log.open - 8
  local i = find(open, 0, true, time)
  local top = rankAt(open, last)
  local newer, since = (top - rankAt(open, i)) % ranks, B[k]
  if i > 0 then since = min(since, (top - rankAt(open, i - 8)) % ranks) end
  local has = since - newer
  local back = min(cost, has)
  if timeAt(open, i) ~= time or back <= 0 then return end
  if back == has then open = sub(open, 1, i) .. sub(open, i + 9) end
  local from, to, by = i, #open, -back
  if i < #open / 2 then from, to, by = 0, i, back end
  local parts, n = { sub(open, 1, from) }, 1
  for j = from, to - 8, 8 do
    local high, low = unpack('>I4I4', open, j + 1)
    local rank = low % ranks
    n = n + 1
    parts[n] = pack('>I4I4', high, low - rank + (rank + by) % ranks)
  end
  parts[n + 1] = sub(open, to + 1)
  open = table.concat(parts)
  log.open, A[k], B[k] = open, (A[k] - back) % RANKS, B[k] - back
  FRESH[k] = #open > 0 and timeAt(open, #open - 8) + c.period or 0
end

ALGORITHM[4].refund = function(receipt, cost)
  enterLog()
  local taken = receipt - c.period
  if receipt == LATEST and cost < B[k] then
    pages().refundNewest(cost)
  elseif receipt == LATEST then
    FRESH[k] = 0
  elseif taken <= lastTime and log.first == 0 then
    if #log.open > 0 then refundOpen(taken, cost) end
    if B[k] == 0 then FRESH[k] = 0 end
  elseif taken <= lastTime then
    pages().refund(taken, cost)
    if B[k] == 0 then FRESH[k] = 0 end
  end
end
