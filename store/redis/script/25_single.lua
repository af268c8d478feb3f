-- Instead of columns, where every request is one op to take: the state of the one key
-- and the numbers of the one limit that are being looked at, as locals. What elsewhere
-- is FRESH[k] or c.period is oldFresh or c_period here.

local oldFresh, oldA, oldB -- the state of the key, as far as it is charged
local changed -- whether it has been
local expires -- when Redis forgets it
local c_n, c_period, c_capacity, c_shape, c_countDenied, c_rate, c_p, c_full, c_width, c_buckets
