-- Units of a key that are on lease: processes may spend them without asking. They are not charged until that is reported,
-- and every decision on the key leaves them. weir.Account has the same arithmetic, and says why it is so.
--
-- As of a key with many holds, the state is in a key of its own, and in its place is LEASED with what every
-- decision needs: see place.lua. The leases are in a hash, by their ids, which only messages about them read. All functions but
-- holds and singles, if they are given the key of the state, answer FOREIGN, and so do older versions.
--
-- The leases of a key are
--
--   name     the key of the hash
--   count    how many there are; some may have expired, and are remembered, so that nothing is charged twice
--   out      units that are on lease and not reported
--   first    none has anything to do before
--   expires  when the hash, and what is in the place of the state, expire
--   needed   until when they are needed at least
--   changed  whether some of this has
--   entries  of the hash that have changed; false is one that is forgotten

local LEASE = 12
local LEASE_NUMBERS = 9 -- that are sent for each op: id, seq, spent, charged, keep, want, term, how long until a full key is reset, and 1 if a lease may begin
local LEASES -- what can be done with them

-- prepareLeases is called before a key can have any. Most have none, and a script defines this at each call.
local function prepareLeases()
  if LEASES then return end
  LEASES = {}

  local MOST = 1000
  local ENTRY_OF_LEASE = '>I7I7I7I7I5' -- seq, granted, spent, expires, term; after its end, expires is when it is forgotten, and term 0

  -- chargeable is how many units a key can be charged so that numbers are exact, and what is on lease can be charged, too.
  local function chargeable(t, k, c, at, a, b)
    local out = t.leases[k] and t.leases[k].out or 0
    if c.does == BUCKET then return math.floor((math.min(EXACT - 1, (EXACT - 1 - at) * c.rate) - a) / c.p) - out end
    c.does:prepare()
    local most = EXACT / 2
    if c.does == LOG then most = c.rate - 1 elseif c.does == SUB_WINDOWS then most = EXACT - 1 - c.buckets * c.n end
    return c.does.room(c, at, a, b, t.more[k]) + most - math.min(11 * c.n, most) - out
  end

  -- spend charges units at an instant, however much a key owes already.
  local function spend(t, k, c, at, units)
    if units <= 0 then return end
    local does, more, viewFresh, a, b = c.does, t.more[k], nil, nil, nil
    at, viewFresh, a, b = does.look(c, at, t.fresh[k], t.a[k], t.b[k], more)
    units = math.min(units, chargeable(t, k, c, at, a, b))
    if units <= 0 then return end
    local fresh
    fresh, a, b = does.charge(c, at, viewFresh, a, b, units, true)
    if more then does.commit(c, more, t.fresh[k], t.a[k], t.b[k], fresh, a, b) end
    t.fresh[k], t.a[k], t.b[k], t.changed[k] = fresh, a, b, true
  end

  -- of makes leases of what is in the place of the state.
  function LEASES.of(name, count, out, first, expires)
    return { name = name, count = count, out = out, first = first, expires = expires, needed = 0, changed = false, entries = {} }
  end

  -- start makes a key one with leases; false if the user has no right to do that.
  local function start(t, k)
    local place, name = t.pairs + 3 * k, t.keys[k]
    if not t.moved[k] then
      local moved = t.keys[place - 2]
      if type(try('UNLINK', moved, t.keys[place - 1], t.keys[place])) == 'table' then return false end
      if try('RENAME', name, moved).err and call('EXISTS', name) == 1 then return false end
      t.keys[k], t.moved[k] = moved, name
      if t.more[k] then t.more[k].name = moved end
    end
    t.leases[k] = LEASES.of(t.keys[place], 0, 0, EXACT, 0)
    t.leases[k].changed = true
    return true
  end

  -- expire charges what was on lease and not reported in time, as of the end of each lease.
  function LEASES.expire(t, k, c)
    local l, now = t.leases[k], t.now
    if now < l.first then return end
    local all, ends, lost = call('HGETALL', l.name), {}, l.out
    l.count, l.first, l.changed = 0, EXACT, true
    for i = 1, #all, 2 do
      local id, seq, granted, spent, expires, term = all[i], parse(ENTRY_OF_LEASE, all[i + 1])
      local units = math.max(0, granted - spent)
      lost = lost - units
      if term > 0 and expires <= now then
        if units > 0 then ends[#ends + 1] = { at = expires, id = id, units = units } end
        expires = expires + term
        l.entries[id] = pack(ENTRY_OF_LEASE, seq, granted, spent + units, expires, 0)
        term = 0
      end
      if term == 0 and expires <= now then
        l.entries[id] = false
      else
        l.count, l.first = l.count + 1, math.min(l.first, expires)
      end
    end
    table.sort(ends, function(p, q)
      if p.at ~= q.at then return p.at < q.at end
      return p.id < q.id
    end)
    for _, lease in ipairs(ends) do
      l.out = l.out - lease.units
      spend(t, k, c, lease.at, lease.units)
    end
    if lost > 0 then -- somebody else has removed leases
      l.out = l.out - lost
      spend(t, k, c, now, lost)
    end
  end

  -- report charges what a message says was spent. It returns the lease, and whether it can go on.
  local function report(t, op, i)
    local input, k, c, now = t.input, op.k, op.c, t.now
    local id, seq, spent, charged, keep = input[i], input[i + 1], input[i + 2], input[i + 3], input[i + 4]
    local term, reset, l = input[i + 6], input[i + 7], t.leases[k]
    local text
    if l then text = l.entries[id] end
    if l and text == nil then text = call('HGET', l.name, id) end
    local lease = { id = id, seq = seq, granted = spent, spent = spent, expires = now + term, term = term, drop = 0 }
    if not text then
      spend(t, k, c, now, spent - charged)
      if l and l.count >= MOST or input[i + 8] == 0 or not l and not start(t, k) then return lease, false end
      l = t.leases[k]
      l.count = l.count + 1
    else
      local known, expires
      known, lease.granted, lease.spent, expires, lease.term = parse(ENTRY_OF_LEASE, text)
      lease.drop = lease.term == 0 and 1 or 0
      if seq <= known then return lease, false end -- it was overtaken, or doubled
      local units = spent - math.max(lease.spent, charged)
      l.out = l.out - math.max(0, lease.granted - lease.spent)
      lease.spent = math.max(lease.spent, spent)
      lease.granted = math.max(lease.spent, math.min(lease.granted, keep)) -- less than keep if a grant was lost
      lease.expires = math.max(lease.expires, expires)
      l.out = l.out + lease.granted - lease.spent
      spend(t, k, c, now, units)
      if lease.drop == 0 then lease.term = math.max(lease.term, term) end
    end
    l.first, l.changed = math.min(l.first, lease.expires), true
    l.needed = math.max(l.needed, lease.expires + math.max(lease.term, reset))
    l.entries[id] = pack(ENTRY_OF_LEASE, seq, lease.granted, lease.spent, lease.expires, lease.term)
    return lease, lease.drop == 0
  end

  -- take carries out messages about n ops, whose numbers are in the input from i on.
  function LEASES.take(t, n, i)
    local input, leases, live = t.input, {}, {}
    for j = 1, n do
      local at = i + LEASE_NUMBERS * (j - 1)
      if input[at] ~= '' then leases[j], live[j] = report(t, t.ops[j], at) end
    end
    local admitted = weigh(t, n)
    for j = 1, n do
      local op, lease = t.ops[j], leases[j]
      if op.nextFresh then commitOp(t, op) end
      if live[j] and admitted then
        local l = t.leases[op.k]
        local grant = math.min(input[i + LEASE_NUMBERS * (j - 1) + 5], divUp(op.remaining, 2 * l.count))
        lease.granted, op.remaining, op.kept, l.out = lease.granted + grant, op.remaining - grant, op.kept + grant, l.out + grant
        l.entries[lease.id] = pack(ENTRY_OF_LEASE, lease.seq, lease.granted, lease.spent, lease.expires, lease.term)
      end
      answerOp(t, op)
      local out, length = t.out, t.length
      out[length + 1], out[length + 2], out[length + 3] = 0, 0, 0
      if lease then out[length + 1], out[length + 2], out[length + 3] = lease.granted, lease.spent, lease.drop end
      t.length = length + 3
    end
  end

  -- write writes what is in the place of the state, and after that leases: if Redis fails in between, too much is charged,
  -- and not too little. Without leases, the state is in its place again, unless it has many holds.
  function LEASES.write(t, k)
    local l, m, name, now = t.leases[k], t.many[k], t.moved[k], t.now
    local needed = math.max(l.needed, m and m.expires or 0, t.expires[k], t.fresh[k] > 0 and expiry(now, t.fresh[k]) or 0)
    local isLonger = needed > l.expires
    if isLonger then l.expires = expiry(now, needed) end
    if not isLonger and not l.changed then return end
    if l.count > 0 then
      local lasts, come = ttl(now, t.keep, l.expires), {}
      call('PSETEX', name, lasts, LEASED .. pack(IN_PLACE, l.count, l.out, l.first, l.expires))
      for id, text in pairs(l.entries) do
        if text then come[#come + 1], come[#come + 2] = id, text else call('HDEL', l.name, id) end
      end
      if #come > 0 then call('HSET', l.name, unpack(come)) end
      if isLonger then call('PEXPIRE', l.name, lasts) end
      return
    end
    call('UNLINK', name, l.name)
    if call('EXISTS', t.keys[t.pairs + 3 * k - 1]) == 1 then
      call('PSETEX', name, ttl(now, t.keep, l.expires), MOVED)
    else
      try('RENAME', t.keys[k], name) -- if it is there
    end
  end
end
