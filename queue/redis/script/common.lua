-- What every script begins with: the terms of the queue, items, and what has become due
-- by itself. It is package memory's line.go a second time.
--
-- meta     a hash: last number, pace (next, part, rate), dropped
-- work     a hash: item → payload
-- facts    a hash: item → all else that is known of it
-- ids      a hash: ID → item
-- ready, delayed, leased, dead
--          sorted sets of items: by number, by when they are due, by number
-- done     a sorted set of IDs, by when to forget them
--
-- An item is its number in 16 digits, so that those which are due together are in order.
-- Where memory is short, Redis lets a script go on that has written already; so whatever
-- moves an item takes it away first.
local meta, work, facts, ids, ready, delayed, leased, dead, done = unpack(KEYS)
local channel, expired = ARGV[2], ARGV[3]
local capacity, maxTries, maxDead = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local visibility, backoff, maxBackoff, remember = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
-- Between two releases lie step microseconds and rest/rate of one; none is further away
-- than furthest.
local rate, step, rest, furthest = tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13]), tonumber(ARGV[14])
local maxSweep, maxPage = tonumber(ARGV[15]), tonumber(ARGV[16])
local first = 17 -- of a script's own arguments

local call = redis.call

local now = tonumber(ARGV[1])
if now > 0 then
  now = now - 1
else
  local clock = call('TIME')
  now = clock[1] * 1000000 + clock[2]
end

-- text is a whole number below 2^53 in digits, which tostring would round.
local function text(n)
  return string.format('%.0f', n)
end

local function member(n)
  return string.format('%016.0f', n)
end

-- read returns an item, or nil if somebody has removed it by hand.
local function read(m)
  local f = call('HGET', facts, m)
  if not f then
    return nil
  end
  local tries, pushed, secret, next, part, r, died, len, words =
    string.match(f, '^(%d+) (%d+) (%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (.*)$')
  if not tries then
    return nil
  end
  len = tonumber(len)
  return {
    m = m, tries = tonumber(tries), pushed = tonumber(pushed), secret = secret,
    next = tonumber(next), part = tonumber(part), rate = tonumber(r), died = tonumber(died),
    id = string.sub(words, 1, len), reason = string.sub(words, len + 1),
  }
end

local function write(i)
  call('HSET', facts, i.m, table.concat({
    text(i.tries), text(i.pushed), i.secret, text(i.next), text(i.part), text(i.rate), text(i.died),
    #i.id, i.id .. i.reason}, ' '))
end

-- erase forgets what an item was; taking it from its set is the caller's part.
local function erase(m, id)
  call('HDEL', facts, m)
  call('HDEL', work, m)
  if id and id ~= '' then
    call('HDEL', ids, id)
  end
end

-- stateOf is the set that an item is in, and its score.
local function stateOf(m)
  for _, set in ipairs({leased, ready, delayed, dead}) do
    local score = call('ZSCORE', set, m)
    if score then
      return set, tonumber(score)
    end
  end
  return nil
end

-- bury makes a dead letter of an item that is in no set any more.
local function bury(i, reason)
  i.died, i.reason = now, reason
  call('ZADD', dead, i.m, i.m)
  write(i)
  local over = math.min(maxSweep, call('ZCARD', dead) - maxDead)
  if over > 0 then
    for _, m in ipairs(call('ZRANGE', dead, 0, over - 1)) do
      local old = read(m)
      call('ZREM', dead, m)
      erase(m, old and old.id)
    end
    call('HINCRBY', meta, 'dropped', over)
  end
end

local function length()
  return call('ZCARD', ready) + call('ZCARD', delayed) + call('ZCARD', leased)
end

-- append puts work at the end under a new number.
local function append(id, payload)
  local last = tonumber(call('HGET', meta, 'last') or '0')
  local number = math.max(last + 1, now)
  local m = member(number)
  call('HSET', meta, 'last', text(number))
  call('HSET', work, m, payload)
  write({m = m, tries = 0, pushed = now, secret = '-', next = 0, part = 0, rate = 0, died = 0, id = id, reason = ''})
  if id ~= '' then
    call('HSET', ids, id, m)
  end
  call('ZADD', ready, m, m)
  return number
end

-- release is the first whole microsecond of a slot.
local function release(next, part)
  if part > 0 then
    return next + 1
  end
  return next
end

-- slotAfter is when an item may be released at the earliest, by a pace.
local function slotAfter(next, part, r)
  if r ~= rate and part > 0 then
    next, part = next + 1, 0
  end
  if release(next, part) < now then
    next, part = now, 0
  end
  return next, part
end

-- slot is the same by the pace that is kept.
local function slot()
  local p = call('HMGET', meta, 'next', 'part', 'rate')
  return slotAfter(tonumber(p[1] or '0'), tonumber(p[2] or '0'), tonumber(p[3] or '0'))
end

-- after is the slot that comes after one.
local function after(next, part)
  next, part = next + step, part + rest
  if part >= rate then
    next, part = next + 1, part - rate
  end
  return next, part
end

local function keepPace(next, part)
  call('HSET', meta, 'next', text(next), 'part', text(part), 'rate', text(rate))
end

-- held returns the item of a lease and the set that it is in, or nil if it is lost.
local function held(m, secret)
  local i = read(m)
  if not i or i.secret ~= secret then
    return nil
  end
  return i, stateOf(m)
end

-- wake tells those who wait. Whoever may not publish has to poll.
local function wake()
  redis.pcall('PUBLISH', channel, '')
end

-- settle is the end of every script: what holds no work goes away by itself, when its
-- pace is forgotten without harm. Work stays until somebody does it.
local function settle()
  if length() + call('ZCARD', dead) > 0 then
    call('PERSIST', meta)
    return
  end
  call('HDEL', meta, 'dropped')
  local next = tonumber(call('HGET', meta, 'next') or '0')
  call('PEXPIRE', meta, text(math.max(3600000, math.ceil((next - now) / 1000) + 1000)))
end

-- Here every script clears away what is due. If the clock has stepped back, or the pace is
-- quicker than it was, the next slot is no further away than it can be.
local kept = tonumber(call('HGET', meta, 'next') or '0')
if kept > now + furthest then
  keepPace(now + furthest, 0)
end
for _, m in ipairs(call('ZRANGEBYSCORE', leased, '-inf', text(now), 'LIMIT', 0, maxSweep)) do
  call('ZREM', leased, m)
  local i = read(m)
  if not i then
    erase(m)
  elseif i.tries >= maxTries then
    bury(i, expired)
  else
    call('ZADD', ready, m, m)
  end
end
for _, m in ipairs(call('ZRANGEBYSCORE', delayed, '-inf', text(now), 'LIMIT', 0, maxSweep)) do
  call('ZREM', delayed, m)
  call('ZADD', ready, m, m)
end
if remember > 0 then
  for _, id in ipairs(call('ZRANGEBYSCORE', done, '-inf', text(now), 'LIMIT', 0, maxSweep)) do
    call('ZREM', done, id)
  end
end
