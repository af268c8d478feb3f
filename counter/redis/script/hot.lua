local MOST_EVENTS = 1000
local told = false

-- record appends an event. Its number is the time, or one more than the last.
local function record(item, kind, hits)
  last, told = math.max(last + 1, now), true
  redis.call('ZADD', events, text(last), table.concat({ text(last), kind, text(hits), text(now), item }, ' '))
  if redis.call('ZCARD', events) > MOST_EVENTS then
    lost = tonumber(redis.call('ZRANGE', events, 0, 0, 'WITHSCORES')[2])
    redis.call('ZREMRANGEBYRANK', events, 0, 0)
  end
end

local turned = {}
local function warm(item, hits)
  if hits < threshold or redis.call('ZSCORE', hot, item) then return end
  redis.call('ZADD', hot, text(now), item)
  record(item, 'hot', hits)
  turned[item] = true
end

-- settle finds out what has cooled, and what has turned hot: only what was hit can have,
-- unless the threshold is new.
local function settle()
  local renewed = threshold and (threshold ~= tonumber(ARGV[7]) or cool ~= tonumber(ARGV[8]))
  threshold, cool = tonumber(ARGV[7]), tonumber(ARGV[8])
  if moved or renewed then
    for _, item in ipairs(redis.call('ZRANGE', hot, 0, -1)) do
      local hits = score(sum, item)
      if hits < cool then
        redis.call('ZREM', hot, item)
        record(item, 'cool', hits)
      end
    end
  end
  if renewed then
    local all = redis.call('ZRANGEBYSCORE', sum, '-inf', text(0 - threshold), 'WITHSCORES')
    for i = 1, #all, 2 do warm(all[i], 0 - tonumber(all[i + 1])) end
  elseif verb == 'hit' then
    for i = rest, #ARGV do warm(ARGV[i], score(sum, ARGV[i])) end
  end
  return renewed
end

if not current then -- there is no such list
  if verb == 'events' then return { 'ok', text(now), '0', '0', {} } end
  return { 'ok', {} }
end

if verb == 'hit' then
  begin()
  for i = rest, #ARGV do count(ARGV[i], '1') end
  trim()
  settle()
  extend()
  local heats = {}
  for i = rest, #ARGV do
    local item = ARGV[i]
    heats[#heats + 1] = text(score(sum, item))
    heats[#heats + 1] = redis.call('ZSCORE', hot, item) or ''
    heats[#heats + 1] = turned[item] and '1' or ''
    turned[item] = nil
  end
  return { 'ok', heats }
end

local renewed = settle()
if told then extend() elseif moved or renewed then remember() end

if verb == 'events' then
  return { 'ok', text(now), text(last), text(lost), redis.call('ZRANGEBYSCORE', events, '(' .. ARGV[rest], '+inf') }
end
-- Those with at least so many hits as keep an item hot are few more than the hot ones.
local heats, most = {}, 3 * tonumber(ARGV[rest])
local warmest = redis.call('ZRANGEBYSCORE', sum, '-inf', text(0 - cool), 'WITHSCORES')
for i = 1, #warmest, 2 do
  if #heats == most then break end
  local since = redis.call('ZSCORE', hot, warmest[i])
  if since then
    heats[#heats + 1] = warmest[i]
    heats[#heats + 1] = text(0 - tonumber(warmest[i + 1]))
    heats[#heats + 1] = since
  end
end
return { 'ok', heats }
