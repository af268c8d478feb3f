ALGORITHM[3].refund = function(receipt, units)
  --> backSlidingWindow
end
