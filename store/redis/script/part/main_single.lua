-- ARGV[1] is what to do, as numbers packed by Go (see single.go):
--
--   now; then for each limit ten numbers, what is left for others, and of how many of KEYS
--   it is; then for each of these how many units are asked for, one by one; or, below 0, how
--   many requests there are, and cost, longest delay and what is left for others for each. If
--   something is to be given back, -1 - cost and the receipt instead of the delay; and -1 as
--   the last if nobody asks how the key is then
--
-- now and the answer are as in main.

local i = 2
--> begin
local heads = {}
if #KEYS > 1 then heads = call('MGET', spread(KEYS)) end

local first, last = 1, #KEYS
while first <= last do
  --> readLimit
  local usual, following = input[i + 10], first + input[i + 11]
  i = i + 12
  for key = first, following - 1 do
    local head = heads[key]
    --> readState
    local count, each = input[i], false
    i = i + 1
    if count < 0 then
      count, each = -count, true
    else
      cost = 1
      maxDelay = -1
      leave = usual
    end
    --> ready
    for _ = 1, count do
      if each then
        cost, maxDelay, leave = input[i], input[i + 1], input[i + 2]
        i = i + 3
      end
      if foreign then
        --> refuseForeign
      --> elseBack
      else
        --> decide
        if charged then
          --> commit
        end
        --> answer
      end
    end
    if changed then
      --> writeState
    end
  end
  first = following
end
return cmsgpack.pack(out)
