-- The scheduler of the clients of one worker, and all that a script sees.
--
-- Called once with what the host offers; returns the script's environment, and functions for the
-- host: `begin` starts the script proper, `step` handles a batch of events. One call a batch, and
-- numbers only, because each crossing between Lua and the host costs as much as a few queries.
--
-- Events, each some numbers: kind * 2^22 + client (from 1), instant in ns, and for the end of a
-- query its tag, the latency in ns, and the facts: the lowest TTL + 1 (0 if there is none) * 2^17,
-- + 2^16 if truncated, + answers.
-- Actions: client * 8 + code; of a sleep also the instant at which it ends. A query has
-- template * 2^25 added, and the tags of queries count up from 1 in the order of the actions; the
-- instant of which it is comes before it, negative, unless it is that of the query before.

local host, limits = ...

local create, resume, yield = coroutine.create, coroutine.resume, coroutine.yield
local collect, error, next, pcall, xpcall = collectgarbage, error, next, pcall, xpcall
local rawget, rawset, select, setmetatable = rawget, rawset, select, setmetatable
local tonumber, tostring, type, unpack = tonumber, tostring, type, unpack
local concat, find, floor, log = table.concat, string.find, math.floor, math.log

local START, WAKE, TIMED_OUT, LOST, NOT_SENT, RESPONSE = 0, 1, 2, 3, 4, 16
local QUERY, SLEEP, CLOSE, FINISHED, FAILED = 0, 1, 2, 3, 4
local REASONS = { [TIMED_OUT] = "timeout", [LOST] = "connection", [NOT_SENT] = "not sent" }
local CLIENT_STEP, TEMPLATE_STEP = 8, 33554432
local KIND_STEP, TTL_STEP, TRUNCATED = 4194304, 131072, 65536
local SLEEP_NS_MIN = 1000
local RETURNED_MAX = 2000

-- What the host reads while Lua runs: the number of the turn, and whether it was stopped.
local watch = host.watch
local rcodes = host.rcodes
-- Actions of this batch.
local out, used = {}, 0
for i = 1, 1024 do out[i] = 0 end
-- The instant of the last query among them.
local told = -1
-- Of the client whose turn it is: its object, its number here, the instant of its event.
local current, slot, now = nil, 0, 0
local last_tag = 0

-- By client number.
local threads, objects, generators = {}, {}, {}
-- What a client waits for: false nothing, SLEEPING, ANY of its sends, or the tag of a query.
local SLEEPING, ANY = -1, 0
local waits = {}
-- When the query was asked that it waits for with patience, in ns.
local asked_at = {}
-- When its timer is due, in ns, or false.
local due = {}
-- Queries asked by send(): { open = { tag -> true or the response }, queue of tags that ended }.
local sends = {}

local env = {}
local client_function

-- Responses are soon garbage. While there is little else, a cycle has little to free and as much
-- to look at as ever, so they may gather to about 64 MB.
collect("setpause", limits.pause)

-- Errors of a caller of the functions below: they name its line.
local function wrong(message, level)
  error(message, (level or 1) + 2)
end

local function check_self(self, method)
  if self ~= current then
    if self == nil or type(self) ~= "table" then
      wrong("call it as c:" .. method .. "(...), with a colon", 2)
    end
    wrong("c belongs to another client, or no client runs yet", 2)
  end
end

local function check_number(value, what, level)
  if type(value) ~= "number" then
    wrong(what .. " must be a number, not " .. type(value), level or 2)
  end
  if value ~= value then wrong(what .. " is not a number (0/0)", level or 2) end
  if value - value ~= 0 then wrong(what .. " is infinite", level or 2) end
end

-- Random numbers: L'Ecuyer's MRG32k3a (Operations Research 47, 1999), made for doubles; each
-- client has a stream of its own, so that what one draws does not depend on the others.
local M1, M2 = 4294967087, 4294944443

