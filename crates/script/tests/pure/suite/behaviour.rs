//! Features of scripts, and their limits.

use proto::Instant;
use proto::response::ResponseFacts;
use script::{Action, End, Limits, Script, ScriptError, Settings};

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn load(text: &str) -> Script {
    load_with(text, Settings::default()).unwrap()
}

fn load_with(text: &str, settings: Settings) -> Result<Script, ScriptError> {
    Script::load(text, "test.lua", settings)
}

/// The error of a refused script.
fn refused(text: &str) -> String {
    match load_with(text, Settings::default()) {
        Ok(_) => panic!("loaded: {text}"),
        Err(error) => error.what,
    }
}

fn steps(script: &mut Script) -> Vec<Action> {
    let mut actions = Vec::new();
    while script.step(&mut actions) {}
    actions
}

fn start(script: &mut Script, ms: u64) -> Vec<Action> {
    script.start(0, at(ms));
    steps(script)
}

/// The record of the only query.
fn only_query(actions: &[Action]) -> u32 {
    match actions {
        [Action::Query { question, .. }] => *question,
        other => panic!("not one query: {other:?}"),
    }
}

fn noerror() -> ResponseFacts {
    ResponseFacts {
        rcode: 0,
        answers: 2,
        truncated: false,
        ttl_min: Some(60),
    }
}

fn printed(script: &mut Script) -> Vec<String> {
    let (lines, _) = script.take_printed();
    lines.into_iter().map(|(_, line)| line).collect()
}

fn failure(script: &Script) -> String {
    let failures = script.failures();
    assert_eq!(failures.total, 1, "{failures:?}");
    failures.messages[0].message.clone()
}

#[test]
fn a_client_asks_and_goes_on_with_the_response() {
    let mut script = load(
        "function client(c)
           local r = c:query('www.example.com', 'AAAA', '+do')
           print(r.rcode, r.answers, r.latency_ms, r.truncated, r.min_ttl, r.lost)
           r = c:query('www.example.com')
           print(r.rcode, r.answers, r.min_ttl, r.truncated)
         end",
    );
    let question = only_query(&start(&mut script, 10));
    {
        let messages = script.messages();
        let message = messages.get(question).message;
        assert_eq!(
            &message[12..],
            b"\x03www\x07example\x03com\0\0\x1c\0\x01\0\0\x29\x04\xd0\0\0\x80\0\0\0"
        );
    }
    script.respond(0, question, &noerror(), 2_500_000, at(12));
    let actions = steps(&mut script);
    let [
        Action::Query {
            question,
            at: asked_at,
            ..
        },
    ] = actions[..]
    else {
        panic!("{actions:?}");
    };
    assert_eq!(asked_at, at(12), "asked when the response came");
    let nxdomain = ResponseFacts {
        rcode: 3,
        truncated: true,
        ..ResponseFacts::default()
    };
    script.respond(0, question, &nxdomain, 1, at(13));
    assert_eq!(steps(&mut script), [Action::Finished { client: 0 }]);
    assert_eq!(
        printed(&mut script),
        ["NOERROR\t2\t2.5\tfalse\t60\tnil", "NXDOMAIN\t0\tnil\ttrue"]
    );
    assert_eq!(script.running(), 0);
}

#[test]
fn queries_without_a_response_say_why() {
    for (end, reason) in [
        (End::TimedOut, "timeout"),
        (End::Lost, "connection"),
        (End::NotSent, "not sent"),
    ] {
        let mut script = load(
            "function client(c)
               local r = c:query('a.example')
               print(r.lost, r.rcode, r.answers, r.latency_ms)
             end",
        );
        let question = only_query(&start(&mut script, 0));
        script.end(0, question, end, 5_000_000, at(5));
        assert_eq!(steps(&mut script), [Action::Finished { client: 0 }]);
        assert_eq!(printed(&mut script), [format!("{reason}\tnil\t0\t5")]);
    }
}

#[test]
fn a_sleep_counts_from_the_event_that_the_client_reacts_to() {
    let mut script = load("function client(c) c:sleep(0.5) print(c:now()) c:sleep(0) end");
    let actions = start(&mut script, 100);
    assert_eq!(
        actions,
        [Action::Sleep {
            client: 0,
            until: at(600)
        }]
    );
    script.wake(0, at(600));
    // At least a microsecond, so that time advances.
    let until = Instant::from_nanos(600_001_000);
    assert_eq!(steps(&mut script), [Action::Sleep { client: 0, until }]);
    assert_eq!(printed(&mut script), ["0.6"]);
}

