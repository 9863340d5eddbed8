#!lua name=rillbase_grid_2

-- What nodes, app servers and the grid's supervisor do to streams and registry, each step whole.
-- Time is Valkey's own. Names: P = {rillbase}:events:<installation epoch>, G = P:<grid epoch>
--   P:hubs               sorted set: app server → end of its lease in ms
--   P:strangers          set: app servers that registered queries before they said that they live
--   P:activation         the highest activation number given
--   G:lease:<node>       hash: holder, token, until (ms), report (figures in JSON)
--   G:alive:<holder>     "beats steps" of a process that was started to be a node
--   G:requests:<qp>      stream: e a request, n its number
--   G:log:<qp>           stream: e a notification, n its number
--   <stream>:count       hash: entries and bytes ever added, bytes trimmed
--   <stream>:trim        list of "id bytes": how many bytes were added up to an id
--   G:registry:<qp>      hash: query → definition
--   G:holders:<qp>       hash: query → number of app servers that hold it
--   G:held:<qp>:<hub>    set: queries that an app server holds
--   G:idle:<qp>          sorted set: query → since when (ms) nobody holds it

local RETENTION_MS = 60000
-- For how long a sign of life is kept.
local ALIVE_MS = 60000
local RETENTION_BYTES = 256 * 1024 * 1024
-- A call trims about this many bytes, and leaves the rest to the next one, because the server does
-- nothing else meanwhile. It is more than a call adds, unless a single entry is larger.
local TRIMMED_AT_ONCE = 2 * 1024 * 1024
-- Requests are trimmed each time that so many have come.
local TRIM_EVERY = 64
-- Where a request or a definition has its activation number, counted from 1.
local ACTIVATION = 19
-- A request goes on behind its query, which is as long as a definition, with flags: it is a renewal.
local RENEWAL = 2

local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local function now_ms()
  return math.floor(now_us() / 1000)
end

-- Numbers beyond 10^14 would be written with an exponent.
local function text(number)
  return string.format('%.0f', number)
end

-- Drops what is older than the retention, and the oldest while there are too many bytes.
local function trim(stream, bytes, now)
  local oldest_ms = now - RETENTION_MS
  redis.call('XTRIM', stream, 'MINID', '~', text(oldest_ms))
  local trimmed = tonumber(redis.call('HGET', stream .. ':count', 'trimmed') or 0)
  local enough = trimmed + TRIMMED_AT_ONCE
  while trimmed < enough do
    local checkpoint = redis.call('LINDEX', stream .. ':trim', 0)
    if not checkpoint then
      return
    end
    local ms, number, upto = string.match(checkpoint, '^(%d+)-(%d+) (%d+)$')
    if tonumber(ms) >= oldest_ms and bytes - trimmed <= RETENTION_BYTES then
      return
    end
    redis.call('XTRIM', stream, 'MINID', ms .. '-' .. text(number + 1))
    redis.call('LPOP', stream .. ':trim')
    redis.call('HSET', stream .. ':count', 'trimmed', upto)
    trimmed = tonumber(upto)
  end
end

-- Counts what was added, and notes a checkpoint for each step of trimming. Returns all bytes ever
-- added.
local function added(stream, size, last_id)
  local bytes = redis.call('HINCRBY', stream .. ':count', 'bytes', size)
  local noted = tonumber(redis.call('HGET', stream .. ':count', 'noted') or 0)
  if bytes - noted >= TRIMMED_AT_ONCE then
    redis.call('HSET', stream .. ':count', 'noted', bytes)
    redis.call('RPUSH', stream .. ':trim', last_id .. ' ' .. text(bytes))
  end
  return bytes
end

-- args: grid epoch, node, holder, for how many ms, a report. With 0 ms the holder lets go.
-- A token is kept for as long as the same holder renews it, and never given twice: the time of an
-- emptied server goes on.
local function lease(keys, args)
  local now = now_us()
  local now_ms = math.floor(now / 1000)
  local key = keys[1] .. ':' .. args[1] .. ':lease:' .. args[2]
  local found = redis.call('HMGET', key, 'holder', 'token', 'until')
  local token, ends = tonumber(found[2] or 0), tonumber(found[3] or 0)
  if found[1] ~= args[3] then
    -- Who lets go of what is not its own any more takes it from nobody.
    if args[4] == '0' or found[1] and ends > now_ms then
      return { 'held', token, now }
    end
    token = math.max(token + 1, now)
  end
  redis.call('HSET', key, 'holder', args[3], 'token', text(token),
    'until', text(now_ms + tonumber(args[4])), 'report', args[5])
  return { 'ok', token, now }
