-- What is about holds. This is the rest of the function that begins in hold_begin.lua.

local HOLD_PEEK, HOLD_TAKE, RESERVE, SETTLE, EXTEND, HOLD_RESET = 4, 5, 6, 7, 8, 9
local UNKNOWN, SETTLED, EXPIRED, OPEN, REPEATED = 0, 1, 2, 4, 5
local FOREIGN_HOLDS = 7 -- 3 says that the state is foreign

local H = {} -- of each op, the key of its list

-- open and close are around what is done with the list of an op.
local function open(op)
  k, c = OP_KEY[op], OP_LIMIT[op]
  openList(call('GET', H[op]))
end
local function close(op) closeList(H[op]) end

-- limitOf is the limit that a hold was charged under, which may have had another N.
local function limitOf(limit, n, shapes)
  if n == limit.n and shapes == limit.shape then return limit end
  local changed = {}
  for name, value in pairs(limit) do changed[name] = value end
  changed.n, changed.shape = n, shapes
  if limit.full > 0 then
    local _, _, gcd = wide()
    local g = gcd(n, limit.period)
    changed.rate, changed.p = n / g, limit.period / g
  end
  return changed
end

-- endDue gives back to k what holds have that have expired, the first of them first.
local function endDue()
  if firstDue > now then return end
  local ends = {}
  for j = 1, listed do
    local place = (j - 1) * ENTRY
    local due = unpack('>I7', list, place + 17)
    if due <= now then ends[#ends + 1] = { j = j, due = due, id = cut(list, place + 1, place + 16) } end
  end
  table.sort(ends, function(p, q)
    if p.due ~= q.due then return p.due < q.due end
    return p.id < q.id
  end)
  local limit = c
  if c.full > 0 then openLevels() end
  for _, e in ipairs(ends) do
    readHold((e.j - 1) * ENTRY)
    if LEVELS then level, SINCE[e.j] = LEVELS[e.j], -1 end -- it is open no more
    c = limitOf(limit, heldN, heldShape == 1)
    letGo(heldCost)
  end
  c = limit
  if LEVELS then closeLevels() end
  sweep()
end

-- reserve takes n ops and, if they are allowed, holds what they were charged. A hold that
-- is there, or that has ended already, is denied: its end was faster.
local function reserve(n, id, life, key, content)
  local full, fits, known = {}, true, pcall('GET', key)
  for op = 1, n do
    if not OP_LOOK[op] then
      open(op)
      if known or findHold(id) then full[op] = now else full[op] = fullUntil() end
      close(op)
    end
  end
  if next(full) then
    for op = 1, n do
      decideOrLook(op)
      fits = fits and allowed
    end
    if fits then
      for op = 1, n do
        ask(peek, op)
        if full[op] then allowed, retry, delay = false, full[op] - now, 0 end
        answer()
      end
      return
    end
  end
  if not settle(n) then return end
  local held = 0
  for op = 1, n do
    if not OP_LOOK[op] then
      open(op)
      addHold(id, now + life, OP_COST[op], c.release)
      close(op)
      held = held + 1
    end
  end
  if #content > 0 then call('PSETEX', key, ttl(now + life + MEMORY + SECOND), pack(OUTCOMES, 0, held, now + life) .. content) end
end

-- settleOne ends a hold on an op, and returns how much of what was used is too much.
-- Without an entry the client was reset meanwhile, and there is nothing to give back.
local function settleOne(op, id)
  open(op)
  local place = findHold(id)
  local used, over, reserved = OP_LAST[op], 0, OP_COST[op]
  if place then
    readHold(place)
    removeHold(place)
    reserved = heldCost
  end
  if used < reserved then
    if place then letGo(reserved - used) end
  elseif used > reserved then
    cost, maxDelay = used - reserved, ALWAYS
    decide()
    if charged then commit() end
    over = excess
  end
  close(op)
  return over
end

-- dueOf is when a hold of n ops expires, by its record or its entries, or as far as known.
local function dueOf(n, id, record, known)
  if record and #record >= 9 then
    local _, _, expires = unpack(OUTCOMES, record)
    return expires
  end
  for op = 1, n do
    open(op)
    local place = findHold(id)
    if place then
      readHold(place)
      return due
    end
  end
  return known > 0 and known or now + MEMORY
end

-- move changes when a hold on an op expires, or ends it if it has.
local function move(op, id, expires)
  open(op)
  local place = findHold(id)
  if not place then return end
  readHold(place)
  if expires then
    if due <= firstDue then isFirst = 0 end
    list = cut(list, 1, place + 16) .. pack('>I7', expires) .. cut(list, place + 24)
    touch(place, place + ENTRY)
    keepHold(expires, receipt, c.release)
  else
    removeHold(place)
  end
  close(op)
end

local function tell(how, used, over)
  out[length + 1], out[length + 2], out[length + 3] = how, used, over
  length = length + 3
end

-- endHold ends a hold of n ops, or extends it by a life, and says how it is.
local function endHold(n, id, life, key, known)
  local record = pcall('GET', key)
  if type(record) == 'table' then record = false end
  local ended, time = isEnded(record, n)
  if ended then
    for op = 1, n do
      if time > now then tell(REPEATED, unpack('>I7I7', record, 14 * op - 4)) else tell(UNKNOWN, 0, 0) end
    end
    return
  end
  local expires = dueOf(n, id, record, known)
  if expires <= now then
    for op = 1, n do
      move(op, id, nil)
      tell(expires + MEMORY > now and EXPIRED or UNKNOWN, 0, 0)
    end
  elseif life > 0 then
    for op = 1, n do
      move(op, id, now + life)
      tell(OPEN, now + life, 0)
    end
    if record then
      call('SETRANGE', key, '2', pack('>I7', now + life))
      call('PEXPIRE', key, ttl(now + life + MEMORY + SECOND))
    end
  else
    local outcomes = {}
    for op = 1, n do
      local over = settleOne(op, id)
      outcomes[op] = pack('>I7I7', OP_LAST[op], over)
      tell(SETTLED, OP_LAST[op], over)
    end
    local known = knownUntil(expires)
    remember(key, record, known, pack(OUTCOMES, 1, n, known) .. table.concat(outcomes))
  end
end

-- refuse is the answer if somebody else has put something in the place of a state or a list.
local function refuse(verb, n, strange)
  allowed, remaining, retry, reset, delay = false, 0, 0, 0, 0
  for op = 1, n do
    debt, excess = verb == HOLD_TAKE and OP_LAST[op] == ALWAYS, OP_COST[op]
    if FOREIGN[OP_KEY[op]] then
      refuseForeign()
    elseif strange[op] then
      length = length + 1
      out[length] = FOREIGN_HOLDS
    elseif verb == SETTLE or verb == EXTEND then
      tell(UNKNOWN, 0, 0)
    else
      answer()
    end
  end
end

-- holding does what a request about holds asks for, and returns where the next one begins.
-- Of each op there are five numbers: key, limit, cost, what was used or the longest delay,
-- and the key of the list; below 0 if holds that expire give their units back, and 0 if
-- there can be none. After them are the id of the hold, the key of its record, its life, and
-- what is put there or when the hold was last known to expire.
return function(verb, n, i)
  local foreign, strange = false, {}
  for op = 1, n do
    readOp(op, i)
    local h = input[i + 4]
    OP_LIMIT[op].release = h < 0
    H[op] = KEYS[h < 0 and -h or h]
    if verb == HOLD_RESET then
      forget()
      call('UNLINK', H[op])
    elseif h ~= 0 then
      local text = pcall('GET', H[op])
      strange[op] = type(text) == 'table' -- which is an error: it is no text
      if not strange[op] and h < 0 and not FOREIGN[k] then
        c = OP_LIMIT[op]
        openList(text)
        endDue()
        close(op)
      end
    end
    foreign = foreign or FOREIGN[k] or strange[op]
    i = i + 5
  end
  local id, key, life, more = input[i], KEYS[input[i + 1]], input[i + 2], input[i + 3]
  i = i + 4
  if foreign then
    refuse(verb, n, strange)
  elseif verb == RESERVE then
    reserve(n, id, life, key, more)
  elseif verb == SETTLE or verb == EXTEND then
    endHold(n, id, verb == EXTEND and life or 0, key, more)
  elseif verb == HOLD_TAKE then
    settle(n)
  else
    if verb == HOLD_RESET then
      for op = 1, n do OP_LAST[op] = -1 end
    end
    survey(n)
  end
  return i
end
end)() -- holding
