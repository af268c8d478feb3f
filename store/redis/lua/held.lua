-- The quickest way for requests of one op to take, to reserve or to settle, under limits of one
-- algorithm. They come in the order of their keys, as of singles.
--
-- args[1] is what to do, packed by Go (see single.go):
--
--   now, how many of the keys are states, and 1 if reservations write records, and 2 more if a key may have
--   many holds, which are not for this function; then for each limit its text,
--   and of how many states it is; then for each of these how many requests there are, and for
--   each request
--
--   1, cost                                                   to take
--   6, cost, id, what to put into its record                  to reserve
--   7, cost, id, when it was known to expire, what was used   to settle
--
-- Before a request whose terms are not those of the one before it are 0, longest delay, what is left
-- for others, and the life of holds. The other keys are, of logs and sub-windows, the list of each state, for it is not
-- behind that; and the records, one for each request about a hold, in their order. now and the answer are as of singles; a hold that is settled as it was asked for is
-- AS_ASKED, without numbers.
--
-- Most keys have one request in a call, and at most one open hold, which is that of the request. Then
-- there is no table for its list: the hold is read and written with the state.

-- writeValue writes the beginning of a value, which was to expire at that time; 0 if there was none.
local function writeValue(now, keep, name, value, before, expires)
  if before == 0 then
    call('PSETEX', name, ttl(now, keep, expires), value)
    return
  end
  call('SETRANGE', name, '0', value)
  if expires ~= before then call('PEXPIRE', name, ttl(now, keep, expires)) end
end

