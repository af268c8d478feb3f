-- Scores are kept with the sign turned: then the sorted set has the highest first, and
-- equal ones in the order of their members.
local MOST = 9007199254740991

local function score(set, member)
  local s = redis.call('ZSCORE', set, member)
  return s and 0 - tonumber(s) or 0
end

-- raise changes a score. Nobody with 0 is in the set.
local function raise(set, member, by)
  local s = 0 - tonumber(redis.call('ZINCRBY', set, text(0 - by), member))
  if s == 0 then redis.call('ZREM', set, member) end
  return s
end

-- fits reports whether no score leaves its range, whoever may be named twice. Members
-- and what to add stand in ARGV by turns.
local function fits(set, first)
  local sums = {}
  for i = first, #ARGV, 2 do
    local member = ARGV[i]
    local sum = (sums[member] or set and score(set, member) or 0) + tonumber(ARGV[i + 1])
    if math.abs(sum) > MOST then return false end
    sums[member] = sum
  end
  return true
end

-- list is the first n, as member and score by turns, after how many there are.
local function list(set, n)
  local lines = redis.call('ZRANGE', set, 0, n - 1, 'WITHSCORES')
  for i = 2, #lines, 2 do lines[i] = text(0 - tonumber(lines[i])) end
  return lines
end

-- standing is score and rank by turns, of the members in ARGV.
local function standing(set, first)
  local lines = {}
  for i = first, #ARGV do
    lines[#lines + 1] = text(score(set, ARGV[i]))
    lines[#lines + 1] = (redis.call('ZRANK', set, ARGV[i]) or -1) + 1
  end
  return lines
end
