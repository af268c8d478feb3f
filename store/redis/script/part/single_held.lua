-- What the parts about holds ask of an algorithm, of which there is one.
local c_algorithm = {}
local ALGORITHM = { [2] = c_algorithm, [3] = c_algorithm }

local c_release = false -- such limits are not for singles

local function forget() oldFresh, oldA, oldB = 0, 0, 0 end
