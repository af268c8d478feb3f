-- What is about holds. This is the rest of the function that begins in hold_begin.lua.

local HOLD_PEEK, HOLD_TAKE, RESERVE, SETTLE, EXTEND, HOLD_RESET = 4, 5, 6, 7, 8, 9
local UNKNOWN, SETTLED, EXPIRED, OPEN, REPEATED = 0, 1, 2, 4, 5
local FOREIGN_HOLDS = 7 -- 3 says that the state is foreign

local H, BASE, OP_HELD = {}, {}, {} -- of each op, the key of its list, where in it that begins, and whether it is to be held

-- open and close are around what is done with the list of an op.
local function open(op)
  k, c = OP_KEY[op], OP_LIMIT[op]
  text, base = call('GET', H[op]), BASE[op]
  --> openList
end

local function close(op)
  if from == EXACT then return end
  local key, head, ends = H[op], pack(LIST, isFirst, listed, firstDue), expiry(needed)
  if to > #list then to = #list end
  if base == 0 and stored == 0 then
    call('PSETEX', key, ttl(ends), head .. list)
    return
  end
  if stored > 4 * (LIST_HEAD + #list) and stored > 1024 then
    call('SET', key, (base > 0 and call('GETRANGE', key, '0', '27') or '') .. head .. list, 'KEEPTTL')
  elseif from <= 4 * ENTRY then
    call('SETRANGE', key, base, head .. (to < #list and cut(list, 1, to) or list))
  else
    call('SETRANGE', key, base, head)
    if to > from then call('SETRANGE', key, base + LIST_HEAD + from, cut(list, from + 1, to)) end
  end
  if base > 0 then
    if needed <= EXPIRES[k] then return end
    EXPIRES[k], CHANGED[k] = ends, true
  elseif needed == 0 or call('PTTL', key) >= tonumber(ttl(needed)) then
    return
  end
  call('PEXPIRE', key, ttl(ends))
end

-- limitOf is the limit that a hold was charged under, which may have had another N.
local function limitOf(limit, n, shapes)
  if n == limit.n and shapes == limit.shape then return limit end
  local changed = {}
  for name, value in pairs(limit) do changed[name] = value end
  changed.n, changed.shape = n, shapes
  if limit.rate > 0 then
    local _, _, gcd = wide()
    local g = gcd(n, limit.period)
    changed.rate, changed.p = n / g, limit.period / g
  end
  return changed
end

-- letGo gives back to k units of the hold that was found, which is not on the list any more.
local function letGo(back)
  if FRESH[k] <= 0 or back <= 0 or receipt <= 0 then return end
  units = back
  if c.rate > 0 then letGoBucket() else c.algorithm.refund(receipt, units) end
  CHANGED[k] = true
  if FRESH[k] <= 0 then forget() end
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
  if c.rate > 0 then openLevels() end
  for _, e in ipairs(ends) do
    due, heldCost, receipt, level, since, heldN, heldShape = unpack(HELD, list, (e.j - 1) * ENTRY + 17)
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
local function reserve(n, life, key, content)
  local full, fits, known = {}, true, pcall('GET', key)
  for op = 1, n do
    if OP_HELD[op] then
      open(op)
      --> findHold
      if known or place then full[op] = now else full[op] = fullUntil() end
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
    if OP_HELD[op] then
      open(op)
      due, cost = now + life, OP_COST[op]
      --> addHold
      close(op)
      held = held + 1
    end
  end
  if #content > 0 then call('PSETEX', key, ttl(now + life + MEMORY + SECOND), pack(OUTCOMES, 0, held, now + life) .. content) end
end

-- settleOne ends a hold on an op, and returns how much of what was used is too much.
-- Without an entry the client was reset meanwhile, and there is nothing to give back.
local function settleOne(op)
  open(op)
  --> findHold
  local used, over, reserved, isHeld = OP_LAST[op], 0, OP_COST[op], place ~= nil
  if isHeld then
    --> removeHold
    reserved = heldCost
  end
  if used < reserved then
    if isHeld then letGo(reserved - used) end
  elseif used > reserved then
    cost, maxDelay, leave = used - reserved, ALWAYS, 0
    decide()
    if charged then commit() end
    over = excess
  end
  close(op)
  return over
end

-- dueOf is when a hold of n ops expires, by its record or its entries, or as far as known.
local function dueOf(n, record, known)
  if record and #record >= 9 then
    local _, _, expires = unpack(OUTCOMES, record)
    return expires
  end
  for op = 1, n do
    open(op)
    --> findHold
    if place then return due end
  end
  return known > 0 and known or now + MEMORY
end

-- move changes when a hold on an op expires, or ends it if it has.
local function move(op, expires)
  open(op)
  --> findHold
  if not place then return end
  if expires then
    if due <= firstDue then isFirst = 0 end
    due = expires
    if OP_LAST[op] == 1 then -- a place, which is renewed
      letGo(heldCost)
      cost, maxDelay, leave, receipt = heldCost, ALWAYS, 0, 0
      decide()
      if charged then
        commit()
        receipt = FRESH[k]
      end
    end
    list = cut(list, 1, place + 16) .. pack('>I7I7I7', due, heldCost, receipt) .. cut(list, place + 38)
    from, to = place, place + ENTRY
    --> keepHold
  else
    --> removeHold
  end
  close(op)
end

local function tell(how, used, over)
  out[length + 1], out[length + 2], out[length + 3] = how, used, over
  length = length + 3
end

-- endHold ends a hold of n ops, or extends it by a life, and says how it is.
local function endHold(n, life, key, known)
  local record = pcall('GET', key)
  if type(record) == 'table' then record = false end
  local ended, time = isEnded(record, n)
  if ended then
    for op = 1, n do
      if time > now then tell(REPEATED, unpack('>I7I7', record, 14 * op - 4)) else tell(UNKNOWN, 0, 0) end
    end
    return
  end
  local expires = dueOf(n, record, known)
  if expires <= now then
    for op = 1, n do
      move(op, nil)
      tell(expires + MEMORY > now and EXPIRED or UNKNOWN, 0, 0)
    end
  elseif life > 0 then
    for op = 1, n do
      move(op, now + life)
      tell(OPEN, now + life, 0)
    end
    if record then
      call('SETRANGE', key, '2', pack('>I7', now + life))
      call('PEXPIRE', key, ttl(now + life + MEMORY + SECOND))
    end
  else
    local outcomes = {}
    for op = 1, n do
      local over = settleOne(op)
      outcomes[op] = pack('>I7I7', OP_LAST[op], over)
      tell(SETTLED, OP_LAST[op], over)
    end
    local known = max(now + MEMORY, expires) -- until then
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
-- Of each op there are seven numbers: key, limit, cost, what was used or the longest delay,
-- what is left for others, or, to extend, 1 for a place to be renewed,
-- the key of the list; below 0 if holds that expire give their units back, and 0 if
-- there can be none, and 1 for what is to be held. After them are the id of the hold, the key of its record, its life, and
-- what is put there or when the hold was last known to expire.
return function(verb, n, i)
  local foreign, strange = false, {}
  for op = 1, n do
    readOp(op, i)
    local h = input[i + 5]
    OP_LIMIT[op].release, OP_HELD[op] = h < 0, input[i + 6] == 1
    if h < 0 then h = -h end
    H[op], BASE[op] = KEYS[h], h == k and HEAD or 0
    if verb == HOLD_RESET then
      forget()
      call('UNLINK', H[op])
      if not LOG[k] then
        call('UNLINK', KEYS[k])
        EXPIRES[k] = 0
      end
    elseif h > 0 then
      strange[op] = type(pcall('GET', H[op])) == 'table' -- which is an error: it is no text
      if not strange[op] and OP_LIMIT[op].release and not FOREIGN[k] then
        open(op)
        endDue()
        close(op)
      end
    end
    foreign = foreign or FOREIGN[k] or strange[op]
    i = i + 7
  end
  local key, life, more = KEYS[input[i + 1]], input[i + 2], input[i + 3]
  wanted = input[i]
  i = i + 4
  if foreign then
    refuse(verb, n, strange)
  elseif verb == RESERVE then
    reserve(n, life, key, more)
  elseif verb == SETTLE or verb == EXTEND then
    endHold(n, verb == EXTEND and life or 0, key, more)
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
