-- Every request is of one op. So the state of the one key and the numbers of the one
-- limit that are being looked at are locals, and not in tables as in the other scripts.

local name -- of the key, where there is more than the state
local c_n, c_period, c_capacity, c_shape, c_countDenied, c_rate, c_p, c_full, c_width, c_buckets

--: readLimit
c_n, c_period, c_capacity, c_shape, c_countDenied = input[i], input[i + 1], input[i + 2], input[i + 3] == 1, input[i + 4] == 1
c_rate, c_p, c_full, c_width, c_buckets = input[i + 5], input[i + 6], input[i + 7], input[i + 8], input[i + 9]
--> prepare
