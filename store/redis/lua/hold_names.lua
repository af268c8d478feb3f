-- The open holds of a key are a text: a head and, in no order, an entry for each, with its id and
-- what was charged, as weir.Held has it. It is behind the state or, if that has a tail or is a log, in
-- a key of its own. Only what has changed is written.
--
-- A list is
--
--   name, base          its key, and where in that it begins
--   entries, count      what is in it
--   isFirst, firstDue   1 if the first hold expires just then; else none expires sooner
--   stored              bytes in Redis
--   from, to            which of its entries have changed
--   needed              until when it is needed at least
--   levels, since       of all holds, while they move up

-- The record of a hold, which is a key of its own, says whether it has ended, of how many ops it is, when it
-- expires or is forgotten, and of each op what was used and how much of that was too much.

local RESERVE, SETTLE = 6, 7 -- what is asked for
local UNKNOWN, SETTLED, EXPIRED, REPEATED = 0, 1, 2, 5 -- what has become of a hold
local RECORD, RECORD_HEAD, OUTCOME = '>BBI7', 9, '>I7I7'
local ENDED_LENGTH = 23 -- of a record of one op
local MEMORY = 60 * SECOND
local FOREIGN_HOLDS = 7 -- FOREIGN is that the state is
local FEW_HOLDS = 32 -- of a list that need not become longer; see many_holds
local LIST, LIST_HEAD = '>BI2I7', 10 -- isFirst, how many, firstDue
local HELD, ENTRY = '>I7I7I7I7I7I7B', 59 -- behind 16 bytes of id: due, cost, receipt, level, since, and of its limit N and whether it shapes