#[test]
fn each_client_has_its_own_locals_and_all_of_a_worker_share_a_table() {
    let text = "function client(c)
           local mine = 0
           while true do
             c:sleep(1)
             mine = mine + 1
             shared.all = (shared.all or 0) + 1
             print(c.index, c.group, mine, shared.all)
           end
         end";
    let settings = Settings {
        clients: 2,
        first_client: 7,
        group: "phones".into(),
        ..Settings::default()
    };
    let mut script = load_with(text, settings).unwrap();
    script.start(0, at(0));
    script.start(1, at(0));
    steps(&mut script);
    for (client, ms) in [(0, 1_000), (1, 1_000), (0, 2_000)] {
        script.wake(client, at(ms));
        steps(&mut script);
    }
    assert_eq!(
        printed(&mut script),
        ["8\tphones\t1\t1", "9\tphones\t1\t2", "8\tphones\t2\t3"]
    );
}

#[test]
fn an_error_ends_its_client_alone_and_names_its_line() {
    let text = "function client(c)
           if c.index == 1 then
             local nothing
             nothing.field = 1
           end
           c:sleep(1)
         end";
    let settings = Settings {
        clients: 2,
        ..Settings::default()
    };
    let mut script = load_with(text, settings).unwrap();
    script.start(0, at(0));
    script.start(1, at(0));
    assert_eq!(
        steps(&mut script),
        [
            Action::Failed { client: 0 },
            Action::Sleep {
                client: 1,
                until: at(1_000)
            }
        ]
    );
    assert!(failure(&script).starts_with("test.lua:4: attempt to index local 'nothing'"));
    assert_eq!(script.running(), 1);
}

#[test]
fn misuse_of_the_methods_is_an_error_with_the_line_of_the_call() {
    for (body, wanted) in [
        (
            "c.query('a.example')",
            "call it as c:query(...), with a colon",
        ),
        (
            "c:query(nil)",
            "a name must be a string, or the number of a question, not nil",
        ),
        ("c:query('a..b')", "`a..b` is not a domain name"),
        ("c:query('a.b', 'NOPE')", "unknown type `NOPE`"),
        ("c:query('a.b', 'A', '+nope')", "unknown option `+nope`"),
        (
            "c:query('a.b', 'A', { timeout = 'x' })",
            "timeout must be a number, not string",
        ),
        (
            "c:query('a.b', 'A', { timeout = 0 })",
            "timeout must be more than 0 seconds",
        ),
        ("c:query('a.b', 'A', 7)", "options are words such as"),
        ("c:query(1)", "there is no question 1, only 1 to 0"),
        ("c:query('a.b', {})", "a type must be a string"),
        ("c:sleep()", "seconds must be a number, not nil"),
        ("c:sleep(0/0)", "seconds is not a number"),
        ("c:random(3, 1)", "the interval from 3 to 1 is empty"),
        ("math.random(3, 1)", "the interval from 3 to 1 is empty"),
        ("c:pareto(0, 1)", "the shape must be more than 0, not 0"),
        ("c:exponential('x')", "the mean must be a number"),
        ("count(nil)", "a metric's name must be a string, not nil"),
        (
            "observe('x', nil)",
            "what to observe must be a number, not nil",
        ),
        ("c.sleep = 1", "c:sleep cannot be replaced"),
        (
            "math.randomseed(1)",
            "the random source is seeded by the run's seed alone",
        ),
        ("error({})", "an error that is a table, not a text"),
        ("error('mine', 0)", "mine"),
        (
            "for i = 1, 1001 do c:send('a.b') end",
            "more than 1000 queries that c:wait()",
        ),
        (
            "for i = 1, 200 do count('n' .. i) end",
            "more than 128 metrics",
        ),
    ] {
        let mut script = load(&format!("function client(c)\n {body}\nend"));
        start(&mut script, 0);
        let message = failure(&script);
        assert!(message.starts_with("test.lua:2: "), "{body}: {message}");
        assert!(message.contains(wanted), "{body}: {message}");
    }
}

