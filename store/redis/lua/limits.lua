-- A function remembers the limits that were read last, which saves a call 7,000 instructions of 66,000. A text stands for the
-- same limit of an algorithm for ever, so they are constants, and may outlive a call that fails. Whoever else may call
-- functions can leave nothing wrong here, nor much. A script has nothing to remember, nor this file.
do
  local MOST, LONGEST = 256, 100
  local read, limits, count = readLimit, {}, 0

  function readLimit(does, text)
    local c = limits[text]
    if c and c.does == does then return c end
    c = read(does, text)
    if #text > LONGEST then return c end
    if count >= MOST then limits, count = {}, 0 end
    limits[text], count = c, count + 1
    return c
  end
end
