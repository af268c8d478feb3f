-- forget makes the state of k as good as new; it will be deleted.
forget = function()
  FRESH[k], A[k], B[k], CHANGED[k], FOREIGN[k] = 0, 0, 0, true, nil
  if TAIL and TAIL[k] then WORDS[k], TAIL[k], DIRTY[k] = 0, {}, true end
  if LOG and LOG[k] then LOG[k] = { open = '', first = 0, skip = 0, added = '', stored = 0, expires = 0, hashed = LOG[k].hashed } end
end
