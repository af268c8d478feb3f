-- A script of this algorithm alone has no table of what it does.
ALGORITHM[4] = ALGORITHM[4] or {}

ALGORITHM[4].refund = function(of, back)
  receipt, units = of, back
  --> refundLog
end
