-- ARGV[1] is what to do, as one array packed by Go (see single.go):
--
--   now, how many of KEYS are states, and how many are to be read; then for each limit ten
--   numbers, and of how many states it is; then for each of these how many requests there are and which of KEYS is
--   the list of its open holds, 0 for none; and for each request
--
--   1, cost, longest delay                                             to take
--   6, cost, longest delay, id, which of KEYS is its record, its life, what to put there
--   7, cost, what was used, id, which of KEYS is its record, is there one, when it was known to expire
--
-- now and the answer are as in main.

local RESERVE, SETTLE = 6, 7
local UNKNOWN, SETTLED, EXPIRED, REPEATED = 0, 1, 2, 5
local FOREIGN_STATE, FOREIGN_HOLDS = 3, 7

local i = 2
--> begin
local values = call('MGET', spread(KEYS, 1, input[i + 1])) -- and what has been written since

local first, last = 1, input[i]
i = i + 2
while first <= last do
  --> readLimit
  local following = first + input[i + 10]
  i = i + 11
  for key = first, following - 1 do
    local head = values[key]
    --> readState
    local count, listKey, strange = input[i], input[i + 1], false
    i = i + 2
    if listKey > 0 then
      local text = values[listKey] or pcall('GET', KEYS[listKey])
      strange = type(text) == 'table'
      openList(not strange and text)
    end
    for _ = 1, count do
      local verb, id, record, life, more = input[i]
      cost, maxDelay = input[i + 1], input[i + 2]
      i = i + 3
      if verb >= RESERVE then
        id, record, life, more = input[i], input[i + 1], input[i + 2], input[i + 3]
        i = i + 4
      end
      if foreign or strange and verb >= RESERVE then
        length = length + 1
        out[length] = foreign and FOREIGN_STATE or FOREIGN_HOLDS
      elseif verb == SETTLE then
        local how, used, over, expires = UNKNOWN, 0, 0, more
        local place = findHold(id)
        local ended, time, text
        if place then -- it has not ended, so its record says no more
          readHold(place)
          expires = due
        else
          text = values[record] or pcall('GET', KEYS[record])
          if type(text) == 'table' then text = false end
          ended, time = isEnded(text, 1)
          if not ended and text and #text >= 9 then
            local _, _, known = unpack(OUTCOMES, text)
            expires = known
          elseif expires == 0 then
            expires = now + MEMORY
          end
        end
        if ended then
          if time > now then
            how = REPEATED
            used, over = unpack('>I7I7', text, 10)
          end
        elseif expires <= now then
          if place then removeHold(place) end
          if expires + MEMORY > now then how = EXPIRED end
        else
          -- Without an entry the client was reset meanwhile, and there is nothing to give back.
          local reserved = place and heldCost or cost
          how, used = SETTLED, maxDelay
          if place then removeHold(place) end
          if used < reserved then
            if place then letGo(reserved - used) end
          elseif used > reserved then
            cost, maxDelay = used - reserved, ALWAYS
            --> decide
            if charged then
              --> commit
            end
            over = excess
          end
          local known = knownUntil(expires)
          values[record] = pack('>BBI7I7I7', 1, 1, known, used, over)
          remember(KEYS[record], place and life == 1 or text, known, values[record])
        end
        out[length + 1], out[length + 2], out[length + 3] = how, used, over
        length = length + 3
      else
        --> decide
        if verb == RESERVE and allowed then
          local bar = (values[record] or findHold(id)) and now or fullUntil()
          if bar then allowed, charged, remaining, retry, reset, delay = false, false, free, bar - now, max(0, oldFresh - now), 0 end
        end
        if charged then
          --> commit
        end
        if verb == RESERVE and allowed then
          addHold(id, now + life, cost, false)
          if #more > 0 then
            values[record] = pack('>BBI7c0', 0, 1, now + life, more)
            call('PSETEX', KEYS[record], ttl(now + life + MEMORY + SECOND), values[record])
          end
        end
        --> answer
      end
    end
    if listKey > 0 then closeList(KEYS[listKey]) end
    if changed and oldFresh == 0 then
      if expires > 0 then call('UNLINK', KEYS[key]) end
    elseif changed then
      --> writeState
    end
  end
  first = following
end
return cmsgpack.pack(out)
