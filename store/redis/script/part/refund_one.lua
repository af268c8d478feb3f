-- refundOne gives back the only op of a request, which is in the input from i on, and says how
-- the key is then.
refundOne = function(i)
  k, c, cost = input[i], limits[input[i + 1]], input[i + 2]
  if cost < 0 then cost = -1 - cost end
  if not FRESH[k] then loadFor(c, k) end
  if FOREIGN[k] then
    --> refuseForeign
    return
  end
  if FRESH[k] > 0 and input[i + 3] ~= 0 then
    c.algorithm.refund(input[i + 3], cost)
    CHANGED[k] = true
    if FRESH[k] <= 0 then forget() end
  end
  maxDelay, leave = -1, input[i + 4]
  --> judge
  debt, reset = false, max(0, FRESH[k] - now)
  --> answer
end
