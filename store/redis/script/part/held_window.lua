--: readEntry
id, due, heldCost, receipt = unpack('>c16I7I7I7', list, origin + 1)

--: newEntry
if not endOfEntry then endOfEntry = pack('>I7I7I7B', 0, 0, c.n, c.shape and 1 or 0) end
entry = pack('>c16I7I7I7c22', wanted, usualDue, cost, oldFresh, endOfEntry)

--: newState
if not endOfEntry then endOfEntry = pack('>I7I7I7B', 0, 0, c.n, c.shape and 1 or 0) end
head = pack('>I7I7I7I7I3I7c16I7I7I7c22', oldFresh, oldA, oldB, expires, 65537, usualDue, wanted, usualDue, cost, oldFresh, endOfEntry)
