--: backFixedWindow
if receipt == FRESH[k] or receipt == LATEST then A[k] = A[k] - min(A[k], units) end
if A[k] == 0 then FRESH[k] = 0 end
