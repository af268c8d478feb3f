-- ARGV[1] is what to do, as in main. All requests are to take.

local i = 2
--> begin
--> readLimits
local heads = {}
if #KEYS > 1 then heads = call('MGET', spread(KEYS)) end
for key = 1, #KEYS do
  local head = heads[key]
  --> readState
  FRESH[key] = oldFresh
  A[key] = oldA
  B[key] = oldB
  EXPIRES[key] = expires
  if foreign then FOREIGN[key] = true end
end

local last = #input
while i < last do
  local n, first, answered = input[i + 1], i + 2, length
  local after = first + 5 * n
  local admitted, foreign = true, false
  i = first
  for op = 1, n do
    --> readOp
    if FOREIGN[k] then
      foreign = true
      break
    end
    --> decide
    if not allowed and n > 1 then
      admitted = false
      break
    end
    if isLook then
      charged = false
      remaining = free
      reset = max(0, FRESH[k] - now)
    end
    NEXT_FRESH[op] = charged and nextFresh
    NEXT_A[op] = nextA
    NEXT_B[op] = nextB
    --> answer
    i = i + 5
  end
  i = first
  if admitted and not foreign then
    for op = 1, n do
      nextFresh = NEXT_FRESH[op]
      if nextFresh then
        k = input[i]
        nextA = NEXT_A[op]
        nextB = NEXT_B[op]
        --> commit
      end
      i = i + 5
    end
  else -- how each of them is, of which some count that they were asked
    length = answered
    while i < after and not foreign do
      foreign = FOREIGN[input[i]]
      i = i + 5
    end
    i = first
    for _ = 1, n do
      --> readOp
      if FOREIGN[k] then
        --> refuseForeign
      elseif foreign then
        allowed, debt, remaining, reset, retry = false, false, 0, 0, 0
        --> answer
      elseif c.countDenied and not isLook then
        --> decide
        if charged then
          --> commit
        end
        --> answer
      else
        --> judge
        debt = false
        reset = max(0, FRESH[k] - now)
        --> answer
      end
      i = i + 5
    end
  end
end

for key in pairs(CHANGED) do
  oldFresh = FRESH[key]
  oldA = A[key]
  oldB = B[key]
  expires = EXPIRES[key]
  local head
  --> writeState
end
return cmsgpack.pack(out)
