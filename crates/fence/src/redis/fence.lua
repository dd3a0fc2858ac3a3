-- Check, advance and write in one step. The thing is a hash: `value` beside what the fence keeps.
-- Tokens stay text: Lua would print large numbers rounded. As doubles they compare exactly below 2^53.
local guard, resource, takes = ARGV[1], ARGV[2], ARGV[3]
local permit, token, advances = ARGV[4], ARGV[5], ARGV[6]
local policy, step, act, value = ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local thing, token_field, writes_field = KEYS[1], 'fence:token:' .. permit, 'fence:writes:' .. permit

local kept = redis.call('HMGET', thing, 'fence:guard', token_field, writes_field)
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
local writes = 0
if presented == highest then
    writes = tonumber(kept[3] or '0')
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
        redis.call('HSET', thing, 'fence:guard', guard, token_field, token, writes_field,
            string.format('%.0f', writes + 1))
    elseif presented > highest then
        redis.call('HSET', thing, 'fence:guard', guard, token_field, token, writes_field, '0')
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
