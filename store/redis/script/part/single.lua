-- Every request is one op to take. So the state of the one key and the numbers of the one
-- limit that are being looked at are locals, and not in tables as in the other scripts.

local oldFresh, oldA, oldB -- the state of the key, as far as it is charged
local changed -- whether it has been
local expires -- when Redis forgets it
local c_n, c_period, c_capacity, c_shape, c_countDenied, c_rate, c_p, c_full, c_width, c_buckets
