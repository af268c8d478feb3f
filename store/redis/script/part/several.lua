-- Whatever is not one op to take.

local PEEK, GIVE_BACK, RESET = 0, 2, 3

-- several does what a request of n ops, which are in the input from i on, asks for.
-- One for a foreign key has no effect, but to reset it.
several = function(verb, n, i)
  local foreign = false
  for op = 1, n do
    readOp(op, i)
    if verb == RESET then forget() end
    foreign = foreign or FOREIGN[k]
    i = i + 4
  end
  if foreign then
    allowed, remaining, retry, reset, delay = false, 0, 0, 0, 0
    for op = 1, n do
      debt, excess = verb == TAKE and OP_LAST[op] == ALWAYS, OP_COST[op]
      if FOREIGN[OP_KEY[op]] then refuseForeign() else answer() end
    end
    return
  end
  if verb == TAKE then
    settle(n)
    return
  end
  if verb == GIVE_BACK then giveBack(n) end
  if verb ~= PEEK then
    for op = 1, n do OP_LAST[op] = -1 end
  end
  survey(n)
end
