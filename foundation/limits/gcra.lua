-- One request against several limits: reads every backlog, and consumes from all buckets or none.
-- KEYS[i]: bucket i. ARGV[2i-1], ARGV[2i]: its increment and tolerance in microseconds.
-- Returns the backlogs found. foundation/limits/gcra.py decides by them; the comparison here is the same one.
-- Microseconds since 1970 are below 2^53, so that Lua's doubles hold them exactly.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local backlogs = {}
local allowed = true
for i = 1, #KEYS do
  local tolerance = tonumber(ARGV[2 * i])
  local arrival = tonumber(redis.call('GET', KEYS[i]) or 0)
  local backlog = math.min(math.max(arrival - now, 0), tolerance)
  backlogs[i] = backlog
  allowed = allowed and backlog + ARGV[2 * i - 1] <= tolerance
end
if allowed then
  for i = 1, #KEYS do
    local backlog = backlogs[i] + ARGV[2 * i - 1]
    if backlog > 0 then
      -- A bucket that has filled up again is as good as one never seen, so it may expire.
      redis.call('SET', KEYS[i], string.format('%.0f', now + backlog), 'PX', math.floor(backlog / 1000) + 1)
    end
  end
end
return backlogs
