-- All or none, as in settle.go of the Go package. The ops of the request are columns.

local OP_KEY, OP_LIMIT, OP_COST, OP_LAST, OP_LOOK, OP_LEAVE = {}, {}, {}, {}, {}, {}
local ANSWERS = {}

-- readOp reads an op of the input, and its state. A cost below 0 is only looked at.
local function readOp(op, i)
  k = input[i]
  local limit, cost = limits[input[i + 1]], input[i + 2]
  OP_KEY[op], OP_LIMIT[op], OP_LOOK[op], OP_LAST[op], OP_LEAVE[op] = k, limit, cost < 0, input[i + 3], input[i + 4]
  OP_COST[op] = cost < 0 and -1 - cost or cost
  if not FRESH[k] then loadFor(limit, k) end
end

-- peek answers without charging.
local function peek()
  judge()
  debt = false
  charged, reset = false, max(0, FRESH[k] - now)
end

-- together is the cost of the i-th op and of those before it on the same key, all of
-- them or those whose limit counts denials. What is only looked at is by itself.
local function together(i, counting)
  local cost = OP_COST[i]
  if OP_LOOK[i] then return cost end
  for j = 1, i - 1 do
    if OP_KEY[j] == OP_KEY[i] and not OP_LOOK[j] and (not counting or OP_LIMIT[j].countDenied) then
      cost = min(cost, MAX_UNITS) + min(OP_COST[j], MAX_UNITS)
    end
  end
  return cost
end

local function keep(i)
  ANSWERS[i] = { allowed, remaining, retry, reset, delay, charged, nextFresh, nextA, nextB, excess }
end

local function ask(how, i, counting)
  k, c = OP_KEY[i], OP_LIMIT[i]
  cost, maxDelay, leave = together(i, counting), OP_LAST[i], OP_LEAVE[i]
  how()
end

local function decideOrLook(i) ask(OP_LOOK[i] and peek or decide, i) end

-- giveUp takes back the charge of a request that another op refused, unless the
-- limit counts those too.
local function giveUp(i)
  local answer = ANSWERS[i]
  if OP_LOOK[i] or not OP_LIMIT[i].countDenied then
    if answer[1] then
      ask(peek, i)
      keep(i)
    end
    ANSWERS[i][6] = false
    return
  end
  ask(decide, i, true)
  answer[2], answer[4], answer[6], answer[7], answer[8], answer[9] = remaining, reset, charged, nextFresh, nextA, nextB
end

-- isIncluded reports whether a later op charges the same key: what it charges includes
-- the costs of those before it.
local function isIncluded(i, n)
  for j = i + 1, n do
    if OP_KEY[j] == OP_KEY[i] and ANSWERS[j][6] then return true end
  end
  return false
end

local function settle(n)
  local admitted, owes = true, false
  for i = 1, n do
    decideOrLook(i)
    keep(i)
    admitted, owes = admitted and allowed, owes or OP_LAST[i] == ALWAYS
  end
  if not admitted and not owes then
    for i = 1, n do giveUp(i) end
  end
  for i = 1, n do
    local answer = ANSWERS[i]
    if answer[6] and not isIncluded(i, n) then
      k, c, nextFresh, nextA, nextB = OP_KEY[i], OP_LIMIT[i], answer[7], answer[8], answer[9]
      commit()
    end
  end
  for i = 1, n do
    allowed, remaining, retry, reset, delay = ANSWERS[i][1], ANSWERS[i][2], ANSWERS[i][3], ANSWERS[i][4], ANSWERS[i][5]
    debt, excess = OP_LAST[i] == ALWAYS, min(ANSWERS[i][10] or 0, OP_COST[i])
    answer()
  end
  return admitted
end

local function survey(n)
  for i = 1, n do
    ask(peek, i)
    answer()
  end
end