#[test]
fn files_that_cannot_be_used_are_refused_with_their_line() {
    for (text, wanted) in [
        (
            "function client(c)\n local = 1\nend",
            "test.lua:2: '<name>' expected near '='",
        ),
        (
            "local x = nil + 1",
            "test.lua:1: attempt to perform arithmetic on a nil value",
        ),
        (
            "function client(c) end\nfunction setup() error('no') end",
            "test.lua:2: no",
        ),
        ("print(1)", "test.lua: it defines no function client(c)"),
        ("\x1bLJ\x02", "test.lua: "),
    ] {
        let what = refused(text);
        assert!(what.starts_with(wanted), "{what}");
    }
}

#[test]
fn nothing_outside_the_sandbox_can_be_reached() {
    for name in [
        "os",
        "io",
        "require",
        "dofile",
        "loadfile",
        "load",
        "loadstring",
        "debug",
        "ffi",
        "jit",
        "package",
        "module",
        "coroutine",
        "collectgarbage",
        "getfenv",
        "setfenv",
        "newproxy",
        "string.dump",
        "gcinfo",
        "_G.os",
        "_G._G.io",
        "getmetatable('').__index.dump",
    ] {
        let mut script = load(&format!("function client(c) print({name} == nil) end"));
        start(&mut script, 0);
        assert_eq!(printed(&mut script), ["true"], "{name}");
    }
}

#[test]
fn a_script_cannot_break_the_scheduler_by_changing_what_it_sees() {
    let mut script = load(
        "math.floor, math.log, string.format, table.concat, setmetatable = nil
         unpack, type, tostring, next, error = nil
         function client(c)
           for key in pairs(c) do rawset(c, key, nil) end
           c:sleep(c:exponential(1))
           local r = c:query('a.example')
           count('x')
         end",
    );
    let actions = start(&mut script, 0);
    let [Action::Sleep { until, .. }] = actions[..] else {
        panic!("{actions:?}, {:?}", script.failures());
    };
    script.wake(0, until);
    only_query(&steps(&mut script));
    assert_eq!(script.failures().total, 0);
}

#[test]
fn an_endless_loop_is_stopped_with_its_line_and_the_others_go_on() {
    for body in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do xpcall(function() while true do end end, function() end) end",
        "local function f() return f() end f()",
        "repeat local t = {} until false",
    ] {
        let text =
            format!("function client(c)\n if c.index == 1 then\n {body}\n end c:sleep(1) end");
        let settings = Settings {
            clients: 2,
            ..Settings::default()
        };
        let mut script = load_with(&text, settings).unwrap();
        script.start(0, at(0));
        script.start(1, at(0));
        let actions = steps(&mut script);
        assert_eq!(actions[0], Action::Failed { client: 0 }, "{body}");
        assert!(
            matches!(actions[1], Action::Sleep { client: 1, .. }),
            "{body}"
        );
        let message = failure(&script);
        let wanted = "test.lua:3: stopped after 20000000 instructions without waiting";
        assert!(message.starts_with(wanted), "{body}: {message}");
    }
}

#[test]
fn of_a_long_file_name_its_end_is_shown() {
    let name = format!("{}/the-script.lua", "folder/".repeat(20));
    for (text, wanted) in [
        (
            "function client(c)\n error('here')\nend",
            "the-script.lua:2: here",
        ),
        (
            "function client(c)\n while true do end\nend",
            "the-script.lua:2: stopped",
        ),
        (
            "function client(c)\n error('there', 0)\nend",
            "the-script.lua:2: there",
        ),
    ] {
        let mut script = Script::load(text, &name, Settings::default()).unwrap();
        start(&mut script, 0);
        let message = failure(&script);
        assert!(
            message.contains(wanted) && message.starts_with("..."),
            "{message}"
        );
    }
}

#[test]
fn a_file_and_a_setup_that_do_not_end_are_stopped_too() {
    assert!(refused("while true do end").starts_with("test.lua:1: stopped after"));
    let setup = refused("function client(c) end function setup()\nwhile true do end end");
    assert!(setup.starts_with("test.lua:2: stopped after"), "{setup}");
}

