-- Water torture: a few clients behave, the others ask for random names under one zone, which no
-- cache can answer. What the well-behaved ones suffer is observed apart.
--
--   throng run --script scenarios/scripts/water-torture.lua -s 127.0.0.1 -c 100 -l 30s
--
-- Only against servers that are yours.

local VICTIM = "victim.test"
local GOOD_NAMES = 50
local GOOD_PART = 0.2
local PAUSE_SECONDS = 0.05
local LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"

local function random_label(c, length)
  local letters = {}
  for place = 1, length do
    local letter = c:random(#LETTERS)
    letters[place] = LETTERS:sub(letter, letter)
  end
  return table.concat(letters)
end

local function attack(c)
  while true do
    local response = c:query(random_label(c, c:random(8, 16)) .. "." .. VICTIM, "A")
    count(response.rcode and "attack: " .. response.rcode or "attack: no response")
    c:sleep(c:exponential(PAUSE_SECONDS))
  end
end

local function behave(c)
  while true do
    local response = c:query("www" .. c:random(GOOD_NAMES) .. "." .. VICTIM, "A")
    if response.lost then
      count("good clients: no response")
    else
      observe("good clients: latency ms", response.latency_ms)
    end
    c:sleep(c:exponential(1))
  end
end

function client(c)
  c:sleep(c:random())
  if c:random() < GOOD_PART then behave(c) else attack(c) end
end