local function uniform()
  local g = generators[slot]
  if not g then
    g = { host.seeds(slot) }
    generators[slot] = g
  end
  local p1 = (1403580 * g[2] - 810728 * g[1]) % M1
  if p1 < 0 then p1 = p1 + M1 end
  g[1], g[2], g[3] = g[2], g[3], p1
  local p2 = (527612 * g[6] - 1370589 * g[4]) % M2
  if p2 < 0 then p2 = p2 + M2 end
  g[4], g[5], g[6] = g[5], g[6], p2
  if p1 <= p2 then p1 = p1 + M1 end
  return (p1 - p2) * 2.328306549295728e-10
end

local function random(low, high)
  if low == nil then return uniform() end
  if high == nil then low, high = 1, low end
  check_number(low, "the lower bound")
  check_number(high, "the upper bound")
  if low > high then wrong("the interval from " .. low .. " to " .. high .. " is empty") end
  return floor(low + uniform() * (floor(high) - low + 1))
end

-- Templates of the names asked most recently, by type and options, then by name: two generations,
-- so that those asked again stay when the others go.
local young, old, young_names = {}, {}, 0

local function keep(kind, name, template)
  local names = young[kind]
  if not names then
    names = {}
    young[kind] = names
  end
  names[name] = template
  young_names = young_names + 1
  if young_names == limits.names then
    -- The host lets go of what is in `old`.
    host.age()
    old, young, young_names = young, {}, 0
  end
end

local function find_template(name, kind, level)
  local names = old[kind]
  local template = names and names[name]
  if template then
    host.keep(template)
    keep(kind, name, template)
    return template
  end
  if type(name) == "number" then
    if name < 1 or name > limits.questions or name % 1 ~= 0 then
      wrong("there is no question " .. name .. ", only 1 to " .. limits.questions, level)
    end
    return name - 1
  end
  if type(name) ~= "string" then
    wrong("a name must be a string, or the number of a question, not " .. type(name), level)
  end
  if type(kind) ~= "string" then
    wrong("a type must be a string such as \"AAAA\", not " .. type(kind), level)
  end
  local made, message = host.template(name, kind)
  if not made then wrong(message, level) end
  keep(kind, name, made)
  return made
end

-- Asks; returns the tag of the query, and the patience given.
local function ask(name, kind, options)
  local patience
  kind = kind or "A"
  if options then
    if type(options) == "table" then
      patience = options.timeout
      if patience ~= nil then
        check_number(patience, "timeout", 3)
        if patience <= 0 then wrong("timeout must be more than 0 seconds, not " .. patience, 2) end
      end
      options = options.flags
    end
    if type(options) == "string" then
      kind = kind .. " " .. options
    elseif options ~= nil then
      wrong("options are words such as \"+do\", or a table with flags and timeout", 2)
    end
  end
  local names = young[kind]
  local template = names and names[name] or find_template(name, kind, 3)
  if now ~= told then
    used = used + 1
    out[used] = -now
    told = now
  end
  used = used + 1
  out[used] = template * TEMPLATE_STEP + slot * CLIENT_STEP + QUERY
  local tag = last_tag + 1
  last_tag = tag
  return tag, patience
end

local function set_timer(seconds)
  local ns = seconds * 1e9
  if not (ns > SLEEP_NS_MIN) then ns = SLEEP_NS_MIN end
  -- Whole, and far below 2^53.
  ns = floor(now + (ns < 1e15 and ns or 1e15))
  due[slot] = ns
  out[used + 1] = slot * CLIENT_STEP + SLEEP
  out[used + 2] = ns
  used = used + 2
end

local methods = {}
local client_metatable = {
  __index = methods,
  __newindex = function(self, key, value)
    if methods[key] then wrong("c:" .. tostring(key) .. " cannot be replaced") end
    rawset(self, key, value)
  end,
  __metatable = "client",
}

