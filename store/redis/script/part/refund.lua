-- Giving back, as in refund.go of the Go package. Each algorithm's part changes the
-- state of k; with FRESH at 0 there is nothing left of it.

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
