-- Whatever is not one op to take.

local PEEK, GIVE_BACK, RESET = 0, 2, 3

-- several does what a request of n ops, which are in the input from i on, asks for.
-- One for a foreign key has no effect, but to reset it.
several = function(verb, n, i)
  local foreign = false
  for op = 1, n do
    k = input[i]
    OP_KEY[op], OP_LIMIT[op], OP_COST[op], OP_LAST[op] = k, limits[input[i + 1]], input[i + 2], input[i + 3]
    if not FRESH[k] then loadFor(OP_LIMIT[op], k) end
    if verb == RESET then forget() end
    foreign = foreign or FOREIGN[k]
    i = i + 4
  end
  if foreign then
    allowed, remaining, retry, reset, delay, debt = false, 0, 0, 0, 0, false
    for op = 1, n do
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