function methods.query(self, name, kind, options)
  if self ~= current then check_self(self, "query") end
  local tag, patience = ask(name, kind, options)
  waits[slot] = tag
  if patience then
    asked_at[slot] = now
    set_timer(patience)
  end
  return yield()
end

function methods.send(self, name, kind, options)
  if self ~= current then check_self(self, "send") end
  local mine = sends[slot]
  if not mine then
    mine = { open = {}, count = 0, first = 1, last = 0 }
    sends[slot] = mine
  end
  if mine.count >= limits.sends then
    wrong("more than " .. limits.sends .. " queries that c:wait() has not fetched")
  end
  local tag = ask(name, kind, options)
  mine.open[tag] = true
  mine.count = mine.count + 1
  return tag
end

local function fetch(mine, tag)
  local response = mine.open[tag]
  mine.open[tag] = nil
  mine.count = mine.count - 1
  return response, tag
end

function methods.wait(self, tag, seconds)
  if self ~= current then check_self(self, "wait") end
  if seconds ~= nil then check_number(seconds, "seconds") end
  local mine = sends[slot]
  if not mine or mine.count == 0 then return nil end
  if tag ~= nil then
    local response = mine.open[tag]
    if not response then return nil end
    if response ~= true then return fetch(mine, tag) end
    waits[slot] = tag
  else
    while mine.first <= mine.last do
      local ended = mine[mine.first]
      mine[mine.first] = nil
      mine.first = mine.first + 1
      -- Unless it was fetched by its own tag.
      if mine.open[ended] then return fetch(mine, ended) end
    end
    waits[slot] = ANY
  end
  if seconds then set_timer(seconds) end
  return yield()
end

function methods.sleep(self, seconds)
  if self ~= current then check_self(self, "sleep") end
  check_number(seconds, "seconds")
  set_timer(seconds)
  waits[slot] = SLEEPING
  return yield()
end

function methods.close(self)
  if self ~= current then check_self(self, "close") end
  used = used + 1
  out[used] = slot * CLIENT_STEP + CLOSE
end

function methods.now(self)
  if self ~= current then check_self(self, "now") end
  return (now - limits.start) / 1e9
end

function methods.random(self, low, high)
  if self ~= current then check_self(self, "random") end
  return random(low, high)
end

function methods.exponential(self, mean)
  if self ~= current then check_self(self, "exponential") end
  check_number(mean, "the mean")
  return -mean * log(uniform())
end

function methods.pareto(self, shape, scale)
  if self ~= current then check_self(self, "pareto") end
  check_number(shape, "the shape")
  check_number(scale, "the scale")
  if shape <= 0 then wrong("the shape must be more than 0, not " .. shape) end
  return scale / uniform() ^ (1 / shape)
end

-- Custom metrics.
local counters, observed = {}, {}
local metrics_used = 0

local function new_metric(name)
  if type(name) ~= "string" then wrong("a metric's name must be a string, not " .. type(name), 2) end
  if #name > 64 then wrong("a metric's name has at most 64 characters", 2) end
  metrics_used = metrics_used + 1
  if metrics_used > limits.metrics then
    wrong("more than " .. limits.metrics .. " metrics; their names should not be made of data", 2)
  end
end

function env.count(name, number)
  if number == nil then number = 1 end
  check_number(number, "what to count")
  local counter = counters[name]
  if not counter then
    new_metric(name)
    counter = 0
  end
  counters[name] = counter + number
end

function env.observe(name, value)
  check_number(value, "what to observe")
  local metric = observed[name]
  if not metric then
    new_metric(name)
    metric = { used = 0 }
    observed[name] = metric
  end
  local n = metric.used + 1
  metric[n] = value
  metric.used = n
  -- The host makes a histogram of them.
  if n == 256 then
    host.observe(name, unpack(metric, 1, n))
    metric.used = 0
  end
end

local function metrics()
  for name, metric in next, observed do
    if metric.used > 0 then host.observe(name, unpack(metric, 1, metric.used)) end
    metric.used = 0
  end
  return counters
