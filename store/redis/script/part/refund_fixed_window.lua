ALGORITHM[2].refund = function(receipt, units)
  --> backFixedWindow
end
