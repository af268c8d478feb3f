local function newestOf(left) return floor((left + 1 - c.period) / c.width) - 1 end

ALGORITHM[5].refund = function(receipt, cost)
  --> openTail
  if c.buckets > WORDS[k] or newestOf(FRESH[k]) < 0 then return end
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
