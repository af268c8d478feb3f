-- All or none, as in settle.go of the Go package. The ops of the request are columns.

local OP_KEY, OP_LIMIT, OP_COST, OP_LAST = {}, {}, {}, {}
local ANSWERS = {}

-- peek answers without charging.
local function peek()
  judge()
  debt = false
  charged, reset = false, max(0, FRESH[k] - now)
end

-- together is the cost of the i-th op and of those before it on the same key, all of
-- them or those whose limit counts denials.
local function together(i, counting)
  local cost = OP_COST[i]
  for j = 1, i - 1 do
    if OP_KEY[j] == OP_KEY[i] and (not counting or OP_LIMIT[j].countDenied) then
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
  cost, maxDelay = together(i, counting), OP_LAST[i]
  how()
end

-- giveUp takes back the charge of a request that another op refused, unless the
-- limit counts those too.
local function giveUp(i)
  local answer = ANSWERS[i]
  if not OP_LIMIT[i].countDenied then
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
  local admitted = true
  for i = 1, n do
    ask(decide, i)
    keep(i)
    admitted = admitted and allowed
  end
  local owes = OP_LAST[1] == ALWAYS
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
    debt, excess = owes, min(ANSWERS[i][10] or 0, OP_COST[i])
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
