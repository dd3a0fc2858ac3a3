-- Raises the maximum and notes a request in flight, in one step. All notes are fields of one hash, each a JSON object.
local fence, notes = KEYS[1], KEYS[2]
local guard, resource, takes = ARGV[1], ARGV[2], ARGV[3]
local permit, token, flight, name = ARGV[4], ARGV[5], ARGV[6], ARGV[7]

local rejected, highest = look(fence, guard, resource, takes, permit, token)
if rejected then
    return rejected
end
local presented = tonumber(token)
if presented > highest then
    keep(fence, guard, permit, token, 0)
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
