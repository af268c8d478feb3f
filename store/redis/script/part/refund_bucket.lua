ALGORITHM[0].refund = function(receipt, cost)
  if B[k] <= 0 then return end
  local n, level = c.rate, A[k]
  if B[k] ~= c.n then
    --> recount
  end
  local last = FRESH[k] - divUp(A[k], n)
  local back = min(cost, floor((EXACT - 1) / c.p)) * c.p
  if receipt ~= LATEST and (receipt < FRESH[k] or c.p < c.rate) then
    if c.shape and receipt < FRESH[k] then return end
    back = min(back, max(0, min(EXACT, max(0, receipt - last) * c.rate) - (c.rate - 1)))
  end
  level = level - min(level, back)
  FRESH[k], A[k], B[k] = level > 0 and last + divUp(level, c.rate) or 0, level, c.n
end
ALGORITHM[1].refund = ALGORITHM[0].refund
