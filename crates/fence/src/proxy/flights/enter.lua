-- Raises the maximum and notes a request in flight, in one step. The fence is the hash of fence.lua; all notes are
-- fields of one hash, each a JSON object. Tokens stay text: as doubles they compare exactly below 2^53.
local fence, notes = KEYS[1], KEYS[2]
local guard, resource, takes = ARGV[1], ARGV[2], ARGV[3]
local permit, token, flight, name = ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local token_field, writes_field = 'fence:token:' .. permit, 'fence:writes:' .. permit

local kept = redis.call('HMGET', fence, 'fence:guard', token_field)
local kept_guard = kept[1] or guard
if resource ~= kept_guard or resource ~= guard or takes ~= '1' then
    return {'wrong_scope', kept_guard}
end
local presented, highest = tonumber(token), tonumber(kept[2] or '0')
if not highest or highest ~= highest or highest < 0 or highest >= 9007199254740992 then
    return {'corrupt', tostring(kept[2])}
end
if presented < highest then
    return {'stale', kept[2]}
end
if presented > highest then
    redis.call('HSET', fence, 'fence:guard', guard, token_field, token, writes_field, '0')
end

for _, text in ipairs(redis.call('HVALS', notes)) do
    local note = cjson.decode(text)
    if note.name == name and note.permit == permit and tonumber(note.token) < presented then
        return {'behind'}
    end
end
local note = {name = name, permit = permit, token = token, beat = '0'}
redis.call('HSET', notes, flight, cjson.encode(note))
return {'admitted'}
