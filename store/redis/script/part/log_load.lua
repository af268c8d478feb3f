--> makePages

loadLog = function(k)
  local value = (values or call('MGET', KEYS[k]))[values and k or 1]
  --> readLog
end

saveLog = function()
  log = LOG[k]
  --> writeLog
end
