-- How a sliding log is kept. Its entries are words of eight bytes as in sliding_log.go,
-- oldest first. The newest are in one value, behind a head:
--
--   the form, fresh, the rank of the next unit, units that may count, when it expires
--
-- That is all of a small log, which is a string. The older entries of a larger one are in
-- pages; see there. Then it is a hash, and the value is its field 's'.

local FORM = 32 -- the first byte. What begins with a larger one is of a later version.
local OPEN = 960 -- bytes of entries in the value, before they go to a page
local RANKS = 4294967296 -- after so many units, ranks begin at 0 again

local sub = string.sub

LOG = {}
local log -- of k
local ranks -- as RANKS, in an entry
local lastTime -- of the newest entry

local values -- of all keys, if they were read at once

loadLogs = function() values = call('MGET', spread(KEYS)) end

-- loadLog does not ask for a type that may be wrong, for Redis counts errors.
loadLog = function(k)
  local key, _ = KEYS[k]
  local log = { open = '', first = 0, skip = 0 }
  FRESH[k], A[k], B[k], LOG[k] = 0, 0, 0, log
  local value, head = (values or call('MGET', key))[values and k or 1], 23
  if not value then
    local kind = call('TYPE', key).ok
    if kind == 'none' then return end
    value, log.hashed, head = kind == 'hash' and call('HGET', key, 's'), kind == 'hash', 41
  end
  local form = string.byte(value or '\255') or 0
  if form > FORM then
    FOREIGN[k] = true
  elseif form == FORM and #value > head and (#value - head) % 8 == 0 then
    _, FRESH[k], A[k], B[k], log.expires = unpack('>BI7I4I4I7', value)
    if log.hashed then log.first, log.after, log.skip, log.next, log.swept = unpack('>I4I4I2I4I4', value, 24) end
    log.open = sub(value, head + 1)
  end
end

-- enterLog is to be called before anything is done with the log of k.
local function enterLog()
  log, ranks, lastTime = LOG[k], c.ranks, FRESH[k] - c.period
  if not ranks then
    local _, bits = math.frexp(c.period)
    ranks = 2 ^ (64 - max(43, bits))
    c.ranks = ranks
  end
end

-- timeAt and rankAt read the entry at a byte of a text, from 0.
local function timeAt(text, i)
  local high, low = unpack('>I4I4', text, i + 1)
  local time = high * (RANKS / ranks) + (low - low % ranks) / ranks
  return lastTime - (lastTime - time) % (RANKS / ranks * RANKS)
end
local function rankAt(text, i) return unpack('>I4', text, i + 5) % ranks end

-- find returns where in a text, from a byte on, the first entry is that is as new as that
-- or, if it is not a time, has at most so many newer units in the text. The last one is
-- taken to be. As a rule it is among the first: so it is looked for in steps that double,
-- and then by halves.
local function find(text, from, isTime, bound)
  local last, step = #text / 8 - 1, 1
  local top = rankAt(text, 8 * last)
  from = from / 8
  while from < last do
    local probe = step > 0 and min(from + step, last) - 1 or floor((from + last) / 2)
    local passes
    if isTime then passes = timeAt(text, 8 * probe) >= bound else passes = (top - rankAt(text, 8 * probe)) % ranks <= bound end
    if passes then last, step = probe, 0 else from, step = probe + 1, step * 2 end
  end
  return 8 * from
end

-- unitsSince is how many units that may count were taken since then.
local function unitsSince(time)
  if log.first > 0 then return pages().unitsSince(time) end
  local open = log.open
  local i = find(open, 0, true, time)
  if i == 0 then return B[k] end
  return min(B[k], (rankAt(open, #open - 8) - rankAt(open, i - 8)) % ranks)
end

-- timeOf is when the unit was taken that has so many newer ones.
local function timeOf(newer)
  if log.first > 0 then return pages().timeOf(newer) end
  return timeAt(log.open, find(log.open, 0, false, newer))
end

local function clearLog() log.open, log.first, log.skip = '', 0, 0 end

-- keepUnits forgets all entries but those of so many of the newest units.
local function keepUnits(units)
  if units <= 0 then
    clearLog()
  elseif log.first > 0 then
    pages().keepUnits(units)
  else
    log.open = sub(log.open, find(log.open, 0, false, units - 1) + 1)
  end
end

local function entry(time, rank)
  local digits = RANKS / ranks
  local low = time % digits
  return pack('>I4I4', (time - low) / digits % RANKS, low * ranks + rank % ranks)
end

-- addUnits adds an entry or, if there is one of that time, adds to it.
local function addUnits(time, units)
  local open, rank = log.open, units
  if #open > 0 then
    rank = rankAt(open, #open - 8) + units
    if lastTime == time then
      open = sub(open, 1, -9)
    elseif #open >= OPEN then
      pages().close()
      open = ''
    end
  end
  log.open = open .. entry(time, rank)
end

-- saveLog writes what has changed: a log without pages as a string, whatever it was.
saveLog = function(left)
  log = LOG[k]
  if log.first > 0 then return pages().save(left) end
  if log.hashed then call('UNLINK', KEYS[k]) end
  local expires = expiry(left)
  call('PSETEX', KEYS[k], ttl(expires), pack('>BI7I4I4I7', FORM, left, A[k], B[k], expires) .. log.open)
end
