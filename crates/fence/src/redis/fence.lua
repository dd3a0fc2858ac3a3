-- Check, advance and write in one step. The thing is a hash: `value` beside what the fence keeps.
local guard, resource, takes = ARGV[1], ARGV[2], ARGV[3]
local permit, token, advances = ARGV[4], ARGV[5], ARGV[6]
local policy, step, act, value = ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local thing = KEYS[1]

local rejected, highest, writes = look(thing, guard, resource, takes, permit, token)
if rejected then
    return rejected
end

if act ~= 'claim' then
    if step ~= '' and tonumber(step) <= writes then
        return {'already_applied'}
    end
    if step ~= '' and tonumber(step) > writes + 1 then
        return {'out_of_order', string.format('%.0f', writes + 1)}
    end
    if policy == 'strict' and writes > 0 then
        return {'stale', token}
    end
end

if advances == '1' then
    if act ~= 'claim' then
        keep(thing, guard, permit, token, writes + 1)
    elseif tonumber(token) > highest then
        keep(thing, guard, permit, token, 0)
    end
end
if act == 'put' then
    redis.call('HSET', thing, 'value', value)
elseif act == 'append' then
    redis.call('HSET', thing, 'value', (redis.call('HGET', thing, 'value') or '') .. value)
elseif act == 'delete' then
    redis.call('HDEL', thing, 'value')
end
return {'admitted'}
