-- begin reads what a call is to do: numbers, which Go has packed. It returns these, where the next
-- one is, the time, and for how long keys are kept, if that is a test's. Without them the call has to
-- end, with this answer: its time is not within what Go knows of the calendar.
local function begin(args)
  if not call then
    try, pack, parse = redis.pcall, struct.pack, struct.unpack
    call = redis.call
  end
  local input = { cmsgpack.unpack(args[1]) }
  if not input[2] then input = input[1] end -- an array, because they are many
  local now, i = input[1], 2
  if now < 0 then now, i = -1 - now, 4 end
  local keep
  if now > 0 then
    now, keep = now - 1, '3600000' -- less one, so that tests can begin at 0
  else
    local time = call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  if i > 2 and (now < input[2] or now >= input[3]) then return cmsgpack.pack({ now }) end
  return input, i, now, keep
end

local DECISIONS -- how they are made

-- prepareDecisions is called before it is needed. Most costs fit, and a script defines this at each call.
local function prepareDecisions()
  if DECISIONS then return end
  local NEVER, ALWAYS = -1, -2 -- as in names.lua; here, because in a script a constant that a function takes from outside costs more
  local decisions = { answer = nil, judge = nil, decide = nil } -- DECISIONS at the end: a call that is stopped before leaves nothing

  -- answer writes a decision: two to four numbers, of which the first tells what the others are, but of
  -- a debt. It returns how long out is then.
  function decisions.answer(out, length, allowed, remaining, retry, delay, reset, excess)
    if reset < 0 then reset = 0 end
    out[length + 2] = reset
    if not allowed then
      out[length + 1], out[length + 3] = remaining * 4, retry
      if not excess then return length + 3 end
      out[length + 4] = excess
      return length + 4
    end
    if delay > 0 then
      out[length + 1], out[length + 3] = remaining * 4 + 2, delay
      return length + 3
    end
    out[length + 1] = remaining * 4 + 1
    return length + 2
  end

  -- waitFor is how long until units fit. What is on lease, nil if nothing is, is taken to be spent now.
  local function waitFor(c, at, fresh, a, b, need, more, leased)
    if leased then
      c.does:prepare()
      local units = math.min(leased, c.does.room(c, at, a, b, more))
      if units > 0 then fresh, a, b = c.does.charge(c, at, fresh, a, b, units, true) end
    end
    return c.does.wait(c, at, fresh, a, b, need, more)
  end

  -- judge tells whether a cost fits a standing and, if not, how long to wait; or its delay. Units that are
  -- leased are not free any more.
  function decisions.judge(c, now, fresh, at, viewFresh, viewA, viewB, free, more, cost, maxDelay, leave, leased)
    local need, wait, delay = cost + leave, 0, 0
    if need > c.capacity then return false, NEVER, 0 end
    if cost > free then wait = waitFor(c, at, viewFresh, viewA, viewB, need, more, leased) end
    if c.shape then
      c.does:prepare()
      delay = c.does.delay(c, viewA)
      if maxDelay >= 0 then wait = math.max(wait, delay - maxDelay) end
    end
    if fresh > at and wait > fresh - at and not leased then wait = fresh - at end
    if wait > 0 then return false, wait + at - now, 0 end
    return true, 0, delay
  end

  -- decide makes a decision, as in decide.go, of what look has found; what is left for others is not
  -- free any more. It returns whether the cost is allowed, what remains, when to retry, the delay, the state with the charge if there
  -- is one, and of what is always charged, as far as a key may owe, how much was not.
  function decisions.decide(c, now, fresh, at, viewFresh, viewA, viewB, free, more, cost, maxDelay, leave, leased)
    if free < 0 then free = 0 end
    local allowed, retry, delay = decisions.judge(c, now, fresh, at, viewFresh, viewA, viewB, free, more, cost, maxDelay, leave, leased)
    local owes, need, units = maxDelay == ALWAYS, cost + leave, math.min(cost, c.capacity)
    if not owes then
      if allowed then return true, free - cost, 0, delay, c.does.charge(c, at, viewFresh, viewA, viewB, cost) end
      if not c.countDenied then return false, free, retry, 0 end
    else
      c.does:prepare()
      need, units = 1 + leave, math.max(0, math.min(c.does.room(c, at, viewA, viewB, more) - (leased or 0), cost))
    end
    local nextFresh, nextA, nextB
    if units > 0 or not owes then
      nextFresh, nextA, nextB = c.does.charge(c, at, viewFresh, viewA, viewB, units, owes)
      viewFresh, viewA, viewB = nextFresh, nextA, nextB
    end
    if allowed then
      retry = 0
    elseif need > c.capacity then
      retry = NEVER
    else
      retry = waitFor(c, at, viewFresh, viewA, viewB, need, more, leased) + at - now
    end
    return allowed, math.max(0, free - units), retry, 0, nextFresh, nextA, nextB, owes and cost - units or nil
  end
  DECISIONS = decisions
end