#[test]
fn memory_is_limited_and_is_there_again_for_others() {
    for body in [
        "local t = {} while true do t[#t + 1] = ('x'):rep(1e6) .. #t end",
        "local t = {} while true do t[#t + 1] = { 1, 2, 3 } end",
        "local t = {} for i = 1, 100 do t[i] = ('x'):rep(1e6) end
         string.format(('%s'):rep(100), unpack(t))",
        "local t = {} while true do pcall(function() t[#t + 1] = ('x'):rep(1e6) .. #t end) end",
    ] {
        let text = format!(
            "function client(c) if c.index == 1 then {body} end c:query('a.example') c:sleep(1) end"
        );
        let settings = Settings {
            clients: 2,
            limits: Limits {
                memory_bytes: 16 << 20,
                ..Limits::default()
            },
            ..Settings::default()
        };
        let mut script = load_with(&text, settings).unwrap();
        script.start(0, at(0));
        let actions = steps(&mut script);
        assert_eq!(
            actions,
            [Action::Failed { client: 0 }],
            "{body}, {:?}",
            script.failures()
        );
        let message = failure(&script);
        let wanted = "test.lua: not enough memory: the scripts of one worker have 16 MiB";
        assert_eq!(message, wanted, "{body}");
        script.start(1, at(0));
        only_query(&steps(&mut script));
    }
}

#[test]
fn building_long_strings_is_stopped_with_its_line() {
    let big = "local s = ('x'):rep(1048576)";
    for (body, length) in [
        ("local s = ('x'):rep(1e8)", "100000000"),
        ("local s = string.rep(1, 1e8)", "100000000"),
        ("local s = ('x'):rep(3e7, '--')", "90000000"),
        ("local s = 'x' while true do s = s .. s end", "2097152"),
        (
            "local s = 'x' while true do s = s .. s .. 'ab' .. 1 end",
            "2097149",
        ),
        (
            "local t = {'x'} while true do t[1] = t[1] .. t[1] end",
            "2097152",
        ),
        (&format!("{big} s = s .. 'x'"), "1048577"),
        (&format!("{big} s = ('%s%s'):format(s, s)"), "2097152"),
        (
            &format!("{big} s = table.concat({{ s, s }}, ',')"),
            "2097153",
        ),
        (
            "local t = {} for i = 1, 1e5 do t[i] = ('x'):rep(1e3) end local s = table.concat(t)",
            "1049000",
        ),
        (&format!("{big} s = s:gsub('x', ('y'):rep(100))"), "1048600"),
        (
            &format!("{big} s = s:gsub('(x)', '%1' .. ('y'):rep(100))"),
            "1048582",
        ),
        (
            &format!("{big} s = s:gsub('x', {{ x = ('y'):rep(1000) }})"),
            "1049000",
        ),
        (
            &format!("{big} s = s:gsub('x', function() return s end)"),
            "2097152",
        ),
        (
            "local s = ('x'):rep(1000):gsub('', ('y'):rep(1e6))",
            "2000000",
        ),
    ] {
        let mut script = load(&format!("function client(c)\n {body}\n end"));
        assert_eq!(
            start(&mut script, 0),
            [Action::Failed { client: 0 }],
            "{body}"
        );
        let wanted = format!(
            "test.lua:2: a string of {length} bytes: a script can make strings of 1048576 bytes at \
             most"
        );
        assert_eq!(failure(&script), wanted, "{body}");
    }
}

#[test]
fn work_on_long_strings_counts_as_instructions() {
    for work in [
        "local t = s .. 'x'",
        "local t = s:upper()",
        "local t = s:lower()",
        "local t = s:reverse()",
        "local t = s:sub(2)",
        "local t = ('%s'):format(s)",
        "local t = table.concat({ s, 'x' })",
        "local t = s:gsub('^y', '')",
        "pcall(function() return s .. s end)",
        "pcall(string.rep, s, 100)",
    ] {
        let body = format!("local s = ('x'):rep(1e6) while true do {work} end");
        let mut script = load(&format!("function client(c)\n {body}\n end"));
        start(&mut script, 0);
        let message = failure(&script);
        let wanted = "test.lua:2: stopped after 20000000 instructions without waiting";
        assert!(message.starts_with(wanted), "{work}: {message}");
    }
}

