-- A board with a window that slides is the sum of what was counted in its steps. KEYS: 1
-- the sum, a sorted set; 2 a hash of numbers, some of which are of a step; 3 to 23 the steps, each a hash from member
-- to what was counted, in a ring; for a hot list, 24 a sorted set of the items that are
-- hot, by since when, and 25 one of events, by their numbers.
-- ARGV: 2 what to do, 3 the width of a step in microseconds, 4 for how many milliseconds
-- to keep it, 5 the most members, 6 how many are left when there were more; then what is
-- to be done. A hot list has 7 the threshold and 8 from below which it cools first.
local STEPS, PARTS = 20, 21
local sum, meta, hot, events = KEYS[1], KEYS[2], KEYS[24], KEYS[25]
local verb, width, keep = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local rest = hot and 9 or 7

local function part(step) return KEYS[3 + step % PARTS] end

-- drops is the number of a step that tells how many members were dropped in it.
local function drops(step) return 'dropped' .. text(step % PARTS) end

local function alldrops()
  local fields = {}
  for step = 1, PARTS do fields[step] = drops(step) end
  return unpack(fields)
end

local function wipe()
  redis.call('DEL', sum)
  for i = 3, 2 + PARTS do redis.call('DEL', KEYS[i]) end
  redis.call('HDEL', meta, alldrops())
end

-- dropped is how many members were dropped within the window: what they had is missed no
-- longer than it would count.
local function dropped()
  local n = 0
  for _, of in ipairs(redis.call('HMGET', meta, alldrops())) do n = n + (tonumber(of) or 0) end
  return n
end

local known = redis.call('HMGET', meta, 'latest', 'ends', 'threshold', 'cool', 'last', 'lost')
local latest, ends = tonumber(known[1]), tonumber(known[2] or 0)
local threshold, cool = tonumber(known[3]), tonumber(known[4])
local last, lost = tonumber(known[5] or 0), tonumber(known[6] or 0)

if latest and hot and now >= ends then
  redis.call('DEL', unpack(KEYS))
  latest, threshold, cool, last, lost = nil, nil, nil, 0, 0
end

-- Move the window: what it leaves behind is subtracted once. A clock that goes back
-- stands still, unless it goes back by more than the window.
local current = (now - math.fmod(now, width)) / width
local moved = false
if not latest then
  if verb ~= 'score' and verb ~= 'hit' then current = nil end
elseif current > latest + STEPS or current < latest - STEPS then
  wipe()
  moved = true
elseif current > latest then
  for step = latest - STEPS, current - STEPS - 1 do
    local counted = redis.call('HGETALL', part(step))
    for i = 1, #counted, 2 do
      if raise(sum, counted[i], 0 - tonumber(counted[i + 1])) < 0 then redis.call('ZREM', sum, counted[i]) end
    end
    redis.call('DEL', part(step))
    redis.call('HDEL', meta, drops(step))
  end
  moved = true
else
  current = latest
end

-- begin makes a board that was not there; what may be left of an older one is not its.
-- A Redis that is full refuses the first command, and then nothing was done.
local function begin()
  if latest then return end
  redis.call('HSET', meta, 'latest', text(current))
  wipe()
  if hot then redis.call('DEL', hot, events) end
end

-- count adds to a member.
local function count(member, by)
  redis.call('HINCRBY', part(current), member, by)
  return raise(sum, member, tonumber(by))
end

-- trim drops the lowest if there are too many.
local function trim()
  if redis.call('ZCARD', sum) <= tonumber(ARGV[5]) then return end
  local gone = redis.call('ZRANGE', sum, ARGV[6], -1)
  for first = 1, #gone, 1000 do
    for i = 3, 2 + PARTS do redis.call('HDEL', KEYS[i], unpack(gone, first, math.min(first + 999, #gone))) end
  end
  redis.call('ZREMRANGEBYRANK', sum, ARGV[6], -1)
  redis.call('HINCRBY', meta, drops(current), #gone)
  moved = true
end

-- remember takes note of how far the window has moved.
local function remember()
  redis.call('HSET', meta, 'latest', text(current), 'ends', text(ends), 'last', text(last), 'lost', text(lost))
  if hot then redis.call('HSET', meta, 'threshold', text(threshold), 'cool', text(cool)) end
end

-- extend is called when something was counted, or told. A step lives longer than the
-- sum, from which it has to be subtracted.
local function extend()
  ends = math.max(now, current * width) + keep * 1000
  remember()
  for _, key in ipairs({ sum, meta, hot, events }) do redis.call('PEXPIRE', key, ARGV[4]) end
  redis.call('PEXPIRE', part(current), text(2 * keep))
end
