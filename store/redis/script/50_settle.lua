-- All or none, as in settle.go of the Go package.

-- together is the cost of the i-th op and of those before it on the same key,
-- all of them or those whose limit counts denials.
local function together(ops, i, counting)
  local cost = ops[i].cost
  for j = 1, i - 1 do
    if ops[j].key == ops[i].key and (not counting or ops[j].limit.countDenied) then
      cost = min(cost, MAX_UNITS) + min(ops[j].cost, MAX_UNITS)
    end
  end
  return cost
end

local function survey(ops, now)
  local answers = {}
  for i, op in ipairs(ops) do
    answers[i] = peek(op.state, op.limit, together(ops, i), op.last, now)
  end
  return answers
end

local function settle(ops, now)
  local answers, admitted = {}, true
  for i, op in ipairs(ops) do
    answers[i] = decide(op.state, op.limit, together(ops, i), op.last, now)
    admitted = admitted and answers[i].allowed
  end
  if not admitted then
    for i, op in ipairs(ops) do
      local answer = answers[i]
      if not op.limit.countDenied then
        if answer.allowed then
          answers[i] = peek(op.state, op.limit, together(ops, i), op.last, now)
        end
        answers[i].next = nil
      else
        local counted = decide(op.state, op.limit, together(ops, i, true), op.last, now)
        answer.next, answer.remaining, answer.reset = counted.next, counted.remaining, counted.reset
      end
    end
  end
  for i, op in ipairs(ops) do
    if answers[i].next then commit(op.state, op.limit, answers[i].next) end
  end
  return answers
end

-- giveBack takes the last op first, so that what was charged on top of another
-- charge of the same request is off it before that is given back.
local function giveBack(ops)
  for i = #ops, 1, -1 do
    local s, c, receipt = ops[i].state, ops[i].limit, ops[i].last
    if s.fresh > 0 and receipt ~= 0 then
      local algorithm = algorithms[c.algorithm]
      if algorithm.commit then openTail(s) end
      algorithm.refund(s, c, receipt, ops[i].cost)
      s.changed = true
      if s.fresh <= 0 then forget(s) end
    end
  end
end
