#!lua name=rillbase_events_4

-- Everybody who appends to the write streams does it here, so what is refused is refused to all.
-- Time is Valkey's own. Names: P = {rillbase}:events:<installation epoch>, for PostgreSQL's writes, or
-- {rillbase}:events:<installation epoch>n1, for those of the storage node
--   P:state                    hash: random, token, epochs, complete, cursor, retention_ms,
--                              retention_bytes
--   P:<grid epoch>:<partition>          stream
--   P:<grid epoch>:<partition>:count    hash: entries and bytes ever added, bytes trimmed
--   P:<grid epoch>:<partition>:trim     list of "id bytes": how many bytes were added up to an id

local MAX_AGE_US = 5000000
-- A stamp from the future is one of a clock that has been set back since: it proves nothing.
local MAX_AHEAD_US = 1000000
-- A call trims about this many bytes, and leaves the rest to the next one, because the server does
-- nothing else meanwhile. It is more than a call adds, unless a single entry is larger.
local TRIMMED_AT_ONCE = 2 * 1024 * 1024
-- A full stream has at least this many checkpoints, so that small limits are obeyed closely, too.
local CHECKPOINTS = 32
-- Where an after-image says whose it is (docs/formats/after-image.md).
local TENANT_FROM, TENANT_TO = 11, 26

local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local function read_state(prefix)
  local found = redis.call('HMGET', prefix .. ':state',
    'random', 'token', 'epochs', 'complete', 'cursor', 'retention_ms', 'retention_bytes')
  return {
    random = found[1], token = tonumber(found[2]), epochs = found[3], complete = found[4],
    cursor = found[5], retention_ms = tonumber(found[6]), retention_bytes = tonumber(found[7]),
  }
end

-- The reason for which a caller may not append, or nil.
local function refusal(state, stamp, token, now)
  if not state.random then
    return 'absent'
  end
  if token ~= '' and tonumber(token) < state.token then
    return 'outrun'
  end
  if now - stamp > MAX_AGE_US then
    return 'late'
  end
  if stamp - now > MAX_AHEAD_US then
    return 'ahead'
  end
  return nil
end

local function learn_token(prefix, state, token)
  if token ~= '' and tonumber(token) > state.token then
    redis.call('HSET', prefix .. ':state', 'token', token)
  end
end

