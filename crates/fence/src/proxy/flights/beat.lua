-- Moves the beat of the notes that are still there.
for _, flight in ipairs(ARGV) do
    local text = redis.call('HGET', KEYS[1], flight)
    if text then
        local note = cjson.decode(text)
        note.beat = string.format('%.0f', tonumber(note.beat) + 1)
        redis.call('HSET', KEYS[1], flight, cjson.encode(note))
    end
end