#[test]
fn concatenation_is_that_of_lua() {
    let mut script = load(
        "local top = select('#', ...) .. ''
         local joined = setmetatable({}, { __concat = function(a, b) return 7 end })
         local function many(...) return 'm' .. ... end
         function client(c)
           local f, s = { g = { h = function(_, x) return x .. '!' end } }, 'abc'
           print(top, joined .. s, s .. joined .. s, many(1, 2), -1 .. 2 + 3 * 2 ^ 2 .. -s:len())
           print(f.g:h 'x' .. f.g.h(1, 'y' .. 'z'), ('a' .. 'b') .. #s .. #'a' - -1)
           local t = { 'a' .. 'b', ['k' .. 1] = s .. s, s .. 'c' }
           print(t[1], t.k1, t[2], s .. 'c' == 'abcc' and 'x' .. 'y' or 'no')
           local function twice() return s .. many('z', 'w'), s .. 'q' end
           print(twice())
           local name = s .. 'd' (print)(name)
         end
         function setup() print('--..', [[a..b]] .. [==[ ]] ]==]) end -- .. '",
    );
    start(&mut script, 0);
    assert_eq!(script.failures().total, 0, "{:?}", script.failures());
    let printed: Vec<String> = script.take_printed().0.into_iter().map(|it| it.1).collect();
    assert_eq!(
        printed,
        [
            "--..\ta..b ]] ",
            "0\t7\tabc7\tm1\t-114-3",
            "x!yz!\tab32",
            "ab\tabcabc\tabcc\txy",
            "abcmz\tabcq",
            "abcd"
        ]
    );
    let mut script = load("function client(c)\n local x\n\n return 'a' .. x end");
    start(&mut script, 0);
    let wanted = "test.lua:4: attempt to concatenate local 'x' (a nil value)";
    assert_eq!(failure(&script), wanted);
}

#[test]
fn queries_sent_side_by_side_are_waited_for_in_any_order() {
    let mut script = load(
        "function client(c)
           local a, b, d = c:send('a.b', 'A'), c:send('a.b', 'AAAA'), c:send('a.b', 'MX')
           local r, which = c:wait()
           print(which == b, r.rcode)
           r, which = c:wait(d)
           print(which == d, r.lost)
           r, which = c:wait()
           print(which == a, r.rcode)
           print(c:wait(), c:wait(a))
         end",
    );
    let actions = start(&mut script, 0);
    let asked: Vec<u32> = actions
        .iter()
        .map(|action| match action {
            Action::Query { question, .. } => *question,
            other => panic!("{other:?}"),
        })
        .collect();
    script.respond(0, asked[1], &noerror(), 1, at(1));
    script.respond(0, asked[0], &noerror(), 1, at(2));
    assert!(steps(&mut script).is_empty());
    script.end(0, asked[2], End::Lost, 1, at(3));
    assert_eq!(steps(&mut script), [Action::Finished { client: 0 }]);
    assert_eq!(
        printed(&mut script),
        [
            "true\tNOERROR",
            "true\tconnection",
            "true\tNOERROR",
            "nil\tnil"
        ]
    );
}

#[test]
fn a_client_that_loses_patience_goes_on_and_does_not_take_the_late_response_for_another() {
    let mut script = load(
        "function client(c)
           local r = c:query('slow.example', 'A', { timeout = 0.2 })
           print(r.lost, r.latency_ms, c:now())
           r = c:query('slow.example', 'A', { timeout = 0.4, flags = '+do' })
           print(r.rcode, c:now())
           c:sleep(1)
           print(c:now())
         end",
    );
    let actions = start(&mut script, 0);
    let [
        Action::Query {
            question: first, ..
        },
        Action::Sleep { until, .. },
    ] = actions[..]
    else {
        panic!("{actions:?}");
    };
    assert_eq!(until, at(200));
    script.wake(0, until);
    let actions = steps(&mut script);
    let [
        Action::Query {
            question: second, ..
        },
        Action::Sleep { until: later, .. },
    ] = actions[..]
    else {
        panic!("{actions:?}");
    };
    script.respond(0, first, &noerror(), 300_000_000, at(300));
    assert!(steps(&mut script).is_empty());
    script.respond(0, second, &noerror(), 110_000_000, at(310));
    assert_eq!(
        steps(&mut script),
        [Action::Sleep {
            client: 0,
            until: at(1_310)
        }]
    );
    // The timer of an answered query does not affect later waits.
    script.wake(0, later);
    assert!(steps(&mut script).is_empty());
    script.wake(0, at(1_310));
    assert_eq!(steps(&mut script), [Action::Finished { client: 0 }]);
    assert_eq!(
        printed(&mut script),
        ["timeout\t200\t0.2", "NOERROR\t0.31", "1.31"]
    );
}

