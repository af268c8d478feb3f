--: recount
-- A level that was counted under another N becomes one in parts of this limit, rounded up;
-- n is the rate of the other.
local _, mulDivUp, gcd = wide()
local g = gcd(B[k], c.period)
local p = c.period / g
n = B[k] / g
if floor(level / p) >= floor((EXACT - 1) / c.p) then level = EXACT - 1 else level = mulDivUp(level, c.p, p) end
