-- ARGV[1] is what to do, as one array of numbers packed by Go (see single.go):
--
--   now; then for each limit ten numbers, and of how many of KEYS it is; then for each
--   of these how many units are asked for, one by one; or, below 0, how many requests
--   there are, and cost and longest delay for each
--
-- The answer is as in main.

input = cmsgpack.unpack(ARGV[1])
isTest = input[1] > 0
if isTest then
  now = input[1] - 1 -- so that tests can begin at 0
else
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
out[1], length = now, 1

local heads = {}
if #KEYS > 1 then heads = call('MGET', spread(KEYS)) end

local i, first, last = 2, 1, #KEYS
while first <= last do
  c_n, c_period, c_capacity, c_shape, c_countDenied = input[i], input[i + 1], input[i + 2], input[i + 3] == 1, input[i + 4] == 1
  c_rate, c_p, c_full, c_width, c_buckets = input[i + 5], input[i + 6], input[i + 7], input[i + 8], input[i + 9]
  local following = first + input[i + 10]
  i = i + 11
  for key = first, following - 1 do
    -- What MGET does not find may be something foreign, too.
    local head = heads[key] or pcall('GETRANGE', KEYS[key], '0', '27')
    local foreign = type(head) == 'table'
    oldFresh, oldA, oldB, expires = 0, 0, 0, 0
    if not foreign and #head == HEAD then
      oldFresh, oldA, oldB, expires = unpack('>I7I7I7I7', head)
      foreign = oldFresh >= EXACT
    end
    local count, each = input[i], false
    i = i + 1
    if count < 0 then
      count, each = -count, true
    else
      cost, maxDelay = 1, -1
    end
    changed = false
    for _ = 1, count do
      if each then
        cost, maxDelay = input[i], input[i + 1]
        i = i + 2
      end
      if foreign then
        --> refuseForeign
      else
        --> decide
        if charged then
          --> commit
        end
        --> answer
      end
    end
    if changed then
      local before = expires
      if oldFresh > expires then expires = expiry(oldFresh) end
      head = pack('>I7I7I7I7', oldFresh, oldA, oldB, expires)
      if before > 0 then
        call('SETRANGE', KEYS[key], '0', head)
        if before ~= expires then call('PEXPIRE', KEYS[key], ttl(expires)) end
      else
        call('PSETEX', KEYS[key], ttl(expires), head)
      end
    end
  end
  first = following
end
return cmsgpack.pack(out)
