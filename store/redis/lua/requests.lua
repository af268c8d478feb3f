-- Any requests. args[1] is what to do, packed by Go (see encode.go):
--
--   now, how many limits, and the number of the algorithm and the text of each; then for each request
--   verb, how many ops, and key, limit, cost, last, leave for each
--
-- now and the answer are as of singles. A cost below 0 is -1 - cost, and only looked at. last is the longest delay or, if
-- something is to be given back, the receipt; leave is what is left for others. A request that is as the one before it, with
-- the keys that come after those, is AGAIN alone. Requests come one after the other, as if they were calls of their own.
--
-- A state is read and written once a call, however many requests ask for it. Meanwhile it is in
-- columns, by the number of its key; a table for each would take more time.

local ALGORITHM = { [0] = BUCKET, BUCKET, FIXED_WINDOW, SLIDING_WINDOW, LOG, SUB_WINDOWS }
local PEEK, TAKE, REFUND, RENEW, JOINT_TAKE, AGAIN = 0, 1, 2, 3, 10, 11

-- readLimits reads those of a call, and returns where they end, and whether all states are short enough to be read at once.
local function readLimits(input, i)
  local limits, isShort, count = { nil, nil, nil, nil }, true, input[i]
  i = i + 1
  for l = 1, count do
    local c = readLimit(ALGORITHM[input[i]], input[i + 1])
    limits[l], isShort, i = c, isShort and (c.buckets or 0) <= FEW, i + 2
  end
  return limits, i, isShort
end

-- load reads the state of the k-th key, and returns its fresh, which is false if it is foreign.
local function load(t, k, c)
  local value
  if t.values then value = t.values[k] end
  local fresh, a, b, expires, more = c.does.read(t.keys[k], value, c)
  if not fresh and t.readMoved then fresh, a, b, expires, more = t.readMoved(t, k, c) end
  fresh = fresh or false
  t.fresh[k], t.a[k], t.b[k], t.expires[k], t.more[k], t.limitOf[k] = fresh, a, b, expires, more, c
  if not t.leases or not t.leases[k] then return fresh end
  t.expireLeases(t, k, c)
  return t.fresh[k]
end

-- leasedOf is how many units of a key are on lease; nil if none are.
local function leasedOf(t, k)
  local l = t.leases and t.leases[k]
  return l and l.out > 0 and l.out or nil
end

-- keptOf is how many units on lease would be free, and answerKept tells of them before a decision.
local function keptOf(free, leased) return math.max(0, math.min(free, leased)) end

local function answerKept(t, op)
  if op.kept > 0 then
    t.out[t.length + 1], t.out[t.length + 2] = KEPT, op.kept
    t.length = t.length + 2
  end
end

-- newOp returns an op, with all that it may have, for a table that grows costs time: what is asked for, the decision, the
-- state with the charge, and what is about holds. It is used for one request after the other.
local function newOp()
  return {
    k = 0, c = 0, cost = 0, last = 0, leave = 0, isLook = false,
    allowed = false, remaining = 0, retry = 0, delay = 0, reset = 0, excess = 0, kept = 0,
    nextFresh = 0, nextA = 0, nextB = 0,
    list = 0, releases = false, isHeld = false, client = 0, isOneOfMany = false, isAtShare = false, member = '', bar = 0,
  }
end

-- readOps reads the n ops of a request, each of so many numbers, and tells whether one is about a foreign key.
local function readOps(t, n, i, width)
  local input, foreign = t.input, false
  t.repeats = false
  for j = 1, n do
    local k, c, cost = input[i] + t.shift, t.limits[input[i + 1]], input[i + 2]
    local fresh = t.fresh[k]
    if fresh == nil then fresh = load(t, k, c) end
    for other = 1, j - 1 do
      if t.ops[other].k == k then t.repeats = true end
    end
    local op = t.ops[j]
    if not op then
      op = newOp()
      t.ops[j] = op
    end
    op.k, op.c, op.isLook, op.last, op.leave = k, c, cost < 0, input[i + 3], input[i + 4]
    op.cost = cost < 0 and -1 - cost or cost
    foreign = foreign or not fresh
    i = i + width
  end
  return foreign
end

-- decideOp makes the decision about an op, and peekOp one without a charge.
local function decideOp(t, op, cost)
  local k, c, now, leave, leased = op.k, op.c, t.now, op.leave, leasedOf(t, op.k)
  local fresh, more = t.fresh[k], t.more[k]
  local at, viewFresh, viewA, viewB, free = c.does.look(c, now, fresh, t.a[k], t.b[k], more)
  op.allowed, op.remaining, op.retry, op.delay, op.nextFresh, op.nextA, op.nextB, op.excess =
    DECISIONS.decide(c, now, fresh, at, viewFresh, viewA, viewB, free - leave - (leased or 0), more, cost, op.last, leave, leased)
  op.reset, op.kept = (op.nextFresh or fresh) - now, 0
  if leased then op.kept = keptOf(free - leave - (op.last == ALWAYS and cost - (op.excess or 0) or 0), leased) end
