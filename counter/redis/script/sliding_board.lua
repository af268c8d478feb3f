if verb == 'score' then
  if not fits(latest and sum, rest) then
    if latest then remember() end -- the window has moved all the same
    return { 'range' }
  end
  begin()
  local after = {}
  for i = rest, #ARGV, 2 do after[#after + 1] = text(count(ARGV[i], ARGV[i + 1])) end
  trim()
  extend()
  return { 'ok', 0, after }
end

if moved then remember() end
if not current then return { 'ok', 0, {}, 0, '0' } end
if verb == 'top' then
  return { 'ok', 0, list(sum, tonumber(ARGV[rest])), redis.call('ZCARD', sum), text(dropped()) }
end
return { 'ok', 0, standing(sum, rest) }
