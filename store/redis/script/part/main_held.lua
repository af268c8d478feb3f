-- ARGV[1] is what to do, packed by Go (see single.go):
--
--   now, and how many of KEYS are states; then for each limit ten numbers, and of how many
--   states it is; then for each of these how many requests there are, and for each request
--
--   1, cost, longest delay, leave                                      to take
--   6, cost, longest delay, leave, id, which of KEYS is its record, its life, what to put there
--   7, cost, what was used, leave, id, which of KEYS is its record, is there one, when it was known to expire
--
-- leave is what is left for others. now and the answer are as in main.

local RESERVE, SETTLE = 6, 7
local UNKNOWN, SETTLED, EXPIRED, REPEATED = 0, 1, 2, 5

-- Most holds have the same life.
local usualLife, usualHead, usualTTL

base = HEAD
local i = 2
--> begin
local first, last = 1, input[i]
local values = call('MGET', spread(KEYS, 1, last))
i = i + 1
while first <= last do
  --> readLimit
  local following = first + input[i + 10]
  i = i + 11
  for key = first, following - 1 do
    local head = values[key]
    --> readState
    text = not foreign and head
    --> openList
    local count, before = input[i], expires
    i = i + 1
    for _ = 1, count do
      local verb, record, life, more = input[i]
      cost, maxDelay, leave = input[i + 1], input[i + 2], input[i + 3]
      i = i + 4
      if verb >= RESERVE then
        wanted, record, life, more = input[i], input[i + 1], input[i + 2], input[i + 3]
        i = i + 4
      end
      if foreign then
        --> refuseForeign
      elseif verb == SETTLE then
        local how, used, over, expires, ended, known = UNKNOWN, 0, 0, more
        local written -- the record
        --> findHold
        local isHeld = place
        if isHeld then -- it has not ended, so its record says no more
          expires = due
          --> removeHold
        else
          written = pcall('GET', KEYS[record])
          if type(written) == 'table' then written = false end
          ended, known = isEnded(written, 1)
          if not ended and written and #written >= 9 then
            local _, _, time = unpack(OUTCOMES, written)
            expires = time
          elseif expires == 0 then
            expires = now + MEMORY
          end
        end
        if ended then
          if known > now then
            how = REPEATED
            used, over = unpack('>I7I7', written, 10)
          end
        elseif expires <= now then
          if expires + MEMORY > now then how = EXPIRED end
        else
          -- Without an entry the client was reset meanwhile, and there is nothing to give back.
          local reserved = isHeld and heldCost or cost
          how, used = SETTLED, maxDelay
          if used < reserved then
            if isHeld and oldFresh > 0 then
              units, changed = reserved - used, true
              --> letGo
              if oldFresh <= 0 then forget() end
            end
          elseif used > reserved then
            cost, maxDelay = used - reserved, ALWAYS
            --> decide
            if charged then
              --> commit
            end
            over = excess
          end
          known = now + MEMORY
          if expires > known then known = expires end
          local outcome = pack('>BBI7I7I7', 1, 1, known, used, over)
          remember(KEYS[record], isHeld and life == 1 or written, known, outcome)
        end
        out[length + 1], out[length + 2], out[length + 3] = how, used, over
        length = length + 3
      else
        --> decide
        if verb == RESERVE and allowed then
          --> findHold
          local bar = place and now or listed >= 64 and fullUntil()
          due = now + life
          -- What has a record was here before, and may have ended.
          if not bar and #more == 0 then
            if pcall('GET', KEYS[record]) then bar = now end
          elseif not bar then
            if life ~= usualLife then
              usualLife, usualHead, usualTTL = life, pack(OUTCOMES, 0, 1, due), ttl(due + MEMORY + SECOND)
            end
            if not call('SET', KEYS[record], usualHead .. more, 'PX', usualTTL, 'NX') then bar = now end
          end
          if bar then allowed, charged, remaining, retry, reset, delay = false, false, free, bar - now, max(0, oldFresh - now), 0 end
        end
        if charged then
          --> commit
        end
        if verb == RESERVE and allowed then
          --> addHold
        end
        --> answer
      end
    end
    if from < EXACT then -- some holds have changed
      if needed > expires then expires = expiry(needed) end
      if oldFresh > expires then expires = expiry(oldFresh) end
      if oldFresh == 0 and listed == 0 then
        call('UNLINK', KEYS[key])
      else
        if to > #list then to = #list end
        local all = stored > 4 * (LIST_HEAD + #list) and stored > 1024
        local near = all or from <= 4 * ENTRY
        local part = list
        if not near then part = '' elseif to < #list and not all then part = cut(list, 1, to) end
        head = pack('>I7I7I7I7BI2I7c0', oldFresh, oldA, oldB, expires, isFirst, listed, firstDue, part)
        if before == 0 then
          call('PSETEX', KEYS[key], ttl(expires), head)
        else
          if all then call('SET', KEYS[key], head, 'KEEPTTL') else call('SETRANGE', KEYS[key], '0', head) end
          if not near and to > from then call('SETRANGE', KEYS[key], format('%d', HEAD + LIST_HEAD + from), cut(list, from + 1, to)) end
          if before ~= expires then call('PEXPIRE', KEYS[key], ttl(expires)) end
        end
      end
    elseif changed then
      --> writeState
    end
  end
  first = following
end
return cmsgpack.pack(out)
