-- One decision, as in decide.go of the Go package.

local NEVER = -1

-- In the order of weir.Algorithm.
local algorithms = { [0] = bucket, bucket, fixedWindow, slidingWindow, slidingLog, slidingBuckets }

-- judge decides on the standing before any charge.
local function judge(v, cost, maxDelay, now)
  local c, s = v.c, v.s
  v.allowed, v.retry, v.delay = false, 0, 0
  if cost > c.capacity then
    v.retry = NEVER
    return
  end
  local wait, delay = 0, 0
  if cost > v.free then wait = v.algorithm.wait(v, cost) end
  if c.shape then
    delay = v.algorithm.delay(v)
    if maxDelay >= 0 then wait = max(wait, delay - maxDelay) end
  end
  if s.fresh > v.now then wait = min(wait, s.fresh - v.now) end
  if wait <= 0 then
    v.allowed, v.delay = true, delay
  else
    v.retry = wait + v.now - now
  end
end

local function look(s, c, now)
  local v = { s = s, c = c, now = now, algorithm = algorithms[c.algorithm] }
  v.algorithm.look(v)
  v.free = max(0, v.free)
  return v
end

-- peek answers without charging.
local function peek(s, c, cost, maxDelay, now)
  local v = look(s, c, now)
  judge(v, cost, maxDelay, now)
  v.remaining, v.reset = v.free, max(0, s.fresh - now)
  return v
end

-- decide answers, with the state to come in next if there is to be one.
local function decide(s, c, cost, maxDelay, now)
  local v = look(s, c, now)
  judge(v, cost, maxDelay, now)
  v.remaining = v.free
  if v.allowed then
    v.next = { v.algorithm.charge(v, cost) }
    v.remaining = v.free - cost
  elseif c.countDenied then
    local counted = min(cost, c.capacity)
    v.next = { v.algorithm.charge(v, counted) }
    v.remaining = max(0, v.free - counted)
    if v.retry ~= NEVER then
      v.fresh, v.a, v.b = v.next[1], v.next[2], v.next[3]
      v.retry = v.algorithm.wait(v, cost) + v.now - now
    end
  end
  v.reset = max(0, (v.next and v.next[1] or s.fresh) - now)
  return v
end

-- commit puts a decision into effect.
local function commit(s, c, next)
  local algorithm = algorithms[c.algorithm]
  if algorithm.commit then algorithm.commit(s, c, next[1], next[2], next[3]) end
  s.fresh, s.a, s.b, s.changed = next[1], next[2], next[3], true
end
