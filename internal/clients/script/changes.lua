-- ARGV: the token and the number of the last change that is known, and how many to return. Returns the token and the number that there
-- are, the number of clients and that of entries, and name, text and token of the changes behind the known one. There are none if
-- that is not in the stream: it is too old, or of another history, such as that of a master before a failover.
local known = tonumber(ARGV[2])
local out = {token, number, tostring(clients), tostring(entries)}
if tonumber(number) <= known then
  return out
end
local next = math.max(known, 1)
for _, change in ipairs(redis.call('XRANGE', KEYS[3], string.format('%.0f-0', next), '+', 'COUNT', ARGV[3])) do
  local fields = change[2]
  if change[1] ~= string.format('%.0f-0', next) or next == known and fields[6] ~= ARGV[1] then
    break
  end
  if next > known then
    out[#out + 1] = fields[2]
    out[#out + 1] = fields[4]
    out[#out + 1] = fields[6]
  end
  next = next + 1
end
return out
