-- The open holds of a key that has many. While there are FEW_HOLDS on its list, or others here, a new one
-- is not put on the list, but into a sorted set: by when it expires, its id and what was charged. Its record
-- says the latter, too, so it is found by its id. No call looks at all of them.
--
-- In the place of the state is MOVED then, and the state is in a key of its own. So versions that know of lists
-- only do not touch it; and other functions than holds answer FOREIGN, upon which Go asks holds.
--
-- What was given back of a hold of a bucket moves up all that were reserved later. Holds of buckets have numbers in the
-- order of reservation, and a tree has the sums by how much they have moved up: a node has one for each of its RADIX
-- children, and a hold those of all nodes above it. Sums are modulo EXACT; a hold knows its own when it was reserved. A node
-- is in the set as long as a hold under it is open. A list's holds are earlier than those here.
--
-- When half of the holds are open that a key may have, those of each client are counted from then on; see
-- weir.HoldShare. The count of a client is a node without children, at a level of its own.
--
-- The many holds of a key are
--
--   name             the key of the set
--   count            how many there are
--   next             the number of the next one
--   nodes, byPlace   of the tree: how many are in the set, and those that were read
--   expires          when the set, and what is in the place of the state, expire
--   needed           until when they are needed at least
--   head             what the set has of this

local MANY_AT_ONCE = 96 -- that end in a call because they have expired
local MANY_ROOM = 42 -- bytes of OPENED in a record, which are as many as three outcomes have
local MANY -- what can be done with them

-- limitOf is the limit that a hold was charged under, which may have had another N.
local function limitOf(c, n, shape)
  if n == c.n and shape == c.shape then return c end
  local changed = {}
  for name, value in pairs(c) do changed[name] = value end
  changed.n, changed.shape = n, shape
  if c.does == BUCKET then
    BUCKET:prepare()
    changed.rate, changed.p = BUCKET.partsOf(c, n)
  end
  return changed
end