end

local function peekOp(t, op, cost)
  local k, c, now, leave, leased = op.k, op.c, t.now, op.leave, leasedOf(t, op.k)
  local fresh, more = t.fresh[k], t.more[k]
  local at, viewFresh, viewA, viewB, free = c.does.look(c, now, fresh, t.a[k], t.b[k], more)
  op.kept = leased and keptOf(free - leave, leased) or 0
  free = math.max(0, free - leave - (leased or 0))
  op.allowed, op.retry, op.delay = DECISIONS.judge(c, now, fresh, at, viewFresh, viewA, viewB, free, more, cost, op.last, leave, leased)
  op.remaining, op.nextFresh, op.excess, op.reset = free, nil, 0, fresh - now
end

-- commitOp lets the charge of an op take effect.
local function commitOp(t, op)
  local k = op.k
  if t.more[k] then op.c.does.commit(op.c, t.more[k], t.fresh[k], t.a[k], t.b[k], op.nextFresh, op.nextA, op.nextB) end
  t.fresh[k], t.a[k], t.b[k], t.changed[k] = op.nextFresh, op.nextA, op.nextB, true
end

local function answerOp(t, op, excess)
  answerKept(t, op)
  t.length = DECISIONS.answer(t.out, t.length, op.allowed, op.remaining, op.retry, op.delay, op.reset, excess)
end

local function answerForeign(t, code)
  t.length = t.length + 1
  t.out[t.length] = code
end

-- together is the cost of the i-th op and of those before it on the same key, all of them or those
-- whose limit counts denials. What is only looked at is by itself.
local function together(t, i, counting)
  local op = t.ops[i]
  local cost = op.cost
  if not t.repeats or op.isLook then return cost end
  for j = 1, i - 1 do
    local other = t.ops[j]
    if other.k == op.k and not other.isLook and (not counting or other.c.countDenied) then
      cost = math.min(cost, MAX_UNITS) + math.min(other.cost, MAX_UNITS)
    end
  end
  return cost
end

-- giveUp takes back the charge of a request that another op refused, unless the limit counts those, too.
local function giveUp(t, i)
  local op = t.ops[i]
  if op.isLook or not op.c.countDenied then
    if op.allowed then peekOp(t, op, together(t, i)) end
    op.nextFresh = nil
    return
  end
  local allowed, retry, delay = op.allowed, op.retry, op.delay
  decideOp(t, op, together(t, i, true))
  op.allowed, op.retry, op.delay = allowed, retry, delay
end

-- isIncluded reports whether a later op charges the same key: what it charges includes the costs of those before it.
local function isIncluded(t, i, n)
  for j = i + 1, n do
    if t.ops[j].k == t.ops[i].k and t.ops[j].nextFresh then return true end
  end
  return false
end

-- weigh decides n ops together, and tells whether all are allowed; charge lets that take effect.
local function weigh(t, n)
  local admitted, owes = true, false
  for i = 1, n do
    local op = t.ops[i]
    if op.isLook then peekOp(t, op, op.cost) else decideOp(t, op, together(t, i)) end
    admitted, owes = admitted and op.allowed, owes or op.last == ALWAYS
  end
  if not admitted and not owes then
    for i = 1, n do giveUp(t, i) end
  end
  return admitted
end

local function charge(t, n)
  for i = 1, n do
    local op = t.ops[i]
    if op.nextFresh and not (t.repeats and isIncluded(t, i, n)) then commitOp(t, op) end
    answerOp(t, op, op.last == ALWAYS and math.min(op.excess or 0, op.cost))
  end
end

-- settle charges n ops, all or none, as in decide_all.go, and tells whether it has.
local function settle(t, n)
  local admitted = weigh(t, n)
  charge(t, n)
  return admitted
end

local function survey(t, n)
  for i = 1, n do
    peekOp(t, t.ops[i], together(t, i))
    answerOp(t, t.ops[i])
  end
end

-- giveBack returns units of an op's receipt.
local function giveBack(t, op, receipt, units)
  local k = op.k
  if t.fresh[k] <= 0 or receipt == 0 then return end
  op.c.does:prepare()
  local fresh, a, b = op.c.does.refund(op.c, t.fresh[k], t.a[k], t.b[k], t.more[k], receipt, units)
  if fresh <= 0 then a, b = 0, 0 end
  t.fresh[k], t.a[k], t.b[k], t.changed[k] = fresh, a, b, true
end