end

-- Functions in C are one instruction, however long they take. Where that may be long, the host
-- counts what they do, and stops a turn that does too much.
local c_find, c_match, c_gmatch, c_gsub = string.find, string.match, string.gmatch, string.gsub
local c_rep, c_sort, byte, sub = string.rep, table.sort, string.byte, string.sub
local c_format, min = string.format, math.min

-- Steps of a pattern that are not counted.
local STEPS_FREE = 30000
-- Octets of a pattern that is worth looking at.
local PATTERN_FREE = 200
-- Entries beyond which sorting is counted.
local MUCH = 65536
-- Octets of a string beyond which making it is counted.
local LONG = 1024
-- Entries of a list that is put together without a look at them.
local FEW = 64

-- The longest subject that each pattern may be left to C with; a few of them.
local longest, longest_used = {}, 0

-- An item that is repeated may stop at each octet, an optional one in two ways; and a match may
-- begin at each octet. All of them together are the steps at most.
local function measure(pattern)
  if #pattern > PATTERN_FREE then return 0 end
  local _, again = c_gsub(pattern, "%%[b%d]", "")
  local bare = c_gsub(c_gsub(pattern, "%%.", "x"), "%[%^?.[^%]]*%]", "x")
  local _, repeated = c_gsub(bare, "[*+-]", "")
  local _, optional = c_gsub(bare, "%?", "")
  local places = again + repeated + (byte(pattern) == 94 and 0 or 1)
  local steps = STEPS_FREE / 2 ^ optional / (1 + #pattern / 16)
  local octets = places == 0 and steps or steps ^ (1 / places)
  longest_used = longest_used + 1
  if longest_used > 256 then longest, longest_used = {}, 1 end
  longest[pattern] = octets
  return octets
end

-- True if matching is counted by the host: it could take long. What is no text is C's to refuse.
local function is_counted(subject, pattern)
  local kind = type(subject)
  local octets = kind == "string" and #subject or kind == "number" and 32 or 0
  return type(pattern) == "string" and octets > (longest[pattern] or measure(pattern))
end

local function must_go_on(ok, message)
  if ok ~= false then return end
  if watch.stopped then error(message, 0) end
  wrong(message, 3)
end

-- The first match from an octet on: where it begins and ends, then the same of each capture.
local function search(subject, pattern, from, caret_is_plain)
  local found = { host.search(subject, pattern, from, caret_is_plain or false) }
  must_go_on(found[1], found[2])
  if found[1] then return found end
end

local function capture(subject, found, i)
  local first, last = found[2 * i + 1], found[2 * i + 2]
  if last == -1 then return first end
  return sub(subject, first, last)
end

-- The captures of a match; without any the match itself.
local function captures(subject, found, none)
  local all, count = {}, #found / 2 - 1
  for i = 1, count do all[i] = capture(subject, found, i) end
  if count == 0 and not none then return sub(subject, found[1], found[2]) end
  return unpack(all, 1, count)
end

local function first_octet(subject, from)
  from = floor(tonumber(from) or 1)
  if from < 0 then from = #subject + from + 1 end
  if from > #subject then return #subject + 1 end
  return from >= 1 and from or 1
end

-- Counts the making of a string, an instruction for each 16 octets, and refuses a string that is
-- too long. Counted first: to catch the error saves no work.
local function weigh(octets, level)
  if not (octets > LONG) then return end
  must_go_on(host.count(floor(min(octets, 2e8) / 16)))
  if octets > limits.string_octets then
    wrong(c_format("a string of %.0f bytes: a script can make strings of %d bytes at most", octets,
      limits.string_octets), (level or 1) + 1)
  end
end

-- What a chain of `..` has made.
local function weigh_chain(made)
  if type(made) == "string" and #made > LONG then weigh(#made) end
  return made
end

-- The octets of a part of a string that is made; of a number some.
local function octets_of(part)
  local kind = type(part)
  return kind == "string" and #part or kind == "number" and 1 or 0
end

local function plain_find(subject, pattern, from)
  -- Whatever each octet is compared with.
  local steps = #subject * #pattern
  if steps > STEPS_FREE * 1000 then must_go_on(host.count(floor(steps / 1000))) end
  return c_find(subject, pattern, from, true)
end

function string.find(subject, pattern, from, plain)
  if not is_counted(subject, pattern) then return c_find(subject, pattern, from, plain) end
  subject = tostring(subject)
  if plain then return plain_find(subject, pattern, from) end
  local found = search(subject, pattern, first_octet(subject, from))
  if not found then return nil end
  return found[1], found[2], captures(subject, found, true)
end

function string.match(subject, pattern, from)
  if not is_counted(subject, pattern) then return c_match(subject, pattern, from) end
  subject = tostring(subject)
  local found = search(subject, pattern, first_octet(subject, from))
  if not found then return nil end
  return captures(subject, found)
end

function string.gmatch(subject, pattern)
  if not is_counted(subject, pattern) then return c_gmatch(subject, pattern) end
  subject = tostring(subject)
  local from = 1
  return function()
    if from > #subject + 1 then return nil end
    local found = search(subject, pattern, from, true)
    if not found then
      from = #subject + 2
      return nil
    end
    -- Past an empty match there is an octet more.
    from = found[2] < found[1] and found[1] + 1 or found[2] + 1
    return captures(subject, found)
  end
end

-- What stands in the place of a match.
local function replaced(subject, found, replacement)
  local kind, value = type(replacement), nil
  if kind == "table" then
    value = replacement[#found > 2 and capture(subject, found, 1)
      or sub(subject, found[1], found[2])]
  elseif kind == "function" then
    value = replacement(captures(subject, found))
  else
    return (c_gsub(replacement, "%%(.)", function(letter)
      local number = tonumber(letter)
      if not number then return letter end
      if number == 0 or number == 1 and #found == 2 then return sub(subject, found[1], found[2]) end
      if 2 * number + 2 > #found then wrong("invalid capture index", 4) end
      return tostring(capture(subject, found, number))
    end))
  end
  if not value then return sub(subject, found[1], found[2]) end
  if type(value) ~= "string" and type(value) ~= "number" then
    wrong("invalid replacement value (a " .. type(value) .. ")", 2)
  end
  return value
end

function string.gsub(subject, pattern, replacement, most)
  local kind = type(replacement)
  local is_text = kind == "string" or kind == "number"
  local is_fit = is_text or kind == "table" or kind == "function"
  -- What a capture adds to all replacements is the subject at most.
  local octets = (octets_of(subject) + 1) * (is_text and #tostring(replacement) or LONG)
  local may_grow = octets > limits.string_octets and type(pattern) == "string"
  if not is_fit or not (may_grow or is_counted(subject, pattern)) then
    local made, times = c_gsub(subject, pattern, replacement, most)
    weigh(#made)
    return made, times
  end
  subject = tostring(subject)
  local parts, from, made, total = {}, 1, 0, 0
  most = most or #subject + 1
  while made < most and from <= #subject + 1 do
    local found = search(subject, pattern, from)
    if not found then break end
    made = made + 1
    parts[#parts + 1] = sub(subject, from, found[1] - 1)
    local part = replaced(subject, found, replacement)
    parts[#parts + 1] = part
    total = total + octets_of(part)
    if total > limits.string_octets then weigh(total) end
    from = found[2] + 1
    if found[2] < found[1] then
      parts[#parts + 1] = sub(subject, from, from)
      from = from + 1
    end
    if byte(pattern) == 94 then break end
  end
  parts[#parts + 1] = sub(subject, from)
  local whole = concat(parts)
  weigh(#whole)
  return whole, made
end

function string.rep(text, times, between)
  local number = tonumber(times)
  if number then weigh((octets_of(text) + octets_of(between)) * number) end
  return c_rep(text, times, between)
end

for _, name in next, { "lower", "reverse", "upper" } do
  local change = string[name]
  string[name] = function(text)
    if type(text) == "string" and #text > LONG then weigh(#text) end
    return change(text)
  end
end

function string.sub(text, from, to)
  local part = sub(text, from, to)
  if #part > LONG then weigh(#part) end
  return part
end

function string.format(...)
  local made = c_format(...)
  if #made > LONG then weigh(#made) end
  return made
end

-- The octets of a long list's strings, as far as they are not too many.
local function octets_of_list(list, between, from, to)
  local octets, each = 0, octets_of(between)
  for i = from, to do
    local part = rawget(list, i)
    if part == nil or octets > limits.string_octets then break end
    octets = octets + octets_of(part) + each
  end
  return octets
end

function table.concat(list, between, from, to)
  if type(list) == "table" then
    local first, last = tonumber(from) or 1, tonumber(to) or #list
    if last - first > FEW then
      local octets = octets_of_list(list, between, first, last - 1)
      if octets > limits.string_octets then weigh(octets) end
    end
  end
  local made = concat(list, between, from, to)
  if #made > LONG then weigh(#made) end
  return made
end

function table.sort(list, is_before)
  if type(list) == "table" and #list > MUCH then must_go_on(host.count(#list * 16)) end
  return c_sort(list, is_before)
end

-- The sandbox: what is not named here does not exist.
for _, name in next, { "assert", "error", "ipairs", "next", "pairs", "rawequal", "rawget", "rawset",
  "select", "setmetatable", "getmetatable", "tonumber", "tostring", "type", "unpack" } do
  env[name] = _G[name]
end
env._G = env
env._VERSION = _VERSION
env.shared = {}

-- Read when a script looks at them: there may be millions.
local questions = newproxy(true)
getmetatable(questions).__len = function() return limits.questions end
getmetatable(questions).__index = function(_, number)
  if type(number) ~= "number" then return nil end
  local name, kind = host.question(number)
  return name and { name = name, type = kind }
end
getmetatable(questions).__metatable = "questions"
env.questions = questions

env.bit, env.math, env.string, env.table = bit, math, string, table
string.dump = nil
math.random = random
math.randomseed = function()
  wrong("the random source is seeded by the run's seed alone")
end

function env.print(...)
  local words = { ... }
  for i = 1, select("#", ...) do words[i] = tostring(words[i]) end
  host.print(slot, concat(words, "\t"))
end

-- A stopped turn stays stopped, and one out of memory fails, even if the script catches errors.
local function guarded(ok, ...)
  if not ok and (watch.stopped or ... == "not enough memory") then error(..., 0) end
  return ok, ...
end

function env.pcall(f, ...)
  return guarded(pcall(f, ...))
end

function env.xpcall(f, handler, ...)
  return guarded(xpcall(f, handler, ...))
end

-- True of a failure that may have come for lack of memory.
local function is_of_memory(failure)
  return type(failure) ~= "string" or find(failure, "memory", 1, true)
    or find(failure, "error handling", 1, true)
end

local function body(object)
  local ok, failure = xpcall(client_function, host.place, object)
  if ok then return FINISHED end
  -- What its function held is for those who go on.
  if is_of_memory(failure) then collect() end
  return FAILED, failure
end

-- The failure of the client that has just failed, and its number.
local unreported, unreported_of = nil, 0

-- Called when nothing on the stack holds on to the client any more: if it took all memory, what it
-- held is for the others, and for the host to report it. An error handler without memory fails too.
local function report()
  local failure = unreported
  unreported = nil
  if is_of_memory(failure) then collect() end
  used = used + 1
  out[used] = unreported_of * CLIENT_STEP + FAILED
  host.failed(failure)
end

local turn = 0

-- Lets the client whose turn it is go on until it waits for something.
local function go(i, value, tag)
  slot, current = i, objects[i]
  waits[i] = false
  due[i] = false
  turn = turn + 1
  watch[1] = turn
  local ok, ended, failure = resume(threads[i], value, tag)
  current = nil
  if ok and ended == nil then return end
  threads[i], objects[i], generators[i], sends[i] = nil, nil, nil, nil
  watch.stopped = nil
  if ended == FINISHED then
    used = used + 1
    out[used] = i * CLIENT_STEP + FINISHED
    return
  end
  if not ok then failure = ended end
  unreported, unreported_of = failure, i
end

local function start(i)
  local object = setmetatable({ index = limits.first_client + i - 1, group = limits.group },
    client_metatable)
  objects[i] = object
  threads[i] = create(body)
  sends[i] = false
  generators[i] = false
  go(i, object)
end

local function response_of(kind, latency, facts)
  if kind < RESPONSE then
    return { lost = REASONS[kind], answers = 0, truncated = false, latency_ms = latency / 1e6 }
  end
  local answers = facts % TTL_STEP
  local ttl = (facts - answers) / TTL_STEP - 1
  local truncated = answers >= TRUNCATED
  return {
    rcode = rcodes[kind - RESPONSE] or "RCODE" .. (kind - RESPONSE),
    answers = truncated and answers - TRUNCATED or answers,
    latency_ms = latency / 1e6,
    truncated = truncated,
    min_ttl = ttl >= 0 and ttl or nil,
  }
end

-- A query has ended: it is what its client waits for, or was sent by send(), or is given up.
local function ended(i, tag, kind, latency, facts)
  local waited = waits[i]
  if waited == tag then
    local mine = sends[i]
    if mine and mine.open[tag] then fetch(mine, tag) end
    return go(i, response_of(kind, latency, facts), tag)
  end
  local mine = sends[i]
  if not mine or not mine.open[tag] then return end
  local response = response_of(kind, latency, facts)
  if waited == ANY then
    fetch(mine, tag)
    return go(i, response, tag)
  end
  mine.open[tag] = response
  mine.last = mine.last + 1
  mine[mine.last] = tag
end

-- A timer is over: of a sleep, or of the patience with a query.
local function wake(i)
  if not due[i] or now < due[i] then return end
  local waited = waits[i]
  if waited == SLEEPING then return go(i) end
  local mine = sends[i]
  -- wait() gives up waiting, not the query.
  if waited == ANY or mine and mine.open[waited] then return go(i, nil) end
  return go(i, response_of(TIMED_OUT, now - asked_at[i], 0))
end

local function returned(from)
  local to = used
  if to - from >= RETURNED_MAX then to = from + RETURNED_MAX - 1 end
  return used, unpack(out, from, to)
end

local function step(numbers, ...)
  local events = { ... }
  used, told = 0, -1
  local at = 1
  while at <= numbers do
    local first = events[at]
    local i = first % KIND_STEP
    local kind = (first - i) / KIND_STEP
    now = events[at + 1]
    if kind == WAKE then
      at = at + 2
      wake(i)
    elseif kind == START then
      at = at + 2
      start(i)
    else
      if threads[i] then
        ended(i, events[at + 2], kind, events[at + 3], events[at + 4])
      end
      at = at + 5
    end
    if unreported ~= nil then report() end
  end
  return returned(1)
end

-- Runs what comes before the clients: the file itself, then setup(). What is called first returns
-- the file's function.
local function begin(made)
  slot, now = 0, 0
  turn = turn + 1
  watch[1] = turn
  local ok, failure = xpcall(function()
    made(weigh_chain)()
    if env.setup ~= nil then env.setup() end
    client_function = env.client
  end, host.place)
  if not ok then return failure end
  if type(client_function) ~= "function" then
    return "it defines no function client(c), which is what each client does"
  end
end

return env, begin, step, returned, metrics
