-- begin reads what a call is to do: numbers, which Go has packed. It returns these, where the next
-- one is, the time, and for how long keys are kept, if that is a test's. Without them the call has to
-- end, with this answer: its time is not within what Go knows of the calendar.
local function begin(args)
  if not call then
    try, pack, parse, encode, spread = redis.pcall, struct.pack, struct.unpack, cmsgpack.pack, unpack
    min, max, sub = math.min, math.max, string.sub
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
    now = time[1] * SECOND + time[2]
  end
  if i > 2 and (now < input[2] or now >= input[3]) then return encode({ now }) end
  return input, i, now, keep
end

local judge, decide, answer

-- prepareDecisions is called before one of these. Most costs fit, and a script defines this at each call.
local function prepareDecisions()
  if decide then return end -- the last of them: a call that is stopped here may leave the others

  -- answer writes a decision: two to four numbers, of which the first tells what the others are, but of
  -- a debt. It returns how long out is then.
  function answer(out, length, allowed, remaining, retry, delay, reset, excess)
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
      local units = min(leased, c.does.room(c, at, a, b, more))
      if units > 0 then fresh, a, b = c.does.charge(c, at, fresh, a, b, units, true) end
    end
    return c.does.wait(c, at, fresh, a, b, need, more)
  end

  -- judge tells whether a cost fits a standing and, if not, how long to wait; or its delay. Units that are
  -- leased are not free any more.
  function judge(c, now, fresh, at, viewFresh, viewA, viewB, free, more, cost, maxDelay, leave, leased)
    c.does.prepare()
    local need, wait, delay = cost + leave, 0, 0
    if need > c.capacity then return false, NEVER, 0 end
    if cost > free then wait = waitFor(c, at, viewFresh, viewA, viewB, need, more, leased) end
    if c.shape then
      delay = c.does.delay(c, viewA)
      if maxDelay >= 0 then wait = max(wait, delay - maxDelay) end
    end
    if fresh > at and wait > fresh - at and not leased then wait = fresh - at end
    if wait > 0 then return false, wait + at - now, 0 end
    return true, 0, delay
  end

  -- owe charges a cost whether or not it fits, as far as a key may owe, and returns as decide does.
  local function owe(c, now, at, fresh, a, b, free, more, cost, leave, leased, allowed)
    local does = c.does
    local units = max(0, min(does.room(c, at, a, b, more) - (leased or 0), cost))
    local nextFresh, nextA, nextB
    if units > 0 then
      nextFresh, nextA, nextB = does.charge(c, at, fresh, a, b, units, true)
      fresh, a, b = nextFresh, nextA, nextB
    end
    local retry = 0
    if not allowed then
      local need = 1 + leave
      retry = need <= c.capacity and waitFor(c, at, fresh, a, b, need, more, leased) + at - now or NEVER
    end
    return allowed, max(0, free - units), retry, 0, nextFresh, nextA, nextB, cost - units
  end

  -- decide makes a decision, as in decide.go, of what look has found; what is left for others is not
  -- free any more. It returns whether the cost is allowed, what remains, when to retry, the delay, the state with the charge if there
  -- is one, and of what is always charged how much was not.
  function decide(c, now, fresh, at, viewFresh, viewA, viewB, free, more, cost, maxDelay, leave, leased)
    if free < 0 then free = 0 end
    local allowed, retry, delay = judge(c, now, fresh, at, viewFresh, viewA, viewB, free, more, cost, maxDelay, leave, leased)
    if maxDelay == ALWAYS then return owe(c, now, at, viewFresh, viewA, viewB, free, more, cost, leave, leased, allowed) end
    if allowed then return true, free - cost, 0, delay, c.does.charge(c, at, viewFresh, viewA, viewB, cost) end
    if not c.countDenied then return false, free, retry, 0 end
    local units = min(cost, c.capacity)
    local nextFresh, nextA, nextB = c.does.charge(c, at, viewFresh, viewA, viewB, units)
    if retry ~= NEVER then retry = waitFor(c, at, nextFresh, nextA, nextB, cost + leave, more, leased) + at - now end
    return false, max(0, free - units), retry, 0, nextFresh, nextA, nextB
  end
end
