-- What the parts about holds ask of an algorithm, of which there is one.
local c_algorithm = {}
local ALGORITHM = { [0] = c_algorithm, c_algorithm, c_algorithm, c_algorithm }

local function forget() oldFresh, oldA, oldB = 0, 0, 0 end
