-- What is asked of lists and records in several places.

local function fullUntil()
  --> findFull
  return full
end

-- isEnded reports whether a record is of a hold that has ended, and until when it is known.
local function isEnded(record, n)
  if not record or #record < 9 then return false end
  local ended, ops, known = unpack(OUTCOMES, record)
  if ops ~= n or #record < 9 + 14 * n then known = 0 end
  return ended == 1, known
end

-- remember writes how a hold has ended. What there is of an open one is kept: its record, or
-- true if there should be one.
local function remember(key, record, known, outcomes)
  local length = 0
  if record == true or record and #record >= #outcomes and string.byte(record) == 0 then
    length = pcall('SETRANGE', key, '0', outcomes)
  end
  -- Or it is lost, or something foreign.
  if type(length) == 'table' or length <= #outcomes then call('PSETEX', key, ttl(known + SECOND), outcomes) end
end
