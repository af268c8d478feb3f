-- What is in the place of a state that is in a key of its own: MOVED if it has many open holds, or, of one with units on
-- lease, LEASED with what every decision needs. Versions that know neither take both for foreign.

local SHORT = '\255many' -- as some builds after v0.1.0 wrote it
local MOVED = SHORT .. ('\255'):rep(23) -- as long as a state: builds before v0.1.0 take what is shorter for none, and write over it
local LEASED = '\255leas'
local IN_PLACE = '>I3I7I7I7' -- count, out, first, expires; see leases.lua

-- readPlace returns how many units are on lease, before when no lease has anything to do, how many leases there are and when they
-- expire; nil if the text is none of these.
local function readPlace(text)
  if not text or string.sub(text, 1, 1) ~= '\255' then return nil end
  if text == MOVED or text == SHORT then return 0, EXACT, 0, 0 end
  if string.sub(text, 1, #LEASED) ~= LEASED or #text ~= #LEASED + 24 then return nil end
  local count, out, first, expires = parse(IN_PLACE, text, #LEASED + 1)
  return out, first, count, expires
end

-- readApart is for singles: until when a state may last so that what is in its place need not last longer (see expiry), how many units are
-- on lease, nil if none, and whether something is due; nil if the state is in its place.
local function readApart(text, now)
  local out, first, _, expires = readPlace(text)
  if not out then return nil end
  return now + math.min((expires - now) * 4 / 5, expires - now - SECOND), out > 0 and out or nil, now >= first
end
