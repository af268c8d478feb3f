-- ARGV[1] is what to do, packed by Go (see encode.go):
--
--   { now, limits, requests }
--
-- now is 0 for Redis's own clock. A limit is an array of numbers. A request is a
-- verb, 1 to take and 0 to peek, and then key, limit, cost, maxDelay for each op.
-- The answer is a flat array of allowed, remaining, retry, reset, delay for each
-- op. Requests come one after the other, as if they were calls of their own.

local input = cmsgpack.unpack(ARGV[1])
local now = input[1]
local isTest = now > 0
if not isTest then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
if isTest then now = now - 1 end -- so that tests can begin at 0

local limits = {}
for i, l in ipairs(input[2]) do
  limits[i] = {
    algorithm = l[1], n = l[2], period = l[3], capacity = l[4], shape = l[5] == 1, countDenied = l[6] == 1,
    rate = l[7], p = l[8], full = l[9], width = l[10], buckets = l[11],
  }
end

local states, out = {}, {}
for _, request in ipairs(input[3]) do
  local ops = {}
  for i = 2, #request, 4 do
    local key = request[i]
    if not states[key] then states[key] = load(KEYS[key]) end
    ops[#ops + 1] = {
      key = key, state = states[key], limit = limits[request[i + 1]], cost = request[i + 2], maxDelay = request[i + 3],
    }
  end
  local answers = request[1] == 1 and settle(ops, now) or survey(ops, now)
  for _, answer in ipairs(answers) do
    out[#out + 1] = answer.allowed and 1 or 0
    out[#out + 1] = answer.remaining
    out[#out + 1] = answer.retry
    out[#out + 1] = answer.reset
    out[#out + 1] = answer.delay
  end
end
for _, s in pairs(states) do
  if s.changed then save(s, now, isTest) end
end
return cmsgpack.pack(out)
