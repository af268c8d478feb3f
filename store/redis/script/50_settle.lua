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
    answers[i] = peek(op.state, op.limit, together(ops, i), op.maxDelay, now)
  end
  return answers
end

local function settle(ops, now)
  local answers, admitted = {}, true
  for i, op in ipairs(ops) do
    answers[i] = decide(op.state, op.limit, together(ops, i), op.maxDelay, now)
    admitted = admitted and answers[i].allowed
  end
  if not admitted then
    for i, op in ipairs(ops) do
      local answer = answers[i]
      if not op.limit.countDenied then
        if answer.allowed then
          answers[i] = peek(op.state, op.limit, together(ops, i), op.maxDelay, now)
        end
        answers[i].next = nil
      else
        local counted = decide(op.state, op.limit, together(ops, i, true), op.maxDelay, now)
        answer.next, answer.remaining, answer.reset = counted.next, counted.remaining, counted.reset
      end
    end
  end
  for i, op in ipairs(ops) do
    if answers[i].next then commit(op.state, op.limit, answers[i].next) end
  end
  return answers
end
