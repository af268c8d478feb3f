-- Sliding log. fresh: a period after the newest unit. a: the rank of the next unit. b: how many of
-- the newest units may still count.
--
-- Its entries are words of eight bytes as in sliding_log.go, oldest first. The newest are in one
-- value, behind a head:
--
--   the form, fresh, the rank of the next unit, units that may count, when it expires
--
-- That is all of a small log, which is a string. The older entries of a larger one are in pages; see
-- there. Then it is a hash, and the value is its field 's'. If fresh is 0, nothing of a value counts.
--
-- Of a key there is besides the state
--
--   open      the entries in the value
--   added     one more, apart until it is looked at: each text that Lua makes costs time
--   stored    bytes of the value, if it is a string; else 0
--   hashed    whether it is a hash
--   lastTime  of the newest entry
--   base      a, before a charge
--   first …   what pages need; first is 0 if there are none

local FORM = 32 -- the first byte. What begins with a larger one is of a later version.
local OPEN = 960 -- bytes of entries in the value, before they go to a page
local RANKS = 4294967296 -- after so many units, ranks begin at 0 again

-- Of its limit, rate is how many ranks an entry can tell apart, p what its second half has of a time,
-- and full after how long times begin again.
LOG = { read = nil, write = nil, limit = nil, look = nil, charge = nil, commit = nil, wait = nil, prepare = nil }

function LOG:limit(_, n, period, capacity, _, countDenied, rate, p, full)
  return { does = self, n = n, period = period, capacity = capacity, countDenied = countDenied == 1, rate = rate, p = p, full = full }
end

-- timeAt and rankAt read the entry at a byte of a text, from 0.
local function timeAt(c, log, text, i)
  local high, low = parse('>I4I4', text, i + 1)
  local ranks, last = c.rate, log.lastTime
  return last - (last - high * c.p - (low - low % ranks) / ranks) % c.full
end

local function rankAt(c, text, i) return parse('>I4', text, i + 5) % c.rate end

-- search returns where in a text, from a byte on, the first entry is that is as new as that or, if it
-- is not a time, has at most so many newer units in the text. The last one is taken to be. As a rule
-- it is among the first: so it is looked for in steps that double, and then by halves.
local function search(c, log, text, from, isTime, bound)
  local last, step = #text / 8 - 1, 1
  local top, ranks = rankAt(c, text, 8 * last), c.rate
  from = from / 8
  while from < last do
    local probe = step > 0 and math.min(from + step, last) - 1 or (from + last - (from + last) % 2) / 2
    local passes
    if isTime then passes = timeAt(c, log, text, 8 * probe) >= bound else passes = (top - rankAt(c, text, 8 * probe)) % ranks <= bound end
    if passes then last, step = probe, 0 else from, step = probe + 1, step * 2 end
  end
  return 8 * from
end

-- entryOf is that of a time, with the rank after it.
local function entryOf(c, taken, after)
  local digits, ranks = c.p, c.rate
  local low = taken % digits
  return pack('>I4I4', (taken - low) / digits % RANKS, low * ranks + after % ranks)
end
