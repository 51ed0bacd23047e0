-- Stub resolvers of common operating systems: they ask for A and AAAA, wait a little, ask again
-- with growing patience, try another search suffix when a name does not exist, and leave a server
-- that fails alone for a while.
--
--   throng run --script scenarios/scripts/stub.lua -s 127.0.0.1 -c 200 -l 30s --timeout 10s

local NAMES = 1000
local ZONE = "example.test"
local SUFFIXES = { "", ".corp." .. ZONE }
local PATIENCE_SECONDS = { 1, 2, 4 }
local THINK_SECONDS = 5

-- One name and type, with retries; returns the response or nil.
local function ask(c, name, type)
  for attempt, seconds in ipairs(PATIENCE_SECONDS) do
    if attempt > 1 then count("retries") end
    local response = c:query(name, type, { timeout = seconds })
    if response.lost == "connection" or response.lost == "not sent" then
      c:sleep(0.1)
    elseif response.rcode == "SERVFAIL" or response.rcode == "REFUSED" then
      count("failures of the server")
      c:sleep(seconds)
    elseif response.rcode then
      return response
    end
  end
  count("given up")
  return nil
end

local function look_up(c, host)
  for _, suffix in ipairs(SUFFIXES) do
    local a = ask(c, host .. suffix, "A")
    local aaaa = ask(c, host .. suffix, "AAAA")
    local found = a and a.answers > 0 or aaaa and aaaa.answers > 0
    if found then return true end
    if a and a.truncated or aaaa and aaaa.truncated then count("truncated") end
  end
  return false
end

function client(c)
  c:sleep(c:random() * THINK_SECONDS)
  while true do
    local begun = c:now()
    local host = "host" .. c:random(NAMES) .. "." .. ZONE
    count(look_up(c, host) and "found" or "not found")
    observe("lookup ms", (c:now() - begun) * 1000)
    c:sleep(c:exponential(THINK_SECONDS))
  end
end