-- refuse is the answer to a request about n ops of which some are foreign: it has no effect.
local function refuse(t, verb, n)
  for i = 1, n do
    local op = t.ops[i]
    op.allowed, op.remaining, op.retry, op.delay, op.reset, op.kept = false, 0, 0, 0, 0, 0
    if not t.fresh[op.k] then
      answerForeign(t, FOREIGN)
    else
      answerOp(t, op, (verb == RENEW or verb == JOINT_TAKE and op.last == ALWAYS) and op.cost)
    end
  end
end

-- doRequest does what a request of n ops, which are in the input from i on, asks for.
local function doRequest(t, verb, n, i)
  if readOps(t, n, i, 5) then
    refuse(t, verb, n)
  elseif verb == TAKE or verb == JOINT_TAKE then
    settle(t, n)
  else
    -- The last first: what was charged on top of another charge of the same request is off it before that is given back.
    for j = n, 1, -1 do
      local op = t.ops[j]
      if verb ~= PEEK then
        giveBack(t, op, op.last, op.cost)
        op.last = verb == RENEW and ALWAYS or -1
      end
    end
    if verb == RENEW then settle(t, n) else survey(t, n) end
  end
end

local function requests(keys, args)
  local input, i, now, keep = begin(args)
  if not i then return input end
  local limits, isShort
  limits, i, isShort = readLimits(input, i)
  local values
  if #keys > 1 and isShort then values = call('MGET', unpack(keys)) end
  -- Room for four keys is made at once; for three, to make it as they come takes 24,000 instructions more.
  local FRESH, A, B, EXPIRES, CHANGED = { nil, nil, nil, nil }, { nil, nil, nil, nil }, { nil, nil, nil, nil }, { nil, nil, nil, nil }, { nil, nil, nil, nil }
  local LIMIT, MORE = { nil, nil, nil, nil }, {}
  local NEXT_FRESH, NEXT_A, NEXT_B = { nil, nil, nil, nil }, { nil, nil, nil, nil }, { nil, nil, nil, nil } -- of each op, if all are allowed
  local out, length, last, t = { now, nil, nil, nil, nil, nil, nil }, 1, #input, nil
  local verb, n, first, shift = 0, 0, 0, 0 -- the latter is how far the keys are from those of a request that was as this one
  while i <= last do
    if input[i] == AGAIN then
      shift = shift + n
      i = i + 1
    else
      verb, n, first, shift = input[i], input[i + 1], i + 2, 0
      i = first + 5 * n
    end
    local before, isUsual, op, j = length, verb == TAKE, 0, first
    while isUsual and op < n do
      op = op + 1
      local k, c, cost = input[j] + shift, limits[input[j + 1]], input[j + 2]
      local does, fresh = c.does, FRESH[k]
      if fresh == nil then
        local a, b, expires, more
        fresh, a, b, expires, more = does.read(keys[k], values and values[k], c)
        fresh = fresh or false
        FRESH[k], A[k], B[k], EXPIRES[k], LIMIT[k] = fresh, a, b, expires, c
        if more then MORE[k] = more end
      end
      isUsual = fresh and cost >= 0 and not c.shape
      if isUsual then
        local at, viewFresh, viewA, viewB, free = does.look(c, now, fresh, A[k], B[k], MORE[k])
        free = free - input[j + 4] - cost
        isUsual = free >= 0
        if isUsual then
          local nextFresh
          nextFresh, NEXT_A[op], NEXT_B[op] = does.charge(c, at, viewFresh, viewA, viewB, cost)
          NEXT_FRESH[op] = nextFresh
          out[length + 1] = free * 4 + 1
          length = length + 2
          out[length] = nextFresh - now
          j = j + 5
        end
      end
    end
    if isUsual then
      j = first
      for op = 1, n do
        local k, nextFresh, nextA, nextB = input[j] + shift, NEXT_FRESH[op], NEXT_A[op], NEXT_B[op]
        local more = MORE[k]
        if more then LIMIT[k].does.commit(LIMIT[k], more, FRESH[k], A[k], B[k], nextFresh, nextA, nextB) end
        FRESH[k], A[k], B[k], CHANGED[k] = nextFresh, nextA, nextB, true
        j = j + 5
      end
    else
      if not t then
        prepareDecisions()
        t = {
          keys = keys, input = input, now = now, keep = keep, out = out, ops = { nil, nil, nil, nil }, limits = limits, values = values,
          fresh = FRESH, a = A, b = B, expires = EXPIRES, more = MORE, limitOf = LIMIT, changed = CHANGED,
        }
      end
      t.length, t.shift = before, shift
      doRequest(t, verb, n, first)
      length = t.length
    end
  end
  for k in pairs(CHANGED) do LIMIT[k].does.write(now, keep, keys[k], FRESH[k], A[k], B[k], EXPIRES[k], MORE[k]) end
  return cmsgpack.pack(out)
end
