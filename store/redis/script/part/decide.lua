--: judge
-- The decision, as in decide.go of the Go package, on the standing before any charge. One
-- assignment follows the other: Lua makes several at once by way of others.
at = now
old = FRESH[k]
--> look
free = free - leave
need = cost + leave
if free < 0 then free = 0 end
allowed = false
retry = 0
delay = 0
remaining = free
if need > c.capacity then
  retry = NEVER
else
  wait = 0
  hold = 0
  if cost > free then
    --> wait
  end
  if c.shape then
    --> hold
    if maxDelay >= 0 then wait = max(wait, hold - maxDelay) end
  end
  if old > at and wait > old - at then wait = old - at end
  if wait <= 0 then
    allowed = true
    delay = hold
  else
    retry = wait + at - now
  end
end

--: owe
-- The cost is charged whether or not it fits, as far as a key may owe.
--> room
units = max(0, min(units, cost))
charged, excess, remaining, delay = units > 0, cost - units, max(0, free - units), 0
if charged then
  --> charge
end
if not allowed then
  if charged then fresh, a, b = nextFresh, nextA, nextB end
  need, retry = 1 + leave, NEVER
  if need <= c.capacity then
    --> wait
    retry = wait + at - now
  end
end

--: decide
-- The answer, and what the state would be.
--> judge
charged = allowed
debt = maxDelay == ALWAYS
if debt then
  --> owe
elseif allowed then
  units = cost
  --> charge
  remaining = free - cost
elseif c.countDenied then
  units = min(cost, c.capacity)
  --> charge
  charged, remaining = true, max(0, free - units)
  if retry ~= NEVER then
    fresh, a, b = nextFresh, nextA, nextB
    --> wait
    retry = wait + at - now
  end
end
reset = (charged and nextFresh or FRESH[k]) - now
if reset < 0 then reset = 0 end

--: commit
-- The decision takes effect.
--> tail
FRESH[k] = nextFresh
A[k] = nextA
B[k] = nextB
CHANGED[k] = true

--: answer
-- Two to four numbers: the first tells what the others are, but of a debt.
if allowed then
  out[length + 2] = reset
  if delay > 0 then
    out[length + 1] = remaining * 4 + 2
    out[length + 3] = delay
    length = length + 3
  else
    out[length + 1] = remaining * 4 + 1
    length = length + 2
  end
else
  out[length + 1] = remaining * 4
  out[length + 2] = reset
  out[length + 3] = retry
  length = length + 3
  if debt then
    length = length + 1
    out[length] = excess
  end
end

--: refuseForeign
-- The answer about a key that holds something else.
length = length + 1
out[length] = 3
