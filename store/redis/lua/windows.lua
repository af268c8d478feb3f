-- What fixed and sliding windows have in common.

-- added is a count with more units in it; without a debt it stays where it can be read exactly.
local function added(used, units, debt)
  local total = used + units
  if total > EXACT / 8 and not debt then return math.max(used, EXACT / 8) end -- MAX_UNITS
  return total
end

local function roomOfWindow(c, _, used) return math.min(11 * c.n, EXACT / 2) - used end