#[test]
fn waiting_with_patience_gives_up_the_wait_and_not_the_query() {
    let mut script = load(
        "function client(c)
           local tag = c:send('a.example')
           print(c:wait(tag, 0.1), c:now())
           local r = c:wait(nil, 0.1)
           print(r.rcode, c:now())
         end",
    );
    let actions = start(&mut script, 0);
    let Action::Query { question, .. } = actions[0] else {
        panic!("{actions:?}");
    };
    script.wake(0, at(100));
    steps(&mut script);
    script.respond(0, question, &noerror(), 1, at(150));
    assert_eq!(steps(&mut script), [Action::Finished { client: 0 }]);
    assert_eq!(printed(&mut script), ["nil\t0.1", "NOERROR\t0.15"]);
}

#[test]
fn closing_and_asking_come_in_the_order_of_the_script() {
    let mut script =
        load("function client(c) c:send('a.example') c:close() c:send('b.example') c:sleep(1) end");
    let actions = start(&mut script, 0);
    assert!(matches!(
        actions[..],
        [
            Action::Query { .. },
            Action::Close { client: 0 },
            Action::Query { .. },
            Action::Sleep { .. }
        ]
    ));
}

#[test]
fn the_questions_of_the_run_can_be_read_and_asked_by_number() {
    let text = b"www.example.com A\nmail.example.com MX\n";
    let questions = load::names_file::parse_text(text, &Default::default()).unwrap();
    let settings = Settings {
        questions: questions.clone().into(),
        ..Settings::default()
    };
    let text = "function client(c)
           print(#questions, questions[1].name, questions[2].type, questions[3], questions.x)
           c:query(2)
         end";
    let mut script = load_with(text, settings).unwrap();
    let question = only_query(&start(&mut script, 0));
    assert_eq!(script.messages().get(question), questions.get(1));
    assert_eq!(printed(&mut script), ["2\twww.example.com\tMX\tnil\tnil"]);
}

#[test]
fn what_is_counted_and_observed_comes_out() {
    let mut script = load(
        "function client(c)
           for i = 1, 1000 do observe('ms', i / 10) end
           count('pages')
           count('pages', 2.5)
           count('none', 0)
         end",
    );
    start(&mut script, 0);
    let metrics = script.metrics();
    assert_eq!(metrics.counters["pages"], 3.5);
    assert_eq!(metrics.counters["none"], 0.0);
    let ms = &metrics.observed["ms"];
    assert_eq!(
        (ms.count(), ms.min_ns(), ms.max_ns()),
        (1_000, Some(100), Some(100_000))
    );
    assert_eq!(script.metrics(), metrics, "reading changes nothing");
}

#[test]
fn a_million_names_take_no_more_memory_than_some_thousands() {
    let settings = Settings {
        clients: 100,
        ..Settings::default()
    };
    let text = "function client(c)
           while true do c:query('n' .. c:random(1e15) .. '.example') end
         end";
    let mut script = load_with(text, settings).unwrap();
    for client in 0..100 {
        script.start(client, at(0));
    }
    let mut held = Vec::new();
    for _ in 0..3_000 {
        for action in steps(&mut script) {
            if let Action::Query {
                client, question, ..
            } = action
            {
                script.respond(client, question, &noerror(), 1, at(1));
            }
        }
        held.push(script.messages().held());
    }
    assert!(
        held[2_999].0 < 12_000 && held[2_999] == held[1_500],
        "{:?}",
        held[2_999]
    );
}

#[test]
fn the_same_seed_draws_the_same_and_each_client_from_a_stream_of_its_own() {
    let draws = |seed, first_client, others| {
        let settings = Settings {
            clients: 10,
            seed,
            first_client,
            ..Settings::default()
        };
        let text = "function client(c) print(c:random(), math.random(10), c:exponential(2)) end";
        let mut script = load_with(text, settings).unwrap();
        for client in 0..others {
            script.start(9 - client, at(0));
        }
        script.start(0, at(0));
        steps(&mut script);
        printed(&mut script).pop().unwrap()
    };
    assert_eq!(draws(1, 5, 0), draws(1, 5, 4), "whatever others draw");
    assert_ne!(draws(1, 5, 0), draws(2, 5, 0));
    assert_ne!(draws(1, 5, 0), draws(1, 6, 0));
}
