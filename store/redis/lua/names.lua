-- What everything uses. In a script, what is behind the names is in a function: Lua looks for the locals of
-- a text at each definition that uses one, but for those around a function once.

-- What Redis offers does not exist while a library is loaded, so a call looks it up if it is the
-- first. Nothing else outlives a call but limits; see limits.lua.
local call, try, pack, parse

local EXACT = 9007199254740992 -- 2^53
local MAX_UNITS = 1125899906842624 -- 2^50
local SECOND = 1000000
local NEVER = -1 -- the retry of what can never fit
local ALWAYS = -2 -- the longest delay of what is charged whether or not it fits
local HEAD = 28 -- bytes of a state
local FOREIGN = 3 -- the answer about a key that holds something else
local MORE_DUE = 11 -- the answer if something is due on a key that this function cannot do
local KEPT = 19 -- before a decision on a key with units on lease comes this, and how many of these would be free; of singles, also for those behind it
