-- Functions, where there are several places for them. To make them costs a single check
-- about a twelfth, so scripts for counters have none.

local function expiry(oldFresh)
  local expires
  --> setExpires
  return expires
end

local function ttl(expires)
  local lasts
  --> setLasts
  return lasts
end
