-- The quickest way, for most calls: requests of one op, to take or to give back, under limits of one
-- algorithm. What they do to one key is no business of another's, so they come in the order of their
-- keys, and one state is at hand at a time.
--
-- args[1] is what to do, packed by Go (see single.go):
--
--   now; then for each limit its text, what is left for others, and of how many keys it is; then
--   for each of these how many units are asked for, one by one; or, below 0, how many requests there
--   are, and cost, longest delay and what is left for others for each. If something is to be given
--   back, -1 - cost and the receipt instead of the delay; and -1 as the last if nobody asks how the
--   key is then
--
-- now is 0 for Redis's own clock. Below 0 it is -1 - now, and two numbers follow: the call has
-- periods of the calendar, which are right from the one time to the other. If it is not within,
-- nothing happens, and the answer is the time alone. Otherwise it is the time, and then what answer
-- writes for each request, or FOREIGN.
--
-- If states may be in keys of their own, those are behind the keys, and readApart is given. What is due there is for
-- holds, and so is a charge for which what is in the place of the state would have to last longer, after the time latest: it
-- is MORE_DUE.
local function singles(does, keys, args, readApart)
  -- As in names.lua; here, because in a script a constant that a function takes from outside costs more.
  local FOREIGN, MORE_DUE, KEPT, ALWAYS = 3, 11, 19, -2
  local input, i, now, keep = begin(args)
  if not i then return input end
  local out, length = { now, nil, nil, nil }, 1 -- room for one decision: to make it later takes time
  local read, look, charge, commit, write = does.read, does.look, does.charge, does.commit, does.write
  local values
  if #keys > 1 then values = call('MGET', unpack(keys)) end
  local key, last, spare = 0, readApart and #keys / 2 or #keys, nil
  while key < last do
    local c, usual, following = readLimit(does, input[i]), input[i + 1], key + input[i + 2]
    local shapes = c.shape
    i = i + 3
    while key < following do
      key = key + 1
      local name, count, cost, maxDelay, leave, each, changed = keys[key], input[i], 1, -1, usual, false, false
      local value, leased, latest, code, told, isDue = values and values[key], nil, nil, nil, 0, false
      if readApart then
        latest, leased, isDue = readApart(value, now)
        if latest then name, value = keys[last + key], values[last + key] end
        if isDue then code = MORE_DUE end
      end
      local fresh, a, b, expires, more = read(name, value, c, spare)
      if not fresh then code = FOREIGN elseif latest then latest = math.max(latest, expires) end
      spare = more or spare
      i = i + 1
      if count < 0 then count, each = -count, true end
      while count > 0 do
        local run = count -- how many ask for the same, one after the other
        if each then
          cost, maxDelay, leave, run = input[i], input[i + 1], input[i + 2], 1
          i = i + 3
          while run < count and cost >= 0 and cost == input[i] and maxDelay == input[i + 1] and leave == input[i + 2] do run, i = run + 1, i + 3 end
        end
        count = count - run
        if cost < 0 and not code then
          cost, run = -1 - cost, 0
          if fresh > 0 and maxDelay ~= 0 then
            does:prepare()
            fresh, a, b = does.refund(c, fresh, a, b, more, maxDelay, cost)
            changed = true
          end
          if leave < 0 then -- nobody asks
            out[length + 1], out[length + 2] = 1, 0
            length = length + 2
          else
            local at, viewFresh, viewA, viewB, free = look(c, now, fresh, a, b, more)
            free = free - leave
            prepareDecisions()
            if leased then
              local kept = math.max(0, math.min(free, leased))
              if kept ~= told then out[length + 1], out[length + 2], told, length = KEPT, kept, kept, length + 2 end
              free = free - leased
            end
            free = math.max(0, free)
            local allowed, retry, delay = DECISIONS.judge(c, now, fresh, at, viewFresh, viewA, viewB, free, more, cost, -1, leave, leased)
            length = DECISIONS.answer(out, length, allowed, free, retry, delay, fresh - now)
          end
        end
        while run > 0 and not code do
          local before, asked, at, viewFresh, viewA, viewB, free = length, run, look(c, now, fresh, a, b, more)
          free = free - leave
          if leased then free = free - leased end
          if cost <= free and not shapes and maxDelay ~= ALWAYS then -- as a rule
            repeat -- look would find what charge returns, and as much less free
              viewFresh, viewA, viewB = charge(c, at, viewFresh, viewA, viewB, cost)
              free = free - cost
              run = run - 1
              if leased and told ~= leased then
                out[length + 1], out[length + 2], told = KEPT, leased, leased
                length = length + 2
              end
              out[length + 1] = free * 4 + 1
              length = length + 2
              out[length] = viewFresh - now
            until run == 0 or cost > free
            if not latest or viewFresh <= latest then
              if more then commit(c, more, fresh, a, b, viewFresh, viewA, viewB) end
              fresh, a, b, changed = viewFresh, viewA, viewB, true
            else
              code = MORE_DUE
            end
          elseif not (shapes or leased or c.countDenied or maxDelay == ALWAYS) then -- it does not fit, as decide says
            local retry, need = -1, cost + leave
            if need <= c.capacity then
              retry = does.wait(c, at, viewFresh, viewA, viewB, need, more)
              if fresh > at and retry > fresh - at then retry = fresh - at end
              retry = retry + at - now
            end
            local remaining, reset = math.max(0, free) * 4, math.max(0, fresh - now)
            repeat
              out[length + 1], out[length + 2], out[length + 3] = remaining, reset, retry
              length, run = length + 3, run - 1
            until run == 0
          else
            prepareDecisions()
            local allowed, remaining, retry, delay, nextFresh, nextA, nextB, excess =
              DECISIONS.decide(c, now, fresh, at, viewFresh, viewA, viewB, free, more, cost, maxDelay, leave, leased)
            if nextFresh and latest and nextFresh > latest then
              code = MORE_DUE
            elseif nextFresh then
              if more then commit(c, more, fresh, a, b, nextFresh, nextA, nextB) end
              fresh, a, b, changed = nextFresh, nextA, nextB, true
            end
            repeat -- as long as nothing changes, the answer is the same
              if leased then
                local kept = math.max(0, math.min(free + leased - (maxDelay == ALWAYS and cost - (excess or 0) or 0), leased))
                if kept ~= told then out[length + 1], out[length + 2], told, length = KEPT, kept, kept, length + 2 end
              end
              length = DECISIONS.answer(out, length, allowed, remaining, retry, delay, fresh - now, excess)
              run = run - 1
            until run == 0 or nextFresh
          end
          if code then -- nothing of this was done
            for i = before + 1, length do out[i] = nil end
            length, run = before, asked
          end
        end
        for _ = 1, run do
          length = length + 1
          out[length] = code
        end
      end
      if changed then write(now, keep, name, fresh, a, b, expires, more) end
    end
  end
  return cmsgpack.pack(out)
end
