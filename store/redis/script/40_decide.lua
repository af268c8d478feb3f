-- One decision, as in decide.go of the Go package.

local allowed, remaining, retry, reset, delay -- the answer
local charged, nextFresh, nextA, nextB -- whether the key's state changes, and to what

-- judge decides on the standing before any charge.
local function judge(cost, maxDelay)
  at, old = now, FRESH[k]
  c.algorithm.look()
  if free < 0 then free = 0 end
  allowed, retry, delay, remaining = false, 0, 0, free
  if cost > c.capacity then
    retry = NEVER
    return
  end
  local wait, hold = 0, 0
  if cost > free then wait = c.algorithm.wait(cost) end
  if c.shape then
    hold = c.algorithm.delay()
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
local function decide(cost, maxDelay)
  judge(cost, maxDelay)
  charged = allowed
  if allowed then
    nextFresh, nextA, nextB = c.algorithm.charge(cost)
    remaining = free - cost
  elseif c.countDenied then
    local counted = min(cost, c.capacity)
    nextFresh, nextA, nextB = c.algorithm.charge(counted)
    charged, remaining = true, max(0, free - counted)
    if retry ~= NEVER then
      fresh, a, b = nextFresh, nextA, nextB
      retry = c.algorithm.wait(cost) + at - now
    end
  end
  reset = max(0, (charged and nextFresh or FRESH[k]) - now)
end

-- commit puts a decision into effect.
local function commit()
  if c.algorithm.commit then c.algorithm.commit(nextFresh, nextA, nextB) end
  FRESH[k], A[k], B[k], CHANGED[k] = nextFresh, nextA, nextB, true
end

local TAKE = 1
local input, limits -- of the call

-- out is the answer of the call; its length is kept beside it, for asking is dear.
local out, length = {}, 0

local function answer()
  out[length + 1] = allowed and 1 or 0
  out[length + 2] = remaining
  out[length + 3] = retry
  out[length + 4] = reset
  out[length + 5] = delay
  length = length + 5
end
