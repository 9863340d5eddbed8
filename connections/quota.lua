#!lua name=rillbase_sockets_1

-- How many connections and subscriptions a tenant has, over all server processes.
-- keys[1] is a hash of the tenant: process → "connections subscriptions end", the end in ms of
-- Valkey's time. A process that has not been heard of until then counts no more.

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function note(key, process, connections, subscriptions, ttl_ms)
  if tonumber(connections) + tonumber(subscriptions) == 0 then
    redis.call('HDEL', key, process)
    return
  end
  local ends = string.format('%.0f', now_ms() + tonumber(ttl_ms))
  redis.call('HSET', key, process, connections .. ' ' .. subscriptions .. ' ' .. ends)
  redis.call('PEXPIRE', key, ttl_ms)
end

-- args: process, its connections, its subscriptions, for how many ms that counts.
local function tell(keys, args)
  note(keys[1], args[1], args[2], args[3], args[4])
  return 'ok'
end

-- args: as above, with what is wanted counted in, then how many connections and subscriptions there
-- may be. Returns how many there would be; what is too many is not noted.
local function take(keys, args)
  local connections, subscriptions, now = tonumber(args[2]), tonumber(args[3]), now_ms()
  local found = redis.call('HGETALL', keys[1])
  for position = 1, #found, 2 do
    local theirs, those, ends = string.match(found[position + 1], '^(%d+) (%d+) (%d+)$')
    if tonumber(ends) < now then
      redis.call('HDEL', keys[1], found[position])
    elseif found[position] ~= args[1] then
      connections, subscriptions = connections + theirs, subscriptions + those
    end
  end
  if connections <= tonumber(args[5]) and subscriptions <= tonumber(args[6]) then
    note(keys[1], args[1], args[2], args[3], args[4])
  end
  return { connections, subscriptions }
end

redis.register_function('rillbase_sockets_1_take', take)
redis.register_function('rillbase_sockets_1_tell', tell)
