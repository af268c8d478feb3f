-- ARGV[1] is what to do, packed by Go (see encode.go):
--
--   { now, limits, requests }
--
-- now is 0 for Redis's own clock. A limit is an array of numbers. A request is a
-- verb, and then four numbers for each op: key, limit, cost, and the longest delay,
-- or, if something is to be given back, the receipt. The answer is the time, and
-- then allowed, remaining, retry, reset, delay for each op. Requests come one after
-- the other, as if they were calls of their own.

local PEEK, TAKE, REFUND, RESET = 0, 1, 2, 3
local FOREIGN = -1

local input = cmsgpack.unpack(ARGV[1])
local now = input[1]
local isTest = now > 0
if isTest then
  now = now - 1 -- so that tests can begin at 0
else
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end

local limits = {}
for i, l in ipairs(input[2]) do
  limits[i] = {
    algorithm = l[1], n = l[2], period = l[3], capacity = l[4], shape = l[5] == 1, countDenied = l[6] == 1,
    rate = l[7], p = l[8], full = l[9], width = l[10], buckets = l[11],
  }
end

-- answer does what a request asks for. A request for a foreign key has no effect,
-- but to reset it.
local function answer(verb, ops)
  if verb == RESET then
    for _, op in ipairs(ops) do forget(op.state) end
  end
  for _, op in ipairs(ops) do
    if op.state.foreign then return nil end
  end
  if verb == TAKE then return settle(ops, now) end
  if verb == REFUND then giveBack(ops) end
  if verb ~= PEEK then
    for _, op in ipairs(ops) do op.last = -1 end
  end
  return survey(ops, now)
end

local states, out = {}, { now }
for _, request in ipairs(input[3]) do
  local ops = {}
  for i = 2, #request, 4 do
    local key = request[i]
    if not states[key] then states[key] = load(KEYS[key]) end
    ops[#ops + 1] = {
      key = key, state = states[key], limit = limits[request[i + 1]], cost = request[i + 2], last = request[i + 3],
    }
  end
  local answers = answer(request[1], ops)
  for i = 1, #ops do
    local a, n = answers and answers[i], #out
    out[n + 1] = ops[i].state.foreign and FOREIGN or a and a.allowed and 1 or 0
    out[n + 2] = a and a.remaining or 0
    out[n + 3] = a and a.retry or 0
    out[n + 4] = a and a.reset or 0
    out[n + 5] = a and a.delay or 0
  end
end
for _, s in pairs(states) do
  if s.changed then save(s, now, isTest) end
end
return cmsgpack.pack(out)
