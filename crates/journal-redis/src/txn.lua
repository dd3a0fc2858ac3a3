-- One step that Redis does as a whole: compare fields of the head; if all are as expected, write and remove; then read.
-- Written as the number of the question, then counts and values one after the other. Answers the number, '1' or '0',
-- then what was read.
local at = 0
local function take()
  at = at + 1
  return ARGV[at]
end
local question = take()
local done = '1'
for _ = 1, tonumber(take()) do
  local field, present, value = take(), take(), take()
  local found = redis.call('HGET', KEYS[1], field)
  if (present == '1' and found ~= value) or (present == '0' and found) then
    done = '0'
  end
end
for _ = 1, tonumber(take()) do
  local table, field, value = take(), take(), take()
  if done == '1' then
    redis.call('HSET', KEYS[tonumber(table)], field, value)
  end
end
for _ = 1, tonumber(take()) do
  local table, field = take(), take()
  if done == '1' then
    redis.call('HDEL', KEYS[tonumber(table)], field)
  end
end
local answer = { question, done }
for index = 1, tonumber(take()) do
  local table, field = take(), take()
  answer[index + 2] = redis.call('HGET', KEYS[tonumber(table)], field)
end
return answer
