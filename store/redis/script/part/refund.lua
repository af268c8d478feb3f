-- Giving back, as in refund.go of the Go package. Each algorithm's part changes the
-- state of k; with FRESH at 0 there is nothing left of it.

ALGORITHM[0].refund = function(receipt, cost)
  if B[k] <= 0 then return end
  local rate, level = c.rate, A[k]
  if B[k] ~= c.n then rate, level = recount(c, level, B[k]) end
  local last = FRESH[k] - divUp(A[k], rate)
  local back = min(cost, floor((EXACT - 1) / c.p)) * c.p
  if receipt ~= LATEST and (receipt < FRESH[k] or c.p < c.rate) then
    if c.shape and receipt < FRESH[k] then return end
    back = min(back, max(0, min(EXACT, max(0, receipt - last) * c.rate) - (c.rate - 1)))
  end
  level = level - min(level, back)
  FRESH[k], A[k], B[k] = level > 0 and last + divUp(level, c.rate) or 0, level, c.n
end
ALGORITHM[1].refund = ALGORITHM[0].refund

ALGORITHM[4].refund = function(receipt, cost)
  enterLog()
  local taken = receipt - c.period
  if receipt == LATEST and cost < B[k] then
    pages().refundNewest(cost)
  elseif receipt == LATEST then
    FRESH[k] = 0
  elseif taken <= lastTime then
    pages().refund(taken, cost)
    if B[k] == 0 then FRESH[k] = 0 end
  end
end

ALGORITHM[5].refund = function(receipt, cost)
  openTail()
  if not readableBuckets() then return end
  if receipt == LATEST then receipt = FRESH[k] end
  local latest, i, words = newestOf(FRESH[k]), newestOf(receipt), WORDS[k]
  local oldest = oldestAt(latest * c.width)
  if i == latest then
    A[k] = A[k] - min(A[k], cost)
  elseif oldest <= i and i < latest then
    local count = word(i % words)
    local back = min(count, cost, B[k])
    setWord(i % words, count - back)
    B[k] = B[k] - back
  end
  if A[k] > 0 then return end
  for j = latest - 1, oldest, -1 do
    local count = word(j % words)
    if count > 0 then
      setWord(j % words, 0)
      for l = oldestAt(j * c.width), oldest - 1 do setWord(l % words, 0) end
      FRESH[k], A[k], B[k] = stopsCounting(j), count, max(0, B[k] - count)
      return
    end
  end
  FRESH[k] = 0
end

-- giveBack takes the last op first, so that what was charged on top of another charge
-- of the same request is off it before that is given back.
giveBack = function(n)
  for i = n, 1, -1 do
    k, c = OP_KEY[i], OP_LIMIT[i]
    if FRESH[k] > 0 and OP_LAST[i] ~= 0 then
      c.algorithm.refund(OP_LAST[i], OP_COST[i])
      CHANGED[k] = true
      if FRESH[k] <= 0 then forget() end
    end
  end
end
