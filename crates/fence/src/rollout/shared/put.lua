-- Puts a document if the one before is still there; an empty one before: if there is none.
local before = redis.call('GET', KEYS[1]) or ''
if before ~= ARGV[2] then
    return 0
end
redis.call('SET', KEYS[1], ARGV[1])
return 1
