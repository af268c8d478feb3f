-- One decision, as in decide.go of the Go package.

-- judge decides on the standing before any charge.
--: judge
at, old = now, FRESH[k]
--> look
if free < 0 then free = 0 end
allowed, retry, delay, remaining = false, 0, 0, free
if cost > c.capacity then
  retry = NEVER
else
  wait, hold = 0, 0
  if cost > free then
    --> wait
  end
  if c.shape then
    --> hold
    if maxDelay >= 0 then wait = max(wait, hold - maxDelay) end
  end
  if old > at then wait = min(wait, old - at) end
  if wait <= 0 then
    allowed, delay = true, hold
  else
    retry = wait + at - now
  end
end

-- decide answers, and finds what the state would be.
--: decide
--> judge
charged = allowed
if allowed then
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
reset = max(0, (charged and nextFresh or FRESH[k]) - now)

-- commit puts a decision into effect.
--: commit
--> tail
FRESH[k], A[k], B[k], CHANGED[k] = nextFresh, nextA, nextB, true

--: answer
out[length + 1] = allowed and 1 or 0
out[length + 2] = remaining
out[length + 3] = retry
out[length + 4] = reset
out[length + 5] = delay
length = length + 5
