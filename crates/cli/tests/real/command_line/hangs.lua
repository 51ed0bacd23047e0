local t = {}
for i = 1, 2e6 do t[i] = i end
local insert = table.insert
function client(c)
  while c.index ~= 1 do c:query('test-record-1.throng.test') end
  c:sleep(0.5)
  while true do insert(t, 1, 0) end
end
