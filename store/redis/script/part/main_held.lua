-- ARGV[1] is what to do, packed by Go (see single.go):
--
--   now, how many of KEYS are states, and whether reservations write records; then for each
--   limit ten numbers, and of how many states it is; then for each of these how many requests
--   there are, and for each request
--
--   1, cost                                                     to take
--   6, cost, id, what to put into its record                    to reserve
--   7, cost, id, when it was known to expire, what was used     to settle
--
-- Before a request whose terms are not those of the one before it are 0, longest delay, what is
-- left for others, and the life of holds. The other KEYS are the records, one for each request
-- about a hold, in their order. now and the answer are as in main.

local TERMS, RESERVE, SETTLE = 0, 6, 7
local UNKNOWN, SETTLED, EXPIRED, REPEATED, AS_ASKED = 0, 1, 2, 5, 6
local OUTCOME = '>I2I7I7' -- of a record of one op: 257 if it has ended, else 1; when it expires or is forgotten, and what was used
local EXCESS = '>I2I7I7I7' -- and how much of that was too much

local i = 2
--> begin
local first, last, keepsRecords = 1, input[i], input[i + 1] == 1
local record = last -- of KEYS, that of the request before
local values = call('MGET', spread(KEYS, 1, last))
local intact = {} -- how long records can be
i = i + 2
while first <= last do
  --> readLimit
  endOfEntry = nil
  local following = first + input[i + 10]
  i = i + 11
  for key = first, following - 1 do
    local head = values[key]
    --> readHeld
    local count, before = input[i], expires
    i = i + 1
    repeat
      local verb = input[i]
      if verb == TERMS then
        usualDelay = input[i + 1]
        usualLeave = input[i + 2]
        local life = input[i + 3]
        usualDue = now + life
        usualExpires = usualDue + max(SECOND, (life - life % 4) / 4)
        usualHead = pack(EXCESS, 1, usualDue, 0, 0)
        local expires = usualDue + MEMORY + SECOND
        --> setLasts
        usualTTL = lasts
        i = i + 4
        verb = input[i]
      end
      cost = input[i + 1]
      if foreign then
        --> refuseForeign
        i = i + 2
        if verb >= RESERVE then
          record = record + 1
          i = i + 2
        end
        if verb == SETTLE then i = i + 1 end
      elseif verb == SETTLE then
        wanted = input[i + 2]
        local ends = input[i + 3]
        local used = input[i + 4]
        i = i + 5
        record = record + 1
        local ended, written, known -- of the record
        --> findHeld
        local isHeld = place
        if isHeld then -- it has not ended, so its record says no more
          ends = due
          cost = heldCost
          --> removeHeld
        else
          written = pcall('GET', KEYS[record])
          if type(written) == 'table' then written = false end
          if written and #written >= 9 then
            local how, ops, time = unpack(OUTCOMES, written)
            ended = how == 1
            if not ended then
              ends = time
            elseif ops == 1 and #written >= 23 then
              known = time
            else
              known = 0
            end
          elseif ends == 0 then
            ends = now + MEMORY
          end
        end
        length = length + 1
        if ended or ends <= now then
          local how, over = UNKNOWN, 0
          used = 0
          if not ended then
            if ends + MEMORY > now then how = EXPIRED end
          elseif known > now then
            how = REPEATED
            used, over = unpack('>I7I7', written, 10)
          end
          out[length], out[length + 1], out[length + 2] = how, used, over
          length = length + 2
        else
          excess = 0
          -- Without an entry the client was reset meanwhile, and there is nothing to give back.
          if used < cost then
            if isHeld and oldFresh > 0 then
              units = cost - used
              --> letGo
              if oldFresh <= 0 then oldFresh, oldA, oldB = 0, 0, 0 end
            end
          elseif used > cost then
            cost = used - cost
            maxDelay = ALWAYS
            leave = 0
            --> decide
            if charged then
              --> commit
            end
          end
          known = now + MEMORY
          if ends > known then known = ends end
          local size = 0 -- of the record
          if isHeld and keepsRecords or written and #written >= 23 and string.byte(written) == 0 then
            if excess == 0 then -- which is there already
              written = pack(OUTCOME, 257, known, used)
            else
              written = pack(EXCESS, 257, known, used, excess)
            end
            size = pcall('SETRANGE', KEYS[record], '0', written)
          end
          if not intact[size] then
            if type(size) == 'number' and size > 23 then
              intact[size] = true
            else -- it is lost, or something foreign
              local expires = known + SECOND
              --> setLasts
              call('PSETEX', KEYS[record], lasts, pack(EXCESS, 257, known, used, excess))
            end
          end
          if excess == 0 then
            out[length] = AS_ASKED
          else
            out[length], out[length + 1], out[length + 2] = SETTLED, used, excess
            length = length + 2
          end
        end
      else
        maxDelay = usualDelay
        leave = usualLeave
        --> decide
        if verb ~= RESERVE then
          i = i + 2
          if charged then
            --> commit
          end
        else
          wanted = input[i + 2]
          local content = input[i + 3]
          i = i + 4
          record = record + 1
          if allowed then
            --> findHeld
            local bar = place and now
            if listed >= 64 and not bar then
              --> cutList
              --> findFull
              bar = full
            end
            -- What has a record was here before, and may have ended.
            if bar then
            elseif keepsRecords then
              if not call('SET', KEYS[record], usualHead .. content, 'PX', usualTTL, 'NX') then bar = now end
            elseif pcall('GET', KEYS[record]) then
              bar = now
            end
            if bar then
              allowed, remaining, retry, reset, delay = false, free, bar - now, max(0, oldFresh - now), 0
            else
              --> commit
              --> addHeld
            end
          elseif charged then
            --> commit
          end
        end
        --> answer
      end
      count = count - 1
    until count == 0
    if from < EXACT then -- some holds have changed
      --> writeHeld
    elseif changed then
      --> writeState
    end
  end
  first = following
end
return cmsgpack.pack(out)
