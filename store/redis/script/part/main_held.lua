-- ARGV[1] is what to do, as one array packed by Go (see single.go):
--
--   now, how many of KEYS are states; then for each limit ten numbers, and of how many
--   states it is; then for each of these how many requests there are and which of KEYS is
--   the list of its open holds, 0 for none; and for each request
--
--   1, cost, longest delay                                             to take
--   6, cost, longest delay, id, which of KEYS is its record, its life, what to put there
--   7, cost, what was used, id, which of KEYS is its record, 0, when it was known to expire
--
-- now and the answer are as in main.

local RESERVE, SETTLE = 6, 7
local UNKNOWN, SETTLED, EXPIRED, REPEATED = 0, 1, 2, 5
local FOREIGN_STATE, FOREIGN_HOLDS = 3, 7

local i = 2
--> begin
local values = call('MGET', spread(KEYS)) -- and what has been written since, by key

local first, last = 1, input[i]
i = i + 1
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
      local text
      if verb >= RESERVE then
        text = values[KEYS[input[i + 1]]] or values[input[i + 1]]
        id, record, life, more = input[i], KEYS[input[i + 1]], input[i + 2], input[i + 3]
        i = i + 4
      end
      if foreign or strange and verb >= RESERVE then
        length = length + 1
        out[length] = foreign and FOREIGN_STATE or FOREIGN_HOLDS
      elseif verb == SETTLE then
        local how, used, over, expires = UNKNOWN, 0, 0, more
        local ended, time = isEnded(text, 1)
        local place = not ended and findHold(id)
        if place then
          readHold(place)
          expires = due
        elseif not ended and text and #text >= 9 then
          local _, _, known = unpack(OUTCOMES, text)
          expires = known
        elseif expires == 0 then
          expires = now + MEMORY
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
          values[record] = remember(record, text, 1, expires, pack('>I7I7', used, over))
        end
        out[length + 1], out[length + 2], out[length + 3] = how, used, over
        length = length + 3
      else
        --> decide
        if verb == RESERVE and allowed then
          local bar = (text or findHold(id)) and now or fullUntil()
          if bar then allowed, charged, remaining, retry, reset, delay = false, false, free, bar - now, max(0, oldFresh - now), 0 end
        end
        if charged then
          --> commit
        end
        if verb == RESERVE and allowed then
          addHold(id, now + life, cost, false)
          if #more > 0 then
            values[record] = pack(OUTCOMES, 0, 1, now + life) .. more
            call('PSETEX', record, ttl(now + life + MEMORY + SECOND), values[record])
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
