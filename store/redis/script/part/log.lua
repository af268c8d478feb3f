-- How a sliding log is kept. Its entries are words of eight bytes as in sliding_log.go,
-- oldest first. The newest are in one value, behind a head:
--
--   the form, fresh, the rank of the next unit, units that may count, when it expires
--
-- That is all of a small log, which is a string. The older entries of a larger one are in
-- pages; see there. Then it is a hash, and the value is its field 's'. If fresh is 0, nothing
-- of a value counts.

local FORM = 32 -- the first byte. What begins with a larger one is of a later version.
local OPEN = 960 -- bytes of entries in the value, before they go to a page
local RANKS = 4294967296 -- after so many units, ranks begin at 0 again

local sub, byte = string.sub, string.byte

local ranks -- as RANKS, in an entry
local digits, span -- what a second half of an entry has of a time, and after how long times begin again
local lastTime -- of the newest entry
local receipt -- of what is given back

-- timeAt and rankAt read the entry at a byte of a text, from 0.
local function timeAt(text, i)
  local high, low = unpack('>I4I4', text, i + 1)
  return lastTime - (lastTime - high * digits - (low - low % ranks) / ranks) % span
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

--: setRanks
local _, bits = math.frexp(c.period)
ranks = 2 ^ (64 - max(43, bits))

--: addEntry
-- Of a time, with the rank after it. It is apart until somebody looks: each text that Lua
-- makes costs time.
local low = taken % digits
log.added = pack('>I4I4', (taken - low) / digits % RANKS, low * ranks + after % ranks)

--: clearLog
log.open = ''
if log.first > 0 then log.first, log.skip = 0, 0 end

--: mergeLog
if log.added ~= '' then
  log.open = log.open .. log.added
  log.added = ''
end

--: readLog
-- Of a value, or of what MGET does not find. It does not ask for a type that may be wrong, for
-- Redis counts errors.
--> newLog
local head = 23
if not value then
  local kind = call('TYPE', KEYS[k]).ok
  if kind == 'hash' then
    value, log.hashed, head = call('HGET', KEYS[k], 's'), true, 41
  elseif kind == 'none' then
    value = ''
  end
  value = value or '\255'
end
local form, left, rank, units, expires = byte(value) or 0
if form > FORM then
  FOREIGN[k] = true
elseif form == FORM and #value > head and (#value - head) % 8 == 0 then
  form, left, rank, units, expires = unpack('>BI7I4I4I7', value)
  FRESH[k] = left
  A[k] = rank
  B[k] = units
  log.expires = expires
  if log.hashed then
    log.first, log.after, log.skip, log.next, log.swept = unpack('>I4I4I2I4I4', value, 24)
  else
    log.stored = #value
  end
  if left > 0 then log.open = sub(value, head + 1) end
end

--: writeLog
-- What has changed: a log without pages as a string, whatever it was. If it is as long as it
-- was, it is written in place.
if log.first > 0 then
  --> mergeLog
  pages().save(FRESH[k])
else
  local left, stored, before = FRESH[k], log.stored, log.expires
  local expires = before
  if log.hashed then call('UNLINK', KEYS[k]) end
  if stored == 0 or left > before then expires = expiry(left) end
  local value = pack('>BI7I4I4I7', FORM, left, A[k], B[k], expires) .. log.open .. log.added
  if stored == 0 or expires ~= before then
    call('PSETEX', KEYS[k], ttl(expires), value)
  elseif #value == stored then
    call('SETRANGE', KEYS[k], '0', value)
  else
    call('SET', KEYS[k], value, 'KEEPTTL')
  end
end
