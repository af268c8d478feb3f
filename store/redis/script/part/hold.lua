-- Holds. The open ones of a key are in a hash beside its state: by the id of the hold, when
-- it expires, and what was charged, as weir.Held has it. The field 'x' is not later than
-- when the first of them expires; 'f' is exactly that, if there are too many. What has ended is a string for itself, which Redis
-- forgets: what was used, what was too much, and until when it is known.

-- They are in a function, because a script has at most 200 locals.
holding = (function()
  local HOLD_PEEK, HOLD_TAKE, RESERVE, SETTLE, EXTEND, HOLD_RESET = 4, 5, 6, 7, 8, 9
  local UNKNOWN, SETTLED, EXPIRED, OPEN, REPEATED = 0, 1, 2, 4, 5
  local FOREIGN_HOLDS = 7 -- 3 says that the state is foreign

  local MAX_HOLDS = 1000
  local MEMORY = 60 * SECOND
  local RECORD = '>I7I7I7I7I7I7B' -- expires, cost, receipt, level, at, and of its limit N and whether it shapes

  -- lasting is how long something is kept that is needed until then.
  local function lasting(time) return ttl(time + SECOND) end

  local function saveHold(h, r) call('HSET', h, r.id, pack(RECORD, r.expires, r.cost, r.receipt, r.level, r.at, r.n, r.shape)) end

  -- readHold reads a record. One that is damaged counts as none.
  local function readHold(id, text)
    if #text ~= 43 then return nil end
    local r = { id = id }
    r.expires, r.cost, r.receipt, r.level, r.at, r.n, r.shape = unpack(RECORD, text)
    return r
  end

  -- openHolds reads all holds of a key, the first to expire first.
  local function openHolds(h)
    local all, list = call('HGETALL', h), {}
    for i = 1, #all, 2 do
      if all[i] ~= 'x' then list[#list + 1] = readHold(all[i], all[i + 1]) end -- nil adds nothing
    end
    table.sort(list, function(p, q)
      if p.expires ~= q.expires then return p.expires < q.expires end
      return p.id < q.id
    end)
    return list
  end

  -- keepHold writes an open hold, and lets Redis keep the hash as long as its last one.
  local function keepHold(h, r)
    saveHold(h, r)
    local first = call('HGET', h, 'x')
    if not first or #first ~= 7 or unpack('>I7', first) > r.expires then call('HSET', h, 'x', pack('>I7', r.expires)) end
    local left = lasting(r.expires)
    if call('PTTL', h) < tonumber(left) then call('PEXPIRE', h, left) end
  end

  -- drained is how much has left a bucket in a time at most, if its N may have been another.
  local function drained(time)
    if time <= 0 then return 0 end
    local most = time * c.rate
    if B[k] > c.n then
      local _, mulDivUp, gcd = wide()
      local g = gcd(B[k], c.period)
      local n, p = B[k] / g, c.period / g
      local other = time * n
      if other >= EXACT or floor(other / p) >= floor((EXACT - 1) / c.p) then return EXACT end
      most = max(most, mulDivUp(other, c.p, p))
    end
    return most
  end

  -- letGo gives back units of a hold, which is open no more, to k. A bucket lets holds that
  -- were reserved later move up. If the others are given, the caller saves those that moved.
  local function letGo(r, units, h, others)
    if FRESH[k] <= 0 or units <= 0 then return end
    if c.full == 0 then
      c.algorithm.refund(r.receipt, units)
    else
      if B[k] <= 0 or c.shape and r.receipt ~= FRESH[k] then return end
      local rate, level = c.rate, A[k]
      if B[k] ~= c.n then rate, level = recount(c, level, B[k]) end
      local last = FRESH[k] - divUp(A[k], rate)
      local back = min(units * c.p, level, r.level - drained(last - r.at))
      if back <= 0 then return end
      for _, other in ipairs(others or openHolds(h)) do
        if other.at > r.at or other.at == r.at and other.level > r.level then
          other.level = max(0, other.level - back)
          if others then other.moved = true else saveHold(h, other) end
        end
      end
      level = level - back
      FRESH[k], A[k], B[k] = level > 0 and last + divUp(level, c.rate) or 0, level, c.n
    end
    CHANGED[k] = true
    if FRESH[k] <= 0 then forget() end
  end

  -- limitOf is the limit that a hold was charged under, which may have had another N.
  local function limitOf(limit, n, shapes)
    if n == limit.n and shapes == limit.shape then return limit end
    local changed = {}
    for name, value in pairs(limit) do changed[name] = value end
    changed.n, changed.shape = n, shapes
    if limit.full > 0 then
      local _, _, gcd = wide()
      local g = gcd(n, limit.period)
      changed.rate, changed.p = n / g, limit.period / g
    end
    return changed
  end

  -- endDue gives back to k what holds have that have expired. First is the field 'x'.
  local function endDue(h, first)
    if not first or #first == 7 and unpack('>I7', first) > now then return end
    local list = openHolds(h)
    while list[1] and list[1].expires <= now do
      local r = table.remove(list, 1)
      call('HDEL', h, r.id, 'f')
      local limit = c
      c = limitOf(limit, r.n, r.shape == 1)
      letGo(r, r.cost, h, list)
      c = limit
    end
    for _, r in ipairs(list) do -- at the end, and not for each that has expired: a script blocks Redis
      if r.moved then saveHold(h, r) end
    end
    if list[1] then call('HSET', h, 'x', pack('>I7', list[1].expires)) else call('DEL', h) end
  end

  -- firstToExpire returns when the first hold of a key expires that has as many as there may
  -- be, and nil if it has room for another. To find it takes long, so the field 'f' has it
  -- until a hold changes.
  local function firstToExpire(h)
    if call('HLEN', h) <= MAX_HOLDS then return nil end
    local first = call('HGET', h, 'f')
    if first and #first == 7 then
      first = unpack('>I7', first)
      if first > now then return first end
    end
    local list = openHolds(h)
    while list[1] and list[1].expires <= now do
      call('HDEL', h, table.remove(list, 1).id)
    end
    if #list < MAX_HOLDS then
      call('HDEL', h, 'f')
      return nil
    end
    call('HSET', h, 'f', pack('>I7', list[1].expires))
    return list[1].expires
  end

  -- reserve takes n ops and, if they are allowed, holds what they were charged. A hold that
  -- has ended already is denied: its end was faster.
  local function reserve(n, H, E, id, life, d, payload)
    local full, fits = {}, true
    for i = 1, n do
      if not OP_LOOK[i] then
        full[i] = firstToExpire(H[i])
        if call('EXISTS', E[i]) == 1 then full[i] = now end
      end
    end
    if next(full) then
      for i = 1, n do
        decideOrLook(i)
        fits = fits and allowed
      end
      if fits then
        for i = 1, n do
          ask(peek, i)
          if full[i] then allowed, retry, delay = false, full[i] - now, 0 end
          answer()
        end
        return
      end
    end
    if not settle(n) then return end
    local expires = now + life
    for i = 1, n do
      if not OP_LOOK[i] then
        k, c = OP_KEY[i], OP_LIMIT[i]
        local r = { id = id, expires = expires, cost = OP_COST[i], receipt = FRESH[k], level = 0, at = 0, n = c.n, shape = c.shape and 1 or 0 }
        if c.full > 0 then r.level, r.at = A[k], FRESH[k] - divUp(A[k], c.rate) end
        keepHold(H[i], r)
      end
    end
    if d > 0 then call('PSETEX', KEYS[d], lasting(expires + MEMORY), pack('>I7', expires) .. payload) end
  end

  -- settleOne ends a hold on k, or extends it by a life, and says how it is. Known is when it
  -- was last known to expire; 0 if nothing is known of it.
  local function settleOne(i, h, e, id, life, known)
    local ended = pcall('GET', e)
    if type(ended) == 'string' and #ended == 21 then
      local used, over, until_ = unpack('>I7I7I7', ended)
      if until_ <= now then return UNKNOWN, 0, 0 end
      return REPEATED, used, over
    end
    local text = call('HGET', h, id)
    local r = text and readHold(id, text)
    local expires = r and r.expires or known > 0 and known or now + MEMORY
    if expires <= now then
      if r and not OP_LIMIT[i].release then call('HDEL', h, id, 'f') end
      if expires + MEMORY <= now then return UNKNOWN, 0, 0 end
      return EXPIRED, 0, 0
    end
    if life > 0 then
      if r then
        r.expires = now + life
        call('HDEL', h, 'f')
        keepHold(h, r)
      end
      return OPEN, now + life, 0
    end
    -- Without a record the client was reset meanwhile, and there is nothing to give back.
    local used, over, reserved = OP_LAST[i], 0, r and r.cost or OP_COST[i]
    if r then call('HDEL', h, id, 'f') end
    k, c = OP_KEY[i], OP_LIMIT[i]
    if used < reserved then
      if r then letGo(r, reserved - used, h) end
    elseif used > reserved then
      cost, maxDelay = used - reserved, ALWAYS
      decide()
      if charged then commit() end
      over = excess
    end
    local known_ = max(expires, now + MEMORY)
    call('PSETEX', e, lasting(known_), pack('>I7I7I7', used, over, known_))
    return SETTLED, used, over
  end

  -- holding does what a request about holds asks for, and returns where the next one begins.
  -- Of each op there are six numbers: key, limit, cost, what was used or the longest delay,
  -- and the keys of the hash and of the end; the former below 0 if holds that expire give
  -- their units back, and 0 if there can be none. After them are the id of the hold, its life,
  -- the key of the directory and what is in it, or when the hold was last known to expire.
  return function(verb, n, i)
    local foreign, H, E, FIRST = false, {}, {}, {}
    for op = 1, n do
      readOp(op, i)
      local h = input[i + 4]
      OP_LIMIT[op].release = h < 0
      H[op], E[op] = KEYS[h < 0 and -h or h], KEYS[input[i + 5]]
      if verb == HOLD_RESET then
        forget()
        call('DEL', H[op])
      end
      if h ~= 0 then FIRST[op] = pcall('HGET', H[op], 'x') end
      foreign = foreign or FOREIGN[k] or type(FIRST[op]) == 'table' -- which is an error: it is no hash
      i = i + 6
    end
    local id, life, d, more = input[i], input[i + 1], input[i + 2], input[i + 3]
    i = i + 4
    if foreign then
      allowed, remaining, retry, reset, delay = false, 0, 0, 0, 0
      for op = 1, n do
        debt, excess = verb == HOLD_TAKE and OP_LAST[op] == ALWAYS, OP_COST[op]
        if FOREIGN[OP_KEY[op]] then
          refuseForeign()
        elseif type(FIRST[op]) == 'table' then
          length = length + 1
          out[length] = FOREIGN_HOLDS
        elseif verb == SETTLE or verb == EXTEND then
          out[length + 1], out[length + 2], out[length + 3] = UNKNOWN, 0, 0
          length = length + 3
        else
          answer()
        end
      end
      return i
    end
    for op = 1, n do
      if OP_LIMIT[op].release and verb ~= HOLD_RESET then
        k, c = OP_KEY[op], OP_LIMIT[op]
        endDue(H[op], FIRST[op])
      end
    end
    if verb == RESERVE then
      reserve(n, H, E, id, life, d, more)
    elseif verb == SETTLE or verb == EXTEND then
      for op = 1, n do
        out[length + 1], out[length + 2], out[length + 3] = settleOne(op, H[op], E[op], id, life, more)
        if out[length + 1] == OPEN and d > 0 then
          pcall('SETRANGE', KEYS[d], '0', pack('>I7', now + life))
          call('PEXPIRE', KEYS[d], lasting(now + life + MEMORY))
        end
        length = length + 3
      end
    elseif verb == HOLD_TAKE then
      settle(n)
    else
      if verb == HOLD_RESET then
        for op = 1, n do OP_LAST[op] = -1 end
      end
      survey(n)
    end
    return i
  end
end)()