local function held(does, keys, args)
  local input, i, now, keep = begin(args)
  if not i then return input end
  local out, length = { now, nil, nil }, 1
  -- As in names.lua and hold_names.lua; here, because in a script a constant that a function takes from outside costs more.
  local FOREIGN, ALWAYS, RESERVE, SETTLE, SETTLED, FOREIGN_HOLDS = 3, -2, 6, 7, 1, 7
  local TERMS, AS_ASKED = 0, 6
  local STATE_AND_LIST, LIST_AT = '>I7I7I7I7I3', HEAD + LIST_HEAD
  local ENDED = '>I2I7I7' -- of a record: 257 if it has ended, else 1; when it expires or is forgotten, and what was used
  local ENDED_WITH_EXCESS = '>I2I7I7I7' -- and how much of that was too much
  local look, charge, commit, isBucket = does.look, does.charge, does.commit, does == BUCKET
  local hold = isBucket and '>c16I7I7I7I7I7' or '>c16I7I7I7' -- what is read of one: windows have no level, and no since
  local key, last, keepsRecords, grows = 0, input[i], input[i + 1] % 2 == 1, input[i + 1] >= 2
  local record, base = last, HEAD -- the latter is where in a value a list begins
  if commit then record, base = 2 * last, 0 end
  local intact, values, spare = nil, call('MGET', unpack(keys, 1, record)), nil
  local maxDelay, leave, due, dueExpires, newRecord, recordLasts
  i = i + 2
  while key < last do
    local c, following = readLimit(does, input[i]), key + input[i + 1]
    local shapes, limitOfHold = c.shape, nil
    i = i + 2
    while key < following do
      key = key + 1
      local name, value, count = keys[key], values[key], input[i]
      local fresh, a, b, expires, listed, isUsual, more = 0, 0, 0, 0, 0, count == 1, nil
      local listName, listText, isForeign = name, value, false
      if commit then
        listName = keys[last + key]
        listText = values[last + key] or try('GET', listName)
        isForeign = type(listText) == 'table'
        fresh, a, b, expires, more = does.read(name, value, c, spare)
        spare, listed, isUsual = more or spare, 1, false
      elseif value and #value >= LIST_AT then
        fresh, a, b, expires, listed = parse(STATE_AND_LIST, value)
        if fresh >= EXACT then fresh = nil end
        if listed >= 65536 then listed = listed - 65536 end
        if listed > 1 or #value > 1024 or #value < LIST_AT + listed * ENTRY then isUsual = false end
      else
        fresh, a, b, expires = readHead(name, value)
      end
      local list, changed, settled, newHold, newCost, newSince = nil, false, false, nil, 0, 0
      i = i + 1
      for _ = 1, count do
        local verb = input[i]
        if verb == TERMS then
          maxDelay, leave = input[i + 1], input[i + 2]
          due = now + input[i + 3]
          dueExpires, newRecord, recordLasts = expiry(now, due), pack(ENDED_WITH_EXCESS, 1, due, 0, 0), ttl(now, keep, due + MEMORY + SECOND)
          i = i + 4
          verb = input[i]
        end
        local cost = input[i + 1]
        if not fresh or isForeign and verb >= RESERVE then
          length = length + 1
          out[length] = fresh and FOREIGN_HOLDS or FOREIGN
          if verb >= RESERVE then record = record + 1 end
          i = i + (verb == SETTLE and 5 or verb == RESERVE and 4 or 2)
        elseif verb == SETTLE then
          local id, ends, used, excess, isHeld, ended, text = input[i + 2], input[i + 3], input[i + 4], 0, false, false, nil
          local receipt, level, since
          i = i + 5
          record = record + 1
          if not isUsual then
            prepareLists()
            list = list or LISTS.read(listName, base, listText)
            local place, holdDue, holdCost
            place, holdDue, holdCost, receipt, level, since = LISTS.find(list, id)
            if place then
              LISTS.remove(list, place, holdDue)
              isHeld, ends, cost = true, holdDue, holdCost
            end
          elseif listed == 1 then
            local holdID, holdDue, holdCost
            holdID, holdDue, holdCost, receipt, level, since = parse(hold, value, LIST_AT + 1)
            if holdID == id then isHeld, settled, ends, cost = true, true, holdDue, holdCost end
          end
          if not isHeld then
            prepareLists()
            ended, ends, text = LISTS.readRecord(now, keys[record], ends)
          end
          if ended or ends <= now then
            prepareLists()
            length = LISTS.tellEnd(out, length, now, ended, ends, text)
          else
            if used > cost then
              local at, viewFresh, viewA, viewB, free = look(c, now, fresh, a, b, more)
              local _, nextFresh, nextA, nextB
              prepareDecisions()
              _, _, _, _, nextFresh, nextA, nextB, excess = DECISIONS.decide(c, now, fresh, at, viewFresh, viewA, viewB, free, more, used - cost, ALWAYS, 0)
              if nextFresh then
                if more then commit(c, more, fresh, a, b, nextFresh, nextA, nextB) end
                fresh, a, b, changed = nextFresh, nextA, nextB, true
              end
            elseif used < cost and isHeld and fresh > 0 then -- otherwise the client was reset meanwhile
              does:prepare()
              if isBucket then
                local back
                fresh, a, b, back = does.letGo(c, fresh, a, b, receipt, level, since, cost - used)
                if back > 0 and list then LISTS.moveUp(list, level, since, back) end
              else
                fresh, a, b = does.refund(c, fresh, a, b, more, receipt, cost - used)
              end
              if fresh <= 0 then fresh, a, b = 0, 0, 0 end
              changed = true
            end
            local known, size = now + MEMORY, nil
            if ends > known then known = ends end
            if isHeld and keepsRecords or text and #text >= ENDED_LENGTH then
              if excess == 0 then text = pack(ENDED, 257, known, used) else text = pack(ENDED_WITH_EXCESS, 257, known, used, excess) end
              size = try('SETRANGE', keys[record], '0', text)
            end
            if size == nil or size ~= intact then
              if type(size) == 'number' and size > ENDED_LENGTH then
                intact = size
              else -- it is lost, or something foreign
                call('PSETEX', keys[record], ttl(now, keep, known + SECOND), pack(ENDED_WITH_EXCESS, 257, known, used, excess))
              end
            end
            length = length + 1
            if excess == 0 then
              out[length] = AS_ASKED
            else
              out[length], out[length + 1], out[length + 2] = SETTLED, used, excess
              length = length + 2
            end
          end
        else
          local at, viewFresh, viewA, viewB, free = look(c, now, fresh, a, b, more)
          local allowed, remaining, retry, delay, nextFresh, nextA, nextB, excess = true, 0, 0, 0, nil, nil, nil, nil
          local lacks
          free = free - leave
          if cost <= free and not shapes and maxDelay ~= ALWAYS then -- as a rule
            nextFresh, nextA, nextB = charge(c, at, viewFresh, viewA, viewB, cost)
            remaining = free - cost
          else
            prepareDecisions()
            allowed, remaining, retry, delay, nextFresh, nextA, nextB, excess =
              DECISIONS.decide(c, now, fresh, at, viewFresh, viewA, viewB, free, more, cost, maxDelay, leave)
          end
          if verb == RESERVE then
            local id, content = input[i + 2], input[i + 3]
            i = i + 4
            record = record + 1
            if allowed then
              local bar
              if not isUsual or listed == 1 then
                prepareLists()
                list = list or LISTS.read(listName, base, listText)
                bar = LISTS.find(list, id) and now or LISTS.fullUntil(list, now)
                if grows and list.count >= FEW_HOLDS and bar ~= now then allowed, bar, nextFresh = nil, -1, nil end
              end
              -- What has a record was here before, and may have ended.
              if bar then
              elseif keepsRecords then
                if not call('SET', keys[record], newRecord .. content, 'PX', recordLasts, 'NX') then bar = now end
              elseif try('GET', keys[record]) then
                bar = now
              end
              if bar == -1 then -- it is for holds
              elseif bar then
                allowed, remaining, retry, delay, nextFresh = false, math.max(0, free), bar - now, 0, nil
              elseif list then
                LISTS.add(list, id, due, cost, c, nextFresh, nextA, false)
              else
                newHold, newCost, newSince = id, cost, at
              end
            elseif list or listed > 0 then
              prepareReserved()
              lacks = RESERVED.lacking(c, at, fresh, a, b, viewA, viewB, free, cost, leave, retry)
              if lacks then
                prepareLists()
                list = list or LISTS.read(listName, base, listText)
                if not RESERVED.isAll(lacks, list, now) then lacks = nil end
              end
            end
          else
            i = i + 2
          end
          if nextFresh then
            if more then commit(c, more, fresh, a, b, nextFresh, nextA, nextB) end
            fresh, a, b, changed = nextFresh, nextA, nextB, true
          end
          if allowed and delay == 0 then
            out[length + 1] = remaining * 4 + 1
            length = length + 2
            out[length] = fresh - now
          elseif allowed == nil then
            length = length + 1
            out[length] = FOREIGN
          elseif lacks then
            length = RESERVED.answer(out, length, remaining, retry, fresh - now, lacks.missing)
          else
            prepareDecisions()
            length = DECISIONS.answer(out, length, allowed, remaining, retry, delay, fresh - now, excess)
          end
        end
      end
      if more then
        if changed then does.write(now, keep, name, fresh, a, b, expires, more) end
        if list and list.from < EXACT then LISTS.writeApart(now, keep, list) end
      elseif list and list.from < EXACT then
        LISTS.write(now, keep, name, fresh, a, b, expires, list)
      elseif newHold then
        local before = expires
        if due > expires then expires = dueExpires end
        if fresh > expires then expires = expiry(now, fresh) end
        if isBucket then
          limitOfHold = limitOfHold or pack('>I7B', c.n, shapes and 1 or 0)
          value = pack('>I7I7I7I7I3I7c16I7I7I7I7I7c8', fresh, a, b, expires, 65537, due, newHold, due, newCost, fresh, a, newSince, limitOfHold)
        else
          limitOfHold = limitOfHold or pack('>I7I7I7B', 0, 0, c.n, 0)
          value = pack('>I7I7I7I7I3I7c16I7I7I7c22', fresh, a, b, expires, 65537, due, newHold, due, newCost, fresh, limitOfHold)
        end
        writeValue(now, keep, name, value, before, expires)
      elseif settled and fresh == 0 then
        call('UNLINK', name)
      elseif settled then -- it does not matter when the first hold would expire
        local before = expires
        if fresh > expires then expires = expiry(now, fresh) end
        writeValue(now, keep, name, pack(STATE_AND_LIST, fresh, a, b, expires, 0), before, expires)
      elseif changed then
        writeHead(now, keep, name, fresh, a, b, expires)
      end
    end
  end
  return cmsgpack.pack(out)
end
