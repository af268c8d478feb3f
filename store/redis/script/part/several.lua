-- Whatever is not one op to take.

local PEEK, RENEW = 0, 3

-- several does what a request of n ops, which are in the input from i on, asks for.
-- One for a foreign key has no effect.
several = function(verb, n, i)
  local foreign = false
  for op = 1, n do
    readOp(op, i)
    foreign = foreign or FOREIGN[k]
    i = i + 5
  end
  if foreign then
    allowed, remaining, retry, reset, delay = false, 0, 0, 0, 0
    for op = 1, n do
      debt, excess = verb == RENEW or verb == TAKE and OP_LAST[op] == ALWAYS, OP_COST[op]
      if FOREIGN[OP_KEY[op]] then refuseForeign() else answer() end
    end
    return
  end
  if verb == TAKE then
    settle(n)
    return
  end
  if verb ~= PEEK then
    giveBack(n)
    for op = 1, n do OP_LAST[op] = verb == RENEW and ALWAYS or -1 end
  end
  if verb == RENEW then settle(n) else survey(n) end
end
