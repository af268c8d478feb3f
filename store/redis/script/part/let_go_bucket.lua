-- What a bucket gives back of a hold: what has not drained of it, if what was there first
-- drains first. Holds that were reserved later move up by as much.

--: openLevels
LEVELS, SINCE = {}, {}
for j = 1, listed do LEVELS[j], SINCE[j] = unpack('>I7I7', list, j * ENTRY - 21) end

--: closeLevels
local parts = {}
for j = 1, listed do
  parts[j] = cut(list, (j - 1) * ENTRY + 1, j * ENTRY - 22) .. pack('>I7', LEVELS[j]) .. cut(list, j * ENTRY - 14, j * ENTRY)
end
list, LEVELS = table.concat(parts), nil
from, to = 0, #list

--: letGoBucket
if B[k] > 0 and (not c.shape or receipt == FRESH[k]) then
  local rate, full = c.rate, A[k]
  local rest = full
  if B[k] ~= c.n then
    local n, level = rate, full
    --> recount
    rate, full = n, level
  end
  local part = rest % rate
  local last = FRESH[k] - (rest - part) / rate
  if part > 0 then last = last - 1 end
  local back = units * c.p
  rest = level
  if last > since then
    -- So much has left the bucket at most, if its N may have been another.
    local most = (last - since) * c.rate
    if B[k] > c.n then
      local _, mulDivUp, gcd = wide()
      local g = gcd(B[k], c.period)
      local n, p = B[k] / g, c.period / g
      local other = (last - since) * n
      if other >= EXACT or floor(other / p) >= floor((EXACT - 1) / c.p) then
        most = EXACT
      else
        most = max(most, mulDivUp(other, c.p, p))
      end
    end
    rest = level - most
  end
  if back > full then back = full end
  if back > rest then back = rest end
  if back > 0 then
    if LEVELS or listed > 0 then
      local isOpen = LEVELS
      if not isOpen then
        --> openLevels
      end
      for j = 1, listed do
        if SINCE[j] > since or SINCE[j] == since and LEVELS[j] > level then LEVELS[j] = max(0, LEVELS[j] - back) end
      end
      if not isOpen then
        --> closeLevels
      end
    end
    full = full - back
    A[k] = full
    B[k] = c.n
    if full > 0 then
      rest = full % c.rate
      last = last + (full - rest) / c.rate
      if rest > 0 then last = last + 1 end
      FRESH[k] = last
    else
      FRESH[k] = 0
    end
  end
end
