local t = {}
for i = 1, 1e6 do t[i + 0.5] = i end
for i = 1, 1e6 do t[i + 0.5] = nil end
function client(c)
  while c.index ~= 1 do c:query('test-record-1.throng.test') end
  c:sleep(0.5)
  while not next(t) do end
end
