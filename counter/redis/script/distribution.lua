-- A distribution is a hash for each window: the number of a bucket → how many values are in
-- it, and sum, min and max.

-- place finds the key of the current window among n keys for windows that follow one another.
-- It is nil if that is not among them; then the caller is to be told the time.
local function place(window, zone, first, from, n)
  local current = index(window, zone)
  local i = current - tonumber(first)
  if i < 0 or i >= n then return nil end
  return from + i, current
end
