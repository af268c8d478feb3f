ALGORITHM[2].refund = function(receipt, cost)
  if receipt == FRESH[k] or receipt == LATEST then A[k] = A[k] - min(A[k], cost) end
  if A[k] == 0 then FRESH[k] = 0 end
end
