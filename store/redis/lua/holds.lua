-- Requests of which some are about holds. args[1] is as of requests, but
--
--   before the limits is how many of the keys are states and lists; the others are records. Then comes 1 if
--   a key may have many holds; and 2 more if behind the states and lists there are three keys for each state:
--   where it is if there are many or units on lease, the many, and the leases
--   of each op there are two more numbers: the key of its list; below 0 if holds that expire give
--   their units back, and 0 if there can be none; and for what is to be held 1 more than the number of the client
--   after the ops are the id of the hold, the key of its record, its life, and what is put there or
--   when the hold was last known to expire. To settle, its life is 1 if it has a record
--
--   of messages about leases, LEASE_NUMBERS for each op instead, of which the first is '' without a lease
--
-- last is what was used, to settle; to extend, 1 for a place to be renewed.

local HOLD_PEEK, HOLD_TAKE, EXTEND, RESET = 4, 5, 8, 9
local OPEN_HOLD = 4
local AT_SHARE = 23 -- before a denial: not the limit denies, but the client's share of the open holds

-- readMoved reads a state that is in a key of its own, because there are many holds, or units on lease.
local function readMoved(t, k, c)
  local name = t.keys[k]
  local text = try('GET', name)
  local out, first, count, expires = readPlace(type(text) == 'string' and text)
  if not out then return nil end
  if string.sub(text, 1, #LEASED) == LEASED then
    prepareLeases()
    t.leases[k], t.expireLeases = LEASES.of(t.keys[t.pairs + 3 * k], count, out, first, expires), LEASES.expire
  end
  prepareMany()
  t.keys[k], t.moved[k] = t.keys[t.pairs + 3 * k - 2], name
  if t.values then t.values[k] = nil end
  return c.does.read(t.keys[k], nil, c)
end

-- listOf returns the open holds of an op's key; false if something else is in their place.
local function listOf(t, op)
  local k, h = op.k, op.list
  local l = t.lists[k]
  if l == nil then
    local text = t.values and t.values[h] or try('GET', t.keys[h])
    l = type(text) ~= 'table' and LISTS.read(t.keys[h], h == k and HEAD or 0, text)
    t.lists[k] = l
  end
  return l
end

-- letGo gives back units of a hold that is not on the list any more; number is that of one of many.
local function letGo(t, op, c, receipt, level, since, units, number)
  local k = op.k
  if t.fresh[k] <= 0 or units <= 0 or receipt <= 0 then return end
  if c.does ~= BUCKET then
    giveBack(t, { k = k, c = c }, receipt, units)
    return
  end
  BUCKET:prepare()
  local fresh, a, b, back = BUCKET.letGo(c, t.fresh[k], t.a[k], t.b[k], receipt, level, since, units)
  if fresh <= 0 then a, b = 0, 0 end
  t.fresh[k], t.a[k], t.b[k], t.changed[k] = fresh, a, b, true
  if back > 0 and t.lists[k] then LISTS.moveUp(t.lists[k], level, since, back) end
  if back > 0 and t.moved[k] then MANY.moveUp(MANY.read(t, k), number, back) end
end

-- endDue gives back what holds have that have expired, the first of them first, and tells whether there
-- are more: of many holds, only so many end in a call.
local function endDue(t, op)
  local l, now, c = listOf(t, op), t.now, op.c
  local m, ends, from = t.moved[op.k] and MANY.read(t, op.k), {}, nil
  local many = m and MANY.due(m, now, MANY_AT_ONCE) or {}
  if l.firstDue > now and #many == 0 then return false end
  if #many == 2 * MANY_AT_ONCE then
    now, from = tonumber(many[#many]), string.sub(many[#many - 1], 1, 16)
  end
  for j = 1, #many, 2 do
    ends[#ends + 1] = { due = tonumber(many[j + 1]), id = string.sub(many[j], 1, 16), member = many[j] }
  end
  for j = 1, l.count do
    local place = (j - 1) * ENTRY
    local id, due, cost, receipt, level, since, n, shape = parse('>c16I7I7I7I7I7I7B', l.entries, place + 1)
    if due < now or due == now and (not from or id < from) then
      ends[#ends + 1] = { j = j, due = due, id = id, cost = cost, receipt = receipt, level = level, since = since, n = n, shape = shape == 1 }
    end
  end
  table.sort(ends, function(p, q)
    if p.due ~= q.due then return p.due < q.due end
    return p.id < q.id
  end)
  if c.does == BUCKET then LISTS.openLevels(l) end
  for _, hold in ipairs(ends) do
    if hold.member then
      hold.cost, hold.receipt, hold.level, hold.since, hold.number, hold.n, hold.shape = MANY.remove(m, c, hold.member)
    elseif l.levels then
      hold.level, l.since[hold.j] = l.levels[hold.j], -1 -- it is open no more
    end
    letGo(t, op, limitOf(c, hold.n, hold.shape), hold.receipt, hold.level, hold.since, hold.cost, hold.number)
  end
  if l.levels then LISTS.closeLevels(l) end
  if #ends > #many / 2 then LISTS.sweep(l, now, from) end
  return from ~= nil
end

-- roomFor tells since when a hold of an op is there already, or until when there is no room for another
-- one, and sets whether it is to be one of many, and whether it is the share of the client that has no room.
local function roomFor(t, op, id, due)
  local now, k, l = t.now, op.k, listOf(t, op)
  op.isOneOfMany, op.isAtShare = false, false
  if LISTS.find(l, id) then return now end
  local m, full = t.moved[k] and MANY.read(t, k), LISTS.fullUntil(l, now)
  local hasMany, isLong = m and m.count > 0, l.count >= FEW_HOLDS
  if not (hasMany and isLong or t.grows and (hasMany or isLong)) then return full end
  if t.pairs then
    prepareMany()
    if not m and not MANY.start(t, k, due) then return full end
    full, op.isAtShare = MANY.fullUntil(t.many[k], op.c, now, l, op.client)
  end
  op.isOneOfMany = true
  return full
end

-- hold makes a hold of n ops that were just charged. Its record has room for outcomes or, of one of many,
-- for what is known of it.
local function hold(t, n, id, name, due, content, isMany)
  local records = {}
  for i = 1, n do
    local op = t.ops[i]
    if op.isHeld and op.isOneOfMany then
      records[#records + 1] = MANY.add(t, op, i, id, due)
    elseif op.isHeld then
      LISTS.add(listOf(t, op), id, due, op.cost, op.c, t.fresh[op.k], t.a[op.k], op.releases)
      if isMany then records[#records + 1] = ('\0'):rep(MANY_ROOM) end
    end
  end
  if isMany then
    local record = pack(RECORD, 0, 3 * #records, due) .. table.concat(records) .. string.sub(content, 14 * #records + 1)
    call('PSETEX', name, ttl(t.now, t.keep, due + MEMORY + SECOND), record)
  end
end

-- answerDenial answers an op that may be denied, and says if what it lacks of a cost is only reserved.
local function answerDenial(t, op, cost)
  if op.isHeld and op.list ~= 0 and not op.allowed then
    local k, c, now = op.k, op.c, t.now
    local at, _, viewA, viewB, free = c.does.look(c, now, t.fresh[k], t.a[k], t.b[k], t.more[k])
    local leave = op.leave + (leasedOf(t, k) or 0)
    prepareReserved()
    local lacks = RESERVED.lacking(c, at, t.fresh[k], t.a[k], t.b[k], viewA, viewB, free - leave, cost, leave, op.retry)
    local m = lacks and t.moved[k] and MANY.read(t, k)
    if lacks and (m and MANY.isOnlyReserved(lacks, m, now) or RESERVED.isAll(lacks, listOf(t, op), now)) then
      answerKept(t, op)
      t.length = RESERVED.answer(t.out, t.length, op.remaining, op.retry, op.reset, lacks.missing)
      return
    end
  end
  answerOp(t, op)
end

-- reserve takes n ops and, if they are allowed, holds what they were charged. A hold that is there, or
-- that has ended already, is denied: its end was faster.
local function reserve(t, n, id, name, life, content)
  local now = t.now
  local admitted, due, held, bar, isMany, isLate = weigh(t, n), now + life, 0, nil, false, false
  if admitted then
    for i = 1, n do
      local op = t.ops[i]
      op.bar = nil
      if op.isHeld then
        held, op.bar = held + 1, roomFor(t, op, id, due)
        bar, isMany = bar or op.bar, isMany or op.isOneOfMany
        isLate = isLate or op.isOneOfMany and op.bar and op.bar <= now
      end
    end
    if isLate or isMany and not t.pairs then
      for _ = 1, n do answerForeign(t, isLate and MORE_DUE or FOREIGN) end
      return
    end
    -- What has a record was here before, and may have ended.
    local isKnown
    if bar then
      isKnown = try('EXISTS', name) == 1
    elseif content ~= '' and not isMany then
      isKnown = not call('SET', name, pack(RECORD, 0, held, due) .. content, 'PX', ttl(now, t.keep, due + MEMORY + SECOND), 'NX')
    else
      isKnown = try('EXISTS', name) == 1
    end
    if bar or isKnown then
      for i = 1, n do
        local op = t.ops[i]
        peekOp(t, op, together(t, i))
        if isKnown and op.isHeld then op.bar = now end
        if op.bar then op.allowed, op.retry, op.delay = false, op.bar - now, 0 end
        if op.bar and op.isAtShare and op.bar > now then answerForeign(t, AT_SHARE) end
        answerOp(t, op)
      end
      return
    end
  else
    for i = 1, n do
      if t.ops[i].nextFresh then commitOp(t, t.ops[i]) end
      answerDenial(t, t.ops[i], t.ops[i].cost)
    end
    return
  end
  charge(t, n)
  hold(t, n, id, name, due, content, isMany)
end

-- settleOp ends a hold on an op, and returns how much of what was used is too much. Without an entry
-- the client was reset meanwhile, and there is nothing to give back.
local function settleOp(t, op, id)
  local l, used, reserved = listOf(t, op), op.last, op.cost
  local place, due, cost, receipt, level, since, number = LISTS.find(l, id)
  if place then
    LISTS.remove(l, place, due)
    reserved, number = cost, nil
  elseif op.member then
    reserved, receipt, level, since, number = MANY.remove(MANY.read(t, op.k), op.c, op.member)
  end
  if used < reserved then
    if place or op.member then letGo(t, op, op.c, receipt, level, since, reserved - used, number) end
  elseif used > reserved then
    op.last, op.leave = ALWAYS, 0
    decideOp(t, op, used - reserved)
    if op.nextFresh then commitOp(t, op) end
    return op.excess
  end
  return 0
end

-- extendOp changes when a hold on an op expires. A place is renewed. Of one of many, it returns what its
-- record has of it.
local function extendOp(t, op, id, due)
  local l, member = listOf(t, op), op.member
  local place, before, cost, receipt, level, since = LISTS.find(l, id)
  if member then cost, receipt = parse('>I7I7', member, 22) end
  if not place and not member then return nil end
  if op.last == 1 then
    letGo(t, op, op.c, receipt, level, since, cost)
    op.last, op.leave, receipt = ALWAYS, 0, 0
    decideOp(t, op, cost)
    if op.nextFresh then
      commitOp(t, op)
      receipt = t.fresh[op.k]
    end
  end
  if member then return MANY.extend(MANY.read(t, op.k), member, due, receipt) end
  LISTS.move(l, place, before, due, cost, receipt, op.releases)
  return nil
end

local function tell(t, how, used, over)
  local out, length = t.out, t.length
  out[length + 1], out[length + 2], out[length + 3] = how, used, over
  t.length = length + 3
end

-- endHold ends a hold of n ops, or extends it by a life, and says how it is. If it is on a list, it has
-- not ended, and its record says no more.
local function endHold(t, verb, n, id, name, life, known)
  local now, ends, record, ended, isMoved, isOneOfMany = t.now, nil, nil, nil, false, false
  for i = 1, n do
    local op = t.ops[i]
    local place, due = LISTS.find(listOf(t, op), id)
    ends, isMoved, op.member = ends or place and due, isMoved or t.moved[op.k], nil
  end
  if not ends or n > 1 or verb == EXTEND then -- of several ops, one may have been one of many
    record = try('GET', name)
    if type(record) == 'table' or record and #record < RECORD_HEAD then record = nil end
  end
  local hasRecord = record or ends and verb == SETTLE and life == 1
  if record then
    local how, ops, time = parse(RECORD, record)
    local isListed = ends and verb == SETTLE
    if not isListed then ends, ended = time, how == 1 end
    isOneOfMany = not ended and ops == 3 * n and #record >= RECORD_HEAD + MANY_ROOM * n
    for i = 1, isOneOfMany and isMoved and n or 0 do
      local op = t.ops[i]
      local due, member = MANY.find(t, op, i, id, record)
      if due then ends, op.member = due, member end
    end
    if ended then
      local isKnown = time > now and ops == n and #record >= RECORD_HEAD + 14 * n
      for i = 1, n do
        if isKnown then tell(t, REPEATED, parse(OUTCOME, record, 14 * i - 4)) else tell(t, UNKNOWN, 0, 0) end
      end
      return
    end
  end
  ends = ends or known > 0 and known or now + MEMORY
  if ends <= now then
    for i = 1, n do
      local l = listOf(t, t.ops[i])
      local place, due = LISTS.find(l, id)
      if place then LISTS.remove(l, place, due) end
      if t.ops[i].member then MANY.remove(MANY.read(t, t.ops[i].k), t.ops[i].c, t.ops[i].member) end
      tell(t, ends + MEMORY > now and EXPIRED or UNKNOWN, 0, 0)
    end
  elseif verb == EXTEND then
    local due = now + life
    for i = 1, n do
      local opened = extendOp(t, t.ops[i], id, due)
      if opened then call('SETRANGE', name, string.format('%d', RECORD_HEAD + MANY_ROOM * (i - 1)), opened) end
      tell(t, OPEN_HOLD, due, 0)
    end
    if record then
      call('SETRANGE', name, '2', pack('>I7', due))
      call('PEXPIRE', name, ttl(now, t.keep, due + MEMORY + SECOND))
    end
  else
    local until_ = math.max(now + MEMORY, ends)
    local outcomes = { pack(RECORD, 1, n, until_) }
    for i = 1, n do
      local op = t.ops[i]
      local used = op.last
      local over = settleOp(t, op, id)
      outcomes[i + 1] = pack(OUTCOME, used, over)
      tell(t, SETTLED, used, over)
    end
    outcomes = table.concat(outcomes)
    -- What there is of an open record is kept. Or it is lost, or something foreign.
    if isOneOfMany then outcomes, hasRecord = outcomes .. string.sub(record, RECORD_HEAD + MANY_ROOM * n + 1), false end
    local length = hasRecord and try('SETRANGE', name, '0', outcomes)
    if type(length) ~= 'number' or length <= #outcomes then call('PSETEX', name, ttl(now, t.keep, until_ + SECOND), outcomes) end
  end
end

-- forgetOp removes the state of an op's key, its holds, and whatever else is in their place.
local function forgetOp(t, op)
  local k, h = op.k, op.list
  call('UNLINK', t.keys[k], t.keys[h])
  if t.leases[k] then -- what is on lease stays so
    call('UNLINK', t.keys[t.pairs + 3 * k - 1])
    t.many[k] = nil
  elseif t.moved[k] then
    call('UNLINK', t.moved[k], t.keys[t.pairs + 3 * k - 1])
    t.keys[k], t.moved[k], t.many[k] = t.moved[k], nil, nil
  end
  if t.values then t.values[k], t.values[h] = nil, nil end
  t.lists[k], t.changed[k] = nil, nil
  load(t, k, op.c)
end

-- isLeased reports whether a key that is not known to have leases has some.
local function isLeased(t, op)
  return not t.pairs and not t.fresh[op.k] and try('GETRANGE', t.keys[op.k], '0', '4') == LEASED
end

-- refuseHolds is the answer if something foreign is in the place of a state or a list.
local function refuseHolds(t, verb, n)
  for i = 1, n do
    local op = t.ops[i]
    op.allowed, op.remaining, op.retry, op.delay, op.reset, op.kept = false, 0, 0, 0, 0, 0
    if not t.fresh[op.k] or verb == LEASE or verb == RESET then
      answerForeign(t, FOREIGN)
    elseif t.lists[op.k] == false then
      answerForeign(t, FOREIGN_HOLDS)
    elseif verb == SETTLE or verb == EXTEND then
      tell(t, UNKNOWN, 0, 0)
    else
      answerOp(t, op, verb == HOLD_TAKE and op.last == ALWAYS and op.cost)
    end
  end
end

-- doHold does what a request about holds asks for.
local function doHold(t, verb, n, i)
  local input = t.input
  local isForeign, isLate, isUnreached = readOps(t, n, i, 7), false, false
  for j = 1, n do
    local op, h = t.ops[j], input[i + 5]
    op.releases, op.isHeld, op.client = h < 0, input[i + 6] > 0, input[i + 6] - 1
    op.list = h < 0 and -h or h
    if verb == RESET and isLeased(t, op) then
      isUnreached = true
    elseif verb == RESET then
      forgetOp(t, op)
      op.last = -1
    elseif h ~= 0 then
      if not listOf(t, op) then
        isForeign = true
      elseif op.releases and t.fresh[op.k] then
        isLate = endDue(t, op) or isLate
      end
    end
    i = i + 7
  end
  if isUnreached or isForeign and verb ~= RESET then
    refuseHolds(t, verb, n)
  elseif verb == RESET then
    survey(t, n)
  elseif isLate then
    for _ = 1, n do answerForeign(t, MORE_DUE) end
  elseif verb == RESERVE then
    reserve(t, n, input[i], t.keys[input[i + 1]], input[i + 2], input[i + 3])
  elseif verb == SETTLE or verb == EXTEND then
    endHold(t, verb, n, input[i], t.keys[input[i + 1]], input[i + 2], input[i + 3])
  elseif verb == HOLD_TAKE then
    settle(t, n)
  elseif verb == LEASE then
    prepareLeases()
    LEASES.take(t, n, i)
  else
    for k = 1, n do
      peekOp(t, t.ops[k], together(t, k))
      answerDenial(t, t.ops[k], together(t, k))
    end
  end
end

local function holds(keys, args)
  local input, i, now, keep = begin(args)
  if not i then return input end
  prepareDecisions()
  prepareLists()
  local states, many = input[i], input[i + 1]
  local t = { -- with room for few keys at once, as in requests
    keys = keys, input = input, now = now, keep = keep, out = { now, nil, nil, nil, nil, nil, nil }, length = 1, ops = { nil, nil, nil, nil }, shift = 0,
    fresh = { nil, nil, nil, nil }, a = { nil, nil, nil, nil }, b = { nil, nil, nil, nil }, expires = { nil, nil, nil, nil },
    limitOf = { nil, nil, nil, nil }, changed = { nil, nil, nil, nil }, lists = { nil, nil, nil, nil },
    more = {}, moved = {}, many = {}, leases = {}, pairs = nil, grows = many % 2 == 1, readMoved = nil,
  }
  if many >= 2 then t.pairs, t.readMoved = states, readMoved end
  local isShort
  t.limits, i, isShort = readLimits(input, i + 2)
  if isShort then t.values = call('MGET', unpack(keys, 1, states)) end
  local last = #input
  while i < last do
    local verb, n = input[i], input[i + 1]
    if verb >= HOLD_PEEK and verb <= RESET then
      doHold(t, verb, n, i + 2)
      i = i + 6 + 7 * n
    elseif verb == LEASE then
      doHold(t, verb, n, i + 2)
      i = i + 2 + (7 + LEASE_NUMBERS) * n
    else
      doRequest(t, verb, n, i + 2)
      i = i + 2 + 5 * n
    end
  end
  for k = 1, states do
    local l, changed = t.lists[k], t.changed[k]
    local isNew = l and l.from < EXACT -- since some have changed
    if isNew and l.base > 0 then
      LISTS.write(now, keep, keys[k], t.fresh[k], t.a[k], t.b[k], t.expires[k], l)
    else
      if changed then t.limitOf[k].does.write(now, keep, keys[k], t.fresh[k], t.a[k], t.b[k], t.expires[k], t.more[k]) end
      if isNew then LISTS.writeApart(now, keep, l) end
    end
    if t.moved[k] and (t.many[k] or not t.leases[k]) then MANY.write(t, k) end
    if t.leases[k] then LEASES.write(t, k) end
  end
  return cmsgpack.pack(t.out)
end
