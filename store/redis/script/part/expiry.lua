-- Redis forgets a key some time after it is as good as new: by a quarter of the time
-- until then, and at least a second. So who is charged again and again need not have
-- that set each time. When it will be is the fourth number of a state.
local SECOND = 1000000

local isTest -- whether the clock is a test's, and not Redis's own
local lasts -- how long Redis keeps the key, in words

--: setExpires
expires = oldFresh - now
expires = oldFresh + max(SECOND, (expires - expires % 4) / 4)

--: setLasts
-- In words, because Redis would write a number as a fraction, digit by digit. For a test it
-- is an hour.
lasts = '3600000'
if not isTest then lasts = format('%d', max(1, divUp(expires - now, 1000))) end
