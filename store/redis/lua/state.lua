-- The state of a key: three whole numbers, fresh, a and b, as in weir.State, and when Redis forgets
-- the key, of seven bytes each. Sub-windows have more such numbers behind them, and others their
-- open holds; logs are kept otherwise. fresh is when the key is as good as new.

-- readHead returns a state and when it expires; zeros if there is none, or one that nobody could
-- have written; nil if it is foreign: no string at all, or written by a later version, whose forms
-- have the highest three bits of the first number. value is what MGET has found.
local function readHead(name, value)
  if not value then
    value = try('GETRANGE', name, '0', '27')
    if type(value) == 'table' then return nil end
  end
  if #value >= 28 then -- HEAD
    local fresh, a, b, expires = parse('>I7I7I7I7', value)
    if fresh >= EXACT then return nil end
    return fresh, a, b, expires
  end
  if value ~= '' and string.byte(value) >= 32 then return nil end -- no state begins with such a byte: it would be a number of EXACT or more
  return 0, 0, 0, 0
end

-- expiry is when Redis forgets a key: some time after it is as good as new, by a quarter of the time until then and at least
-- a second. So that of a key that is charged again and again need not be set each time.
local function expiry(now, fresh)
  local after = (fresh - now) / 4
  after = after - after % 1
  if after < 1000000 then after = 1000000 end
  return fresh + after
end

-- ttl is for how long Redis keeps a key: in words, because it would write a number as a fraction,
-- digit by digit. While a test has a clock of its own, keep is an hour.
local function ttl(now, keep, expires)
  if keep then return keep end
  return string.format('%d', math.max(1, (expires - now + 999) / 1000)) -- which cuts the fraction off
end

-- writeHead writes a state that was to expire at that time; 0 if there was none. What is behind it stays.
local function writeHead(now, keep, name, fresh, a, b, before)
  if fresh <= 0 then
    local list = call('GETRANGE', name, '28', '30') -- open holds behind it are counted there
    if #list < 3 or string.sub(list, 2) == '\0\0' then
      call('UNLINK', name)
      return
    end
  end
  local expires = before
  if fresh > before then expires = expiry(now, fresh) end
  local head = pack('>I7I7I7I7', fresh, a, b, expires)
  if before == 0 then
    call('PSETEX', name, ttl(now, keep, expires), head)
  else
    call('SETRANGE', name, '0', head)
    if expires ~= before then call('PEXPIRE', name, ttl(now, keep, expires)) end
  end
end

-- What each algorithm does, by its number in package weir:
--
--   limit    the numbers of a limit, of which it takes what it needs; with more than eight, a table costs twice as much
--   read     the value of a key: fresh, a, b, when it expires, and what there is more, such as a log
--   look     at a state: the time, which is never before the last charge, the state at that time, and the units that are free
--   charge   units: the state with them
--   commit   a charge to what there is more
--   write    a state
--   wait     how long until units fit
--   prepare  is called before one of the next three
--   delay    of shaped requests, if the limit can have them
--   room     how many units can be charged at most
--   refund   units of a receipt: the state without them. Below 0 the receipt is that of the newest
--
-- A state travels as numbers, for they cost less than a table. A script has only those that it needs, and
-- prepare defines what is seldom needed, unless the last of it is there. Room is made at once: a table that
-- grows costs several times as much.
local BUCKET, FIXED_WINDOW, SLIDING_WINDOW, LOG, SUB_WINDOWS -- nil in a script without it

-- readLimit makes a limit of the text that Go has packed: the number of its algorithm, and ten more. Nobody changes it.
local function readLimit(does, text) return does:limit(cmsgpack.unpack(text)) end

local FEW = 128 -- sub-windows that are read as a whole: a kilobyte
