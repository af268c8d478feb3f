--: letGo
c.algorithm.refund(receipt, units)
