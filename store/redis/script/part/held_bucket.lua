--: letGo
--> letGoBucket

--: readEntry
id, due, heldCost, receipt, level, since = unpack('>c16I7I7I7I7I7', list, origin + 1)

--: newEntry
if not endOfEntry then endOfEntry = pack('>I7B', c.n, c.shape and 1 or 0) end
entry = pack('>c16I7I7I7I7I7c8', wanted, usualDue, cost, oldFresh, oldA, at, endOfEntry)

--: newState
if not endOfEntry then endOfEntry = pack('>I7B', c.n, c.shape and 1 or 0) end
head = pack('>I7I7I7I7I3I7c16I7I7I7I7I7c8', oldFresh, oldA, oldB, expires, 65537, usualDue, wanted, usualDue, cost, oldFresh, oldA, at, endOfEntry)
