-- Browsers that load pages: a page is one host, then some of the third parties that it embeds, all
-- asked side by side over A, AAAA and HTTPS as browsers do, then time to read. What is known is
-- not asked again before its TTL is over.
--
--   throng run --script scenarios/scripts/browser.lua -s 127.0.0.1 -c 100 -l 60s
--
-- The names come from the run's names file if it has some, else from the zone below.

local ZONE = "example.test"
local SITES = 500
local THIRD_PARTIES = 60
local EMBEDDED_MAX = 12
local READING_SECONDS = 20
local TYPES = { "A", "AAAA", "HTTPS" }

-- Few sites have most of the visits: Zipf's law, as sums for a draw by halving.
local sums = {}

function setup()
  local sum = 0
  for rank = 1, SITES do
    sum = sum + 1 / rank
    sums[rank] = sum
  end
end

local function site(c)
  local wanted = c:random() * sums[SITES]
  local low, high = 1, SITES
  while low < high do
    local middle = math.floor((low + high) / 2)
    if sums[middle] < wanted then low = middle + 1 else high = middle end
  end
  if #questions > 1 then return questions[(low - 1) % #questions + 1].name end
  return "site" .. low .. "." .. ZONE
end

-- Asks for all addresses of some hosts at once; returns when all have ended.
local function resolve(c, cache, hosts)
  local asked = {}
  for _, host in ipairs(hosts) do
    for _, type in ipairs(TYPES) do
      local key = host .. "/" .. type
      if (cache[key] or -1) > c:now() then
        count("answered from the cache")
      else
        asked[c:send(host, type)] = key
      end
    end
  end
  local failed = 0
  while true do
    local response, tag = c:wait()
    if not response then return failed end
    if response.lost then failed = failed + 1 end
    if response.min_ttl then cache[asked[tag]] = c:now() + response.min_ttl end
  end
end

local function load_page(c, cache)
  local begun = c:now()
  local failed = resolve(c, cache, { site(c) })
  local embedded = {}
  for number = 1, c:random(0, EMBEDDED_MAX) do
    embedded[number] = "cdn" .. c:random(THIRD_PARTIES) .. "." .. ZONE
  end
  failed = failed + resolve(c, cache, embedded)
  count("pages")
  if failed > 0 then count("pages with a name that failed") end
  observe("page ms", (c:now() - begun) * 1000)
end

function client(c)
  local cache = {}
  -- Not all at the same time.
  c:sleep(c:random() * READING_SECONDS)
  while true do
    load_page(c, cache)
    c:sleep(c:exponential(READING_SECONDS))
  end
end
