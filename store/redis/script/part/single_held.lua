local c_release = false -- such limits are not for singles

-- The terms of requests, and what they make of a reservation.
local usualDelay, usualLeave, usualDue, usualHead, usualTTL = 0, 0, 0, '', ''
local usualExpires -- of the key