end

-- args: grid epoch, holder, a sign of life. Works while the server refuses to take more memory.
local function beat(keys, args)
  redis.call('SET', keys[1] .. ':' .. args[1] .. ':alive:' .. args[2], args[3], 'PX', ALIVE_MS)
  return 'ok'
end

-- args: grid epoch, node, token, query partition, notifications.
local function append(keys, args)
  local now, epoch = now_us(), keys[1] .. ':' .. args[1]
  if redis.call('HGET', epoch .. ':lease:' .. args[2], 'token') ~= args[3] then
    return { 'fenced', now }
  end
  local log, size, id = epoch .. ':log:' .. args[4], 0, nil
  local number = redis.call('HINCRBY', log .. ':count', 'entries', #args - 4) - (#args - 4)
  for position = 5, #args do
    number = number + 1
    id = redis.call('XADD', log, '*', 'e', args[position], 'n', number)
    size = size + #args[position]
  end
  if id then
    trim(log, added(log, size, id), math.floor(now / 1000))
  end
  return { 'ok', now }
end

-- Appends requests; returns the ids of their entries.
local function send_requests(epoch, qp, several)
  if #several == 0 then
    return {}
  end
  local requests = epoch .. ':requests:' .. qp
  local last = redis.call('HINCRBY', requests .. ':count', 'entries', #several)
  local first, size, ids = last - #several, 0, {}
  for position, request in ipairs(several) do
    ids[position] = redis.call('XADD', requests, '*', 'e', request, 'n', first + position)
    size = size + #request
  end
  local bytes = added(requests, size, ids[#ids])
  if math.floor(last / TRIM_EVERY) > math.floor(first / TRIM_EVERY) then
    trim(requests, bytes, now_ms())
  end
  return ids
end

local function activation_of(definition)
  return string.sub(definition, ACTIVATION, ACTIVATION + 7)
end

local function with_activation(bytes, activation)
  return string.sub(bytes, 1, ACTIVATION - 1) .. activation
    .. string.sub(bytes, ACTIVATION + 8)
end

-- Gives activation numbers one after the other. Like tokens they rise through the loss of
-- everything.
local function activations(prefix)
  local last
  return {
    next = function()
      last = math.max((last or tonumber(redis.call('GET', prefix .. ':activation') or 0)) + 1,
        now_us())
      return struct.pack('>I8', last)
    end,
    keep = function()
      if last then
        redis.call('SET', prefix .. ':activation', text(last))
      end
    end,
  }
end

local function is_renewal(definition, request)
  return bit.band(string.byte(request, #definition + 1) or 0, RENEWAL) > 0
end

local function hold(epoch, qp, hub, query)
  if redis.call('SADD', epoch .. ':held:' .. qp .. ':' .. hub, query) == 1 then
    redis.call('HINCRBY', epoch .. ':holders:' .. qp, query, 1)
    redis.call('ZREM', epoch .. ':idle:' .. qp, query)
  end
end

-- Names the life of the event layer in which streams go on: another run, or another random value of
-- a relay, may have lost entries.
local function life(prefix)
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  return run .. ' ' .. (redis.call('HGET', prefix .. ':state', 'random') or '')
end

-- args: grid epoch, query partition, app server, the life in which the ends of the streams were
-- noted, then query, definition and request of each. Places of another life mean nothing.
-- Returns activation numbers and ids of requests, in this order. A renewal only brings rows: it
-- holds nothing, and a query that has ended stays so, of which activation and id are zero.
local function register_all(keys, args)
  local prefix, qp, hub = keys[1], args[2], args[3]
  local epoch = prefix .. ':' .. args[1]
  local registry = epoch .. ':registry:' .. qp
  if args[4] ~= life(prefix) then
    return redis.error_reply('REBORN the event layer has begun another life')
  end
  -- An app server that nobody has heard of has a lease that ends now.
  if redis.call('ZADD', prefix .. ':hubs', 'NX', text(now_ms()), hub) == 1 then
    redis.call('SADD', prefix .. ':strangers', hub)
  end
  local numbers, requests, given, places = activations(prefix), {}, {}, {}
  for position = 5, #args, 3 do
    local query, definition, request = args[position], args[position + 1], args[position + 2]
    local known, renewal = redis.call('HGET', registry, query), is_renewal(definition, request)
    if known or not renewal then
      local activation = known and activation_of(known) or numbers.next()
      redis.call('HSET', registry, query, with_activation(definition, activation))
      if not renewal then
        hold(epoch, qp, hub, query)
      end
      given[#given + 1] = struct.unpack('>I8', activation)
      requests[#requests + 1] = with_activation(request, activation)
      places[#given] = #requests
    else
      given[#given + 1] = 0
      places[#given] = 0
    end
  end
  numbers.keep()
  local ids, found = send_requests(epoch, qp, requests), {}
  for position = 1, #given do
    found[position] = ids[places[position]] or '0-0'
  end
  return { given, found }
end

-- args: grid epoch, query partition, query, an answer to what its sort node asked. It names who asked:
-- nobody else takes it.
local function answer(keys, args)
  local epoch, qp = keys[1] .. ':' .. args[1], args[2]
  if redis.call('HEXISTS', epoch .. ':registry:' .. qp, args[3]) == 1 then
    send_requests(epoch, qp, { args[4] })
  end
  return 'ok'
end

-- Takes one holder from a query; returns whether it has none left.
local function release(epoch, qp, query)
  if redis.call('HINCRBY', epoch .. ':holders:' .. qp, query, -1) > 0 then
    return false
  end
  redis.call('HDEL', epoch .. ':holders:' .. qp, query)
  return true
end

-- args: grid epoch, query partition, app server, queries.
local function unregister(keys, args)
  local epoch, qp, now = keys[1] .. ':' .. args[1], args[2], text(now_ms())
  for position = 4, #args do
    local query = args[position]
    if redis.call('SREM', epoch .. ':held:' .. qp .. ':' .. args[3], query) == 1
      and release(epoch, qp, query) then
      redis.call('ZADD', epoch .. ':idle:' .. qp, now, query)
    end
  end
  return 'ok'
end

-- args: app server, for how many ms, how long queries are held after that. Says `new` to one whose
-- queries may not be held any more, so that it registers them again.
local function hub_alive(keys, args)
  local hubs = keys[1] .. ':hubs'
  local known = tonumber(redis.call('ZSCORE', hubs, args[1]) or 0)
  if redis.call('SREM', keys[1] .. ':strangers', args[1]) == 1 then
    known = 0
  end
  redis.call('ZADD', hubs, text(now_ms() + tonumber(args[2])), args[1])
  return { known + tonumber(args[3]) > now_ms() and 'ok' or 'new', now_us() }
end

-- Removes queries from the registry and notifies the nodes.
local function forget(epoch, qp, queries)
  local registry, requests = epoch .. ':registry:' .. qp, {}
  for _, query in ipairs(queries) do
    local definition = redis.call('HGET', registry, query)
    if definition then
      redis.call('HDEL', registry, query)
      requests[#requests + 1] = '\1\2' .. query .. activation_of(definition)
    end
  end
  send_requests(epoch, qp, requests)
end

-- Lets go of what a dead app server holds, up to a number of queries; returns how many those were.
local function release_all(epoch, partitions, hub, most)
  local released_count = 0
  for qp = 0, partitions - 1 do
    local held, released = epoch .. ':held:' .. qp .. ':' .. hub, {}
    for _, query in ipairs(redis.call('SPOP', held, most - released_count)) do
      released_count = released_count + 1
      if release(epoch, qp, query) then
        released[#released + 1] = query
      end
    end
    forget(epoch, qp, released)
  end
  return released_count
end

-- args: grid epoch, number of query partitions, time to live in ms, at most how many queries.
-- Returns how many it has looked at: none are left when that is 0.
local function expire(keys, args)
  local prefix, epoch = keys[1], keys[1] .. ':' .. args[1]
  local partitions, most = tonumber(args[2]), tonumber(args[4])
  local before, checked = text(now_ms() - tonumber(args[3])), 0
  -- Other grid epochs have to let go of what it holds, too, before it is forgotten.
  local long_before = now_ms() - 3 * tonumber(args[3])
  for _, hub in ipairs(redis.call('ZRANGEBYSCORE', prefix .. ':hubs', '-inf', before)) do
    local released_count = release_all(epoch, partitions, hub, most - checked)
    checked = checked + released_count
    if released_count == 0 and checked < most
      and tonumber(redis.call('ZSCORE', prefix .. ':hubs', hub)) <= long_before then
      redis.call('ZREM', prefix .. ':hubs', hub)
    end
  end
  for qp = 0, partitions - 1 do
    local idle = epoch .. ':idle:' .. qp
    local queries = redis.call('ZRANGEBYSCORE', idle, '-inf', before, 'LIMIT', 0, most - checked)
    if #queries > 0 then
      redis.call('ZREM', idle, unpack(queries))
      forget(epoch, qp, queries)
      checked = checked + #queries
    end
  end
  return checked
end

local function end_of(stream)
  local found = redis.pcall('XINFO', 'STREAM', stream)
  if found.err then
    return '0-0'
  end
  for position = 1, #found, 2 do
    if found[position] == 'last-generated-id' then
      return found[position + 1]
    end
  end
end

-- args: grid epoch, number of write partitions, query partition. Returns the ends of the log and
-- of the write streams, the time, and the life in which these are.
local function ends(keys, args)
  local epoch, positions = keys[1] .. ':' .. args[1] .. ':', {}
  for partition = 0, tonumber(args[2]) - 1 do
    positions[#positions + 1] = end_of(epoch .. partition)
  end
  return { end_of(epoch .. 'log:' .. args[3]), positions, now_us(), life(keys[1]) }
end

local function entries_of(stream)
  return tonumber(redis.call('HGET', stream .. ':count', 'entries') or 0)
end

-- args: grid epoch, write partition, query partition. Where a node's reading begins: end and number
-- of entries of its write stream, of the request stream and of the log.
local function begin(keys, args)
  local epoch = keys[1] .. ':' .. args[1] .. ':'
  local found = {}
  for position, stream in ipairs({ args[2], 'requests:' .. args[3], 'log:' .. args[3] }) do
    found[2 * position - 1] = end_of(epoch .. stream)
    found[2 * position] = entries_of(epoch .. stream)
  end
  return found
end

-- args: grid epoch, nodes. Returns for each its holder, token, end of the lease and report.
local function look(keys, args)
  local found = { now_us() }
  for position = 2, #args do
    found[position] = redis.call('HMGET', keys[1] .. ':' .. args[1] .. ':lease:' .. args[position],
      'holder', 'token', 'until', 'report')
  end
  return found
end

-- args: grid epoch, number of query partitions. Works while the server refuses to take more memory.
local function trim_all(keys, args)
  local epoch, now = keys[1] .. ':' .. args[1], now_ms()
  for qp = 0, tonumber(args[2]) - 1 do
    for _, kind in ipairs({ ':log:', ':requests:' }) do
      local stream = epoch .. kind .. qp
      trim(stream, tonumber(redis.call('HGET', stream .. ':count', 'bytes') or 0), now)
    end
  end
  return 'ok'
end

redis.register_function('rillbase_grid_2_lease', lease)
redis.register_function('rillbase_grid_2_append', append)
redis.register_function('rillbase_grid_2_register_all', register_all)
redis.register_function('rillbase_grid_2_answer', answer)
redis.register_function('rillbase_grid_2_unregister', unregister)
redis.register_function('rillbase_grid_2_hub_alive', hub_alive)
redis.register_function('rillbase_grid_2_expire', expire)
redis.register_function {
  function_name = 'rillbase_grid_2_ends', callback = ends, flags = { 'no-writes' },
}
redis.register_function {
  function_name = 'rillbase_grid_2_begin', callback = begin, flags = { 'no-writes' },
}
redis.register_function {
  function_name = 'rillbase_grid_2_look', callback = look, flags = { 'no-writes' },
}
redis.register_function {
  function_name = 'rillbase_grid_2_beat', callback = beat, flags = { 'allow-oom' },
}
redis.register_function {
  function_name = 'rillbase_grid_2_trim', callback = trim_all, flags = { 'allow-oom' },
}