-- "1:2 1001:4@<tenant>" as a list of {name of the epoch's streams, number of them, whose it is as
-- 16 bytes in hex: empty where all tenants share it}.
local function grid(prefix, state)
  local epochs = {}
  for number, partitions, tenant in string.gmatch(state.epochs, '(%d+):(%d+)@?(%x*)') do
    epochs[#epochs + 1] = { prefix .. ':' .. number .. ':', tonumber(partitions), tenant }
  end
  return epochs
end

local function hex(bytes)
  return (string.gsub(bytes, '.', function(byte)
    return string.format('%02x', string.byte(byte))
  end))
end

-- Those epochs that get something of what is appended: all that are shared, and those of tenants
-- whose entries are in it, with these tenants as entries have them.
local function concerned(prefix, state, args)
  local all, whose, found = grid(prefix, state), {}, {}
  if string.find(state.epochs, '@', 1, true) then
    local position = 3
    while position <= #args do
      local last = position + 1 + 2 * tonumber(args[position + 1])
      for entry = position + 3, last, 2 do
        whose[string.sub(args[entry], TENANT_FROM, TENANT_TO)] = true
      end
      position = last + 1
    end
  end
  local names = {}
  for tenant in pairs(whose) do
    names[hex(tenant)] = tenant
  end
  for _, epoch in ipairs(all) do
    if epoch[3] == '' or names[epoch[3]] then
      found[#found + 1] = { epoch[1], epoch[2], names[epoch[3]] }
    end
  end
  return found
end

-- Drops what is older than the retention, and the oldest while there are too many bytes.
local function trim(stream, state, now)
  local oldest_ms = math.floor(now / 1000) - state.retention_ms
  redis.call('XTRIM', stream, 'MINID', '~', string.format('%.0f', oldest_ms))
  local counted = redis.call('HMGET', stream .. ':count', 'bytes', 'trimmed')
  local bytes, trimmed = tonumber(counted[1] or 0), tonumber(counted[2] or 0)
  local enough = trimmed + TRIMMED_AT_ONCE
  while trimmed < enough do
    local checkpoint = redis.call('LINDEX', stream .. ':trim', 0)
    if not checkpoint then
      return
    end
    local ms, number, upto = string.match(checkpoint, '^(%d+)-(%d+) (%d+)$')
    if tonumber(ms) >= oldest_ms and bytes - trimmed <= state.retention_bytes then
      return
    end
    redis.call('XTRIM', stream, 'MINID', ms .. '-' .. string.format('%.0f', number + 1))
    redis.call('LPOP', stream .. ':trim')
    redis.call('HSET', stream .. ':count', 'trimmed', upto)
    trimmed = tonumber(upto)
  end
end

-- Counts what was added, and notes a checkpoint for each step of trimming.
local function added(stream, state, entries, size, last_id)
  local count = stream .. ':count'
  redis.call('HINCRBY', count, 'entries', entries)
  local bytes = redis.call('HINCRBY', count, 'bytes', size)
  local noted = tonumber(redis.call('HGET', count, 'noted') or 0)
  if bytes - noted >= math.min(state.retention_bytes / CHECKPOINTS, TRIMMED_AT_ONCE) then
    redis.call('HSET', count, 'noted', bytes)
    redis.call('RPUSH', stream .. ':trim', last_id .. ' ' .. string.format('%.0f', bytes))
  end
end

-- The partitions that a batch touches, each once, as 16-bit numbers in rising order.
local function partitions_of(hashes, count)
  local touched = {}
  for position = 1, #hashes, 4 do
    touched[struct.unpack('>I4', hashes, position) % count] = true
  end
  local packed = {}
  for partition = 0, count - 1 do
    if touched[partition] then
      packed[#packed + 1] = struct.pack('>I2', partition)
    end
  end
  return table.concat(packed)
end

-- args: stamp, token or '', then groups: hashes of a batch or '', number of entries, and for each
-- its key's hash and its bytes.
local function append(keys, args)
  local prefix, now = keys[1], now_us()
  local state = read_state(prefix)
  local refused = refusal(state, tonumber(args[1]), args[2], now)
  if refused then
    return { refused, now }
  end
  learn_token(prefix, state, args[2])
  for _, epoch in ipairs(concerned(prefix, state, args)) do
    -- By partition: entries, their bytes, the id of the last, the stream, how many it was given before.
    local tally, position = {}, 3
    while position <= #args do
      local hashes, entries = args[position], tonumber(args[position + 1])
      local parts = hashes ~= '' and partitions_of(hashes, epoch[2])
      position = position + 2
      for _ = 1, entries do
        local entry, partition = args[position + 1], args[position] % epoch[2]
        if not epoch[3] or string.sub(entry, TENANT_FROM, TENANT_TO) == epoch[3] then
          local seen = tally[partition]
          if not seen then
            seen = { 0, 0, nil, epoch[1] .. partition }
            tally[partition] = seen
          end
          local stream = seen[4]
          if parts then
            seen[5] = seen[5] or tonumber(redis.call('HGET', stream .. ':count', 'entries') or 0)
            local number = string.format('%.0f', seen[5] + seen[1] + 1)
            seen[3] = redis.call('XADD', stream, '*', 'e', entry, 'p', parts, 'n', number)
          else
            seen[3] = redis.call('XADD', stream, '*', 'e', entry)
          end
          seen[1], seen[2] = seen[1] + 1, seen[2] + #entry
        end
        position = position + 2
      end
    end
    for _, seen in pairs(tally) do
      local stream = seen[4]
      added(stream, state, seen[1], seen[2], seen[3])
      trim(stream, state, now)
    end
  end
  return { 'ok', now }
end

local function run_id()
  return string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
end

-- args: stamp, token, run id, random, the incarnation's name, the tick without head and stamps, and
-- where the writer of the streams continues after this tick, or ''.
local function tick(keys, args)
  local prefix, now = keys[1], now_us()
  local state = read_state(prefix)
  local refused = refusal(state, tonumber(args[1]), args[2], now)
  if not refused and (args[3] ~= run_id() or args[4] ~= state.random) then
    refused = 'reborn'
  end
  if refused then
    return { refused, now }
  end
  learn_token(prefix, state, args[2])
  if state.complete ~= args[5] then
    redis.call('HSET', prefix .. ':state', 'complete', args[5])
  end
  if args[7] ~= '' then
    redis.call('HSET', prefix .. ':state', 'cursor', args[7])
  end
  for _, epoch in ipairs(grid(prefix, state)) do
    for partition = 0, epoch[2] - 1 do
      local stream = epoch[1] .. partition
      local count = tonumber(redis.call('HGET', stream .. ':count', 'entries') or 0) + 1
      local entry = '\1\4' .. struct.pack('>I8I8', now, count) .. args[6]
      local id = redis.call('XADD', stream, '*', 'e', entry)
      added(stream, state, 1, #entry, id)
      trim(stream, state, now)
    end
  end
  return { 'ok', now }
end

-- What a relay must know before it does anything.
local function look(keys, _)
  local state = read_state(keys[1])
  return {
    now_us(), run_id(), state.random or '', state.complete or '', state.epochs or '',
    state.cursor or '',
  }
end

-- args: token, a random value, epochs, retention in ms and in bytes. Only a relay calls this, so
-- until one does, nothing can be appended to a server that was emptied.
local function install(keys, args)
  local prefix, now = keys[1], now_us()
  local state = read_state(prefix)
  if state.token and tonumber(args[1]) < state.token then
    return { 'outrun', now }
  end
  local kept = {}
  for number in string.gmatch(args[3], '(%d+):') do
    kept[number] = true
  end
  for number, partitions in string.gmatch(state.epochs or '', '(%d+):(%d+)') do
    for partition = 0, kept[number] and -1 or partitions - 1 do
      local stream = prefix .. ':' .. number .. ':' .. partition
      redis.call('UNLINK', stream, stream .. ':count', stream .. ':trim')
    end
  end
  redis.call('HSETNX', prefix .. ':state', 'random', args[2])
  redis.call('HSET', prefix .. ':state', 'token', args[1], 'epochs', args[3],
    'retention_ms', args[4], 'retention_bytes', args[5])
  return { 'ok', now }
end

-- args: those of install, and the random value of the streams that are replaced by empty ones, '' if
-- there are none. The new streams count from the time: whoever has counted entries of others misses
-- some.
local function replace(keys, args)
  local prefix, now = keys[1], now_us()
  local state = read_state(prefix)
  if (state.random or '') ~= args[6] then
    return { 'reborn', now }
  end
  if state.token and tonumber(args[1]) < state.token then
    return { 'outrun', now }
  end
  for _, epoch in ipairs(grid(prefix, { epochs = state.epochs or '' })) do
    for partition = 0, epoch[2] - 1 do
      local stream = epoch[1] .. partition
      redis.call('UNLINK', stream, stream .. ':count', stream .. ':trim')
    end
  end
  redis.call('HDEL', prefix .. ':state', 'random', 'complete', 'cursor', 'epochs')
  local installed = install(keys, args)
  for _, epoch in ipairs(grid(prefix, { epochs = args[3] })) do
    for partition = 0, epoch[2] - 1 do
      redis.call('HSET', epoch[1] .. partition .. ':count', 'entries', string.format('%.0f', now))
    end
  end
  return installed
end

-- Works while the server refuses to take more memory, so that it gets some back.
local function trim_all(keys, _)
  local prefix, now = keys[1], now_us()
  local state = read_state(prefix)
  if state.random then
    for _, epoch in ipairs(grid(prefix, state)) do
      for partition = 0, epoch[2] - 1 do
        trim(epoch[1] .. partition, state, now)
      end
    end
  end
  return { 'ok', now }
end

redis.register_function('rillbase_events_4_append', append)
redis.register_function('rillbase_events_4_tick', tick)
redis.register_function('rillbase_events_4_install', install)
redis.register_function('rillbase_events_4_replace', replace)
redis.register_function {
  function_name = 'rillbase_events_4_look', callback = look, flags = { 'no-writes' },
}
redis.register_function {
  function_name = 'rillbase_events_4_trim', callback = trim_all, flags = { 'allow-oom' },
}
