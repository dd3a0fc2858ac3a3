-- All notes, four words each.
local words = {}
local all = redis.call('HGETALL', KEYS[1])
for n = 1, #all, 2 do
    local note = cjson.decode(all[n + 1])
    for _, word in ipairs({all[n], note.name, note.token, note.beat}) do
        words[#words + 1] = word
    end
end
return words
