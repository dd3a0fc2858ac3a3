-- What a fence keeps in its hash. Every script that asks a fence begins with this.
-- Tokens stay text: Lua would print large numbers rounded. As doubles they compare exactly below 2^53.
local function fields(permit)
    return 'fence:token:' .. permit, 'fence:writes:' .. permit
end

-- Why this token is rejected, or nil; the highest token as a number, and the writes of this token so far.
local function look(thing, guard, resource, takes, permit, token)
    local kept = redis.call('HMGET', thing, 'fence:guard', fields(permit))
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
        return nil, highest, 0
    end
    local writes = tonumber(kept[3] or '0')
    if not writes then
        return {'corrupt', kept[3]}
    end
    return nil, highest, writes
end

local function keep(thing, guard, permit, token, writes)
    local token_field, writes_field = fields(permit)
    redis.call('HSET', thing, 'fence:guard', guard, token_field, token, writes_field,
        string.format('%.0f', writes))
end

