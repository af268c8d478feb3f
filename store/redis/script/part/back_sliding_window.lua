--: backSlidingWindow
if receipt == LATEST then receipt = FRESH[k] end
local start, taken = windowStart(c.period, FRESH[k]), windowStart(c.period, receipt)
if taken == start then
  A[k] = A[k] - min(A[k], units)
elseif taken == start - c.period then
  B[k] = B[k] - min(B[k], units)
end
if A[k] > 0 then
  FRESH[k] = start + c.period + faded(c.period, A[k], 0)
elseif B[k] > 0 then
  FRESH[k], A[k], B[k] = start + faded(c.period, B[k], 0), B[k], c.n
else
  FRESH[k] = 0
end