-- prepareMany is called before a key can have many. Most have few, and a script defines this at each call.
local function prepareMany()
  if MANY then return end
  MANY = {}

  local MOST = 100000
  -- Behind the id: number, cost, receipt, level, its sum then, of its limit N and whether it shapes, with 2 for
  -- each number up to that of the client for whom it counts.
  local OPENED, NUMBERS = '>I5I7I7I7I7I7I2', 1099511627776
  local RADIX, LEVEL = 32, 35184372088832 -- the latter is 2^45, of which no level has as many nodes
  local SUMS = '>' .. ('I7'):rep(RADIX)
  local HEAD_OF_SET, LOWEST = '>I7I6I4', '-9007199254740992' -- expires, next, nodes; and its score, which is below those of nodes

  local CLIENTS = 128 -- the level of their counts

  local function plus(x, y)
    if x >= EXACT - y then return x - (EXACT - y) end
    return x + y
  end

  local function whole(x) return string.format('%d', x) end

  local function nodeAt(m, level, index)
    local place = level * LEVEL + index + 1
    local node = m.byPlace[place]
    if not node then
      local score = '-' .. whole(place)
      local text = m.nodes > 0 and call('ZRANGEBYSCORE', m.name, score, score)[1] or nil
      node = { level = level, index = index, score = score, text = text, open = 0 }
      if text then
        node.open = parse('>I2', text, 8)
        if #text > 9 then node.sums = { parse(SUMS, text, 10) } end
      end
      m.byPlace[place] = node
    end
    return node
  end

  -- topOf is the level of the node that is above all others.
  local function topOf(m)
    local level, last = 0, m.next - 1
    while last >= RADIX do level, last = level + 1, (last - last % RADIX) / RADIX end
    return level
  end

  local function sumOf(m, number)
    local sum, index = 0, number
    for level = 0, topOf(m) do
      local child = index % RADIX
      index = (index - child) / RADIX
      local node = nodeAt(m, level, index)
      if node.sums then sum = plus(sum, node.sums[child + 1]) end
    end
    return sum
  end

  -- raise adds to the sums of a node's children from one on.
  local function raise(node, from, by)
    if node.open == 0 or from > RADIX then return end
    local sums = node.sums
    if not sums then
      sums = {}
      for i = 1, RADIX do sums[i] = 0 end
    end
    for i = from, RADIX do sums[i] = plus(sums[i], by) end
    node.sums, node.changed = sums, true
  end

  -- moveUp is for what was given back of the hold with a number or, without one, of one on the list.
  function MANY.moveUp(m, number, by)
    local top = topOf(m)
    if not number then
      raise(nodeAt(m, top, 0), 1, by)
      return
    end
    for level = 0, top do
      local child = number % RADIX
      number = (number - child) / RADIX
      raise(nodeAt(m, level, number), child + 2, by)
    end
  end

  -- enter and leave count the holds and nodes under each node.
  local function enter(m, number)
    local index = number
    for level = 0, topOf(m) do
      local child = index % RADIX
      index = (index - child) / RADIX
      local node = nodeAt(m, level, index)
      local isNew = node.open == 0
      if isNew and level > 0 and index == 0 and child > 0 and nodeAt(m, level - 1, 0).open > 0 then node.open = 1 end -- the tree has grown
      node.open, node.changed = node.open + 1, true
      if not isNew then return end
    end
  end

  local function leave(m, number)
    for level = 0, topOf(m) do
      number = (number - number % RADIX) / RADIX
      local node = nodeAt(m, level, number)
      node.open, node.changed = math.max(0, node.open - 1), true
      if node.open > 0 then return end
      node.sums = nil
    end
  end

  -- count adds to what a client has that is counted; 0 is nobody.
  local function count(m, client, more)
    if client == 0 then return end
    local node = nodeAt(m, CLIENTS, client)
    node.open, node.changed = math.max(0, node.open + more), true
  end

  -- shareOf is how many of those that are counted one client may have for one more; nil if that is not counted.
  local function shareOf(m, l)
    local open = m.count + l.count
    if open >= math.floor(MOST / 2) then return MOST - open end
    return nil
  end

  -- start moves the state of a key, so that it can have many holds; false if the user has no right to do that.
  function MANY.start(t, k, due)
    local name, moved, set = t.keys[k], t.keys[t.pairs + 3 * k - 2], t.keys[t.pairs + 3 * k - 1]
    call('UNLINK', moved, set)
    local expires = expiry(t.now, math.max(due, t.fresh[k], t.expires[k]))
    local head, lasts = pack(HEAD_OF_SET, expires, 0, 0), ttl(t.now, t.keep, expires)
    if type(try('ZADD', set, LOWEST, head)) == 'table' then return false end
    if try('RENAME', name, moved).err and call('EXISTS', name) == 1 then
      call('UNLINK', set)
      return false
    end
    call('PSETEX', name, lasts, MOVED)
    call('PEXPIRE', set, lasts)
    t.keys[k], t.moved[k] = moved, name
    if t.more[k] then t.more[k].name = moved end
    t.many[k] = { name = set, count = 0, next = 0, nodes = 0, byPlace = {}, expires = expires, needed = 0, head = head }
    return true
  end

  -- read returns those of a key; nil if it has none.
  function MANY.read(t, k)
    local m = t.many[k]
    if m or not t.moved[k] then return m end
    local name = t.keys[t.pairs + 3 * k - 1]
    m = { name = name, count = 0, next = 0, nodes = 0, byPlace = {}, expires = 0, needed = 0, head = call('ZRANGE', name, '0', '0')[1] }
    if m.head then
      m.expires, m.next, m.nodes = parse(HEAD_OF_SET, m.head)
      m.count = call('ZCARD', name) - m.nodes - 1
    end
    t.many[k] = m
    return m
  end

  -- add adds a hold of what an op was just charged, and returns what its record has of it. The i-th op of a
  -- hold may be on the same key as another.
  function MANY.add(t, op, i, id, due)
    local k, c = op.k, op.c
    local m, number, level, sum = t.many[k], i, 0, 0
    if c.does == BUCKET then
      number, level = m.next, t.a[k]
      m.next = number + 1
      sum = sumOf(m, number)
      enter(m, number)
    end
    local client = shareOf(m, t.lists[k]) and op.client or 0
    count(m, client, 1)
    local opened = pack(OPENED, number, op.cost, t.fresh[k], level, sum, c.n, 2 * client + (c.shape and 1 or 0))
    call('ZADD', m.name, whole(due), id .. opened)
    m.count = m.count + 1
    m.needed = math.max(m.needed, due, op.releases and t.fresh[k] or 0)
    return opened
  end

  -- find is when the hold expires that a record has for the i-th op, and its member; nil if it has ended.
  function MANY.find(t, op, i, id, record)
    local m = MANY.read(t, op.k)
    if not m then return nil end
    local member = id .. string.sub(record, RECORD_HEAD + MANY_ROOM * (i - 1) + 1, RECORD_HEAD + MANY_ROOM * i)
    return tonumber(call('ZSCORE', m.name, member) or nil), member
  end

  -- remove takes a hold out, and returns its cost, receipt, level, since, number, and of its limit N and whether it shapes.
  function MANY.remove(m, c, member)
    local number, cost, receipt, level, sum, n, last = parse(OPENED, member, 17)
    local since, shapes = 0, last % 2 == 1
    call('ZREM', m.name, member)
    m.count = m.count - 1
    count(m, (last - last % 2) / 2, -1)
    if c.does == BUCKET then
      since = receipt - divUp(level, limitOf(c, n, shapes).rate)
      level = level - plus(sumOf(m, number), EXACT - sum) % EXACT
      leave(m, number)
    end
    return cost, receipt, level, since, number, n, shapes
  end

  -- extend changes when a hold expires and, if it is a place that was renewed, its receipt. It returns what
  -- its record has of it.
  function MANY.extend(m, member, due, receipt)
    local renewed = string.sub(member, 1, 28) .. pack('>I7', receipt) .. string.sub(member, 36)
    if renewed ~= member then call('ZREM', m.name, member) end
    call('ZADD', m.name, whole(due), renewed)
    m.needed = math.max(m.needed, due)
    return string.sub(renewed, 17)
  end

  -- due returns members that have expired, the first of them first, and when each did; at most so many.
  function MANY.due(m, now, most)
    if m.count == 0 then return {} end
    return call('ZRANGEBYSCORE', m.name, '(0', whole(now), 'WITHSCORES', 'LIMIT', '0', whole(most))
  end

  -- isOnlyReserved tells whether those that expire last would give back what is missing.
  function MANY.isOnlyReserved(r, m, now)
    local last = call('ZRANGE', m.name, '-' .. whole(r.left), '-1', 'WITHSCORES')
    for j = #last - 1, 1, -2 do
      local member = last[j]
      if tonumber(last[j + 1]) <= now then break end
      local number, cost, receipt, level, sum, n, shapes = parse(OPENED, member, 17)
      local since = 0
      if r.c.does == BUCKET and n == r.c.n then
        since, level = receipt - divUp(level, r.c.rate), level - plus(sumOf(m, number), EXACT - sum) % EXACT
      end
      if RESERVED.returned(r, cost, receipt, level, since, n, shapes % 2 == 1) then return true end
    end
    return false
  end

  local function isFull(m, l) return m.count + l.count >= MOST or m.next >= NUMBERS end

  local function hasRoom(m, l, client)
    local share = shareOf(m, l)
    return not isFull(m, l) and not (share and client > 0 and nodeAt(m, CLIENTS, client).open >= share)
  end

  -- fullUntil is when the first hold of a key expires, if there are as many as there may be, with those on
  -- its list, or the client has its share; and which of these. Now and then it removes what has expired: if it
  -- has no end of that, the time is not after now.
  function MANY.fullUntil(m, c, now, l, client)
    local ends = MANY.due(m, now, hasRoom(m, l, client) and 2 or MANY_AT_ONCE)
    for j = 1, #ends, 2 do MANY.remove(m, c, ends[j]) end
    if hasRoom(m, l, client) then return nil end
    if l.isFirst == 0 or l.firstDue <= now then LISTS.sweep(l, now) end
    if hasRoom(m, l, client) then return nil end
    local first = call('ZRANGEBYSCORE', m.name, '(0', '+inf', 'WITHSCORES', 'LIMIT', '0', '1')[2]
    return math.min(l.firstDue, tonumber(first or EXACT)), not isFull(m, l)
  end

  -- write writes what has changed of a tree, and for how long it lasts. If there is no hold any more,
  -- the state is where it was.
  function MANY.write(t, k)
    local m, name, now = MANY.read(t, k), t.moved[k], t.now
    if m.count <= 0 then
      call('UNLINK', m.name)
      if t.leases[k] then return end
      call('UNLINK', name)
      try('RENAME', t.keys[k], name) -- if it is there
      return
    end
    local gone, come = {}, {}
    for _, node in pairs(m.byPlace) do
      if node.changed then
        if node.text then gone[#gone + 1], m.nodes = node.text, m.nodes - 1 end
        if node.open > 0 then
          local text = pack('>BI6I2', node.level, node.index, node.open)
          if node.sums then text = text .. pack(SUMS, unpack(node.sums, 1, RADIX)) end
          come[#come + 1], come[#come + 2], m.nodes = node.score, text, m.nodes + 1
        end
      end
    end
    local needed = math.max(m.needed, t.expires[k], t.fresh[k] > 0 and expiry(now, t.fresh[k]) or 0)
    if needed > m.expires then
      m.expires = expiry(now, needed)
      if not t.leases[k] then call('PSETEX', name, ttl(now, t.keep, m.expires), MOVED) end
      call('PEXPIRE', m.name, ttl(now, t.keep, m.expires))
    end
    local head = pack(HEAD_OF_SET, m.expires, m.next, m.nodes)
    if head ~= m.head then gone[#gone + 1], come[#come + 1], come[#come + 2] = m.head, LOWEST, head end
    if #gone > 0 then call('ZREM', m.name, unpack(gone)) end
    if #come > 0 then call('ZADD', m.name, unpack(come)) end
  end
end

