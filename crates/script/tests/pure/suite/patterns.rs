//! Counted patterns match like LuaJIT's, and none takes long.

use mlua::{Lua, LuaOptions, StdLib};
use proto::Instant;
use script::{Limits, Script, Settings};

/// Evaluated by both sides; `S` is a subject long enough to be counted.
const CASES: [&str; 33] = [
    "string.find(S, 'a-b')",
    "string.find(S, '(a*)(b?)', 3)",
    "string.find(S, '()x()', -5)",
    "string.find(S, 'x', 1, true)",
    "string.find(S, '^a', 2)",
    "string.find(S, 'a', 10000000)",
    "string.find(S, '$')",
    "string.find(S, '', 10)",
    "string.find(S, '%s+(%S+)%s+')",
    "string.match(S, '(%d+)%.(%d+)')",
    "string.match(S, '%b()')",
    "string.match(S, '%f[%w]%w+%f[%W]', 60)",
    "string.match(S, '(.)%1')",
    "string.match(S, '[^%s%d]-[%]x-]+')",
    "string.match(S, '[]x]+')",
    "string.match(S, '%u%l+.-%p')",
    "string.match(S, '(%x+)%z?%c*$')",
    "string.match(S, '.-(%g+)$')",
    "string.match(S, 'nothing like it')",
    "string.gsub(S, '%w+', '<%0>', 5)",
    "string.gsub(S, '(%w)(%w*)', '%2%1')",
    "string.gsub(S, '', '-', 7)",
    "string.gsub(S, '%s*', '_')",
    "string.gsub(S, '^%a+', 'X')",
    "string.gsub(S, '%w+', { aaa = 'T', Word = false, x = 7 })",
    "string.gsub(S, '(%d)%d*', function(d) if d ~= '4' then return d * 2 end end)",
    "string.gsub(S, '%a', '%%%0', 3)",
    "string.gsub(S, '()%d', '%1')",
    "all(string.gmatch(S, '%a+'))",
    "all(string.gmatch(S, '(%w)=(%w)'))",
    "all(string.gmatch(S, '%d*'))",
    "all(string.gmatch(S, '^a'))",
    "pcall(string.find, S, 'a[b')",
];

/// Puts what the cases return into a text.
fn program() -> String {
    let cases = CASES.map(|case| format!("text({case})"));
    format!(
        "local S = string.rep('aaa bb(c d)e x=y 12.345 Word-a]x. (f(g)h) ', 900) .. 'aXab\\0\\1Fe'
         local function text(...)
           local words = {{}}
           for i = 1, select('#', ...) do
             local word = tostring((select(i, ...)))
             words[i] = #word > 200 and #word .. word:sub(-200) or word
           end
           return table.concat(words, '|')
         end
         function all(next_one)
           local words = {{}}
           for a, b in next_one do words[#words + 1] = a .. ':' .. tostring(b) end
           return #words .. table.concat(words, ' ')
         end
         local results = {{ {} }}",
        cases.join(",\n")
    )
}

#[test]
fn counted_patterns_match_as_those_of_luajit() {
    let libraries = StdLib::TABLE | StdLib::STRING;
    let lua = Lua::new_with(libraries, LuaOptions::new()).unwrap();
    let wanted: Vec<String> = lua
        .load(format!("{} return results", program()))
        .eval()
        .unwrap();
    let text = format!(
        "{} function client(c) for i = 1, #results do print(results[i]) end end",
        program()
    );
    let settings = Settings {
        limits: Limits {
            instructions: 2_000_000_000,
            ..Limits::default()
        },
        ..Settings::default()
    };
    let mut script = Script::load(&text, "test.lua", settings).unwrap();
    script.start(0, Instant::ZERO);
    while script.step(&mut Vec::new()) {}
    assert_eq!(script.failures().messages, []);
    let got = script.take_printed().0;
    assert_eq!(got.len(), CASES.len());
    for ((case, wanted), (_, got)) in CASES.iter().zip(wanted).zip(got) {
        // Errors of patterns have other texts and positions than LuaJIT's.
        match case.starts_with("pcall") {
            true => assert!(got.contains("missing ']'"), "{case}: {got}"),
            false => assert_eq!(got, wanted, "{case}"),
        }
    }
}

/// The error of the only client of a script with this `body`.
fn failure(body: &str) -> String {
    let text = format!("function client(c)\n {body}\n c:sleep(1) end");
    let mut script = Script::load(&text, "test.lua", Settings::default()).unwrap();
    script.start(0, Instant::ZERO);
    while script.step(&mut Vec::new()) {}
    let failures = script.failures();
    let first = failures.messages.first();
    first.map_or_else(String::new, |failure| failure.message.clone())
}

#[test]
fn what_takes_long_in_one_call_is_stopped_with_its_line() {
    let long = "string.rep('a', 3000)";
    for body in [
        format!("string.find({long}, string.rep('a-', 9) .. 'b')"),
        format!("string.match({long}, '.-.-.-.-.-b')"),
        format!("for w in string.gmatch({long}, 'a*a*a*a*b') do end"),
        format!("string.gsub({long}, '(a*)(a*)(a*)%3b', 'x')"),
        format!("pcall(string.find, {long}, '.*.*.*.*b')"),
        "string.find(('a'):rep(60), ('a?'):rep(60) .. ('a'):rep(61))".to_owned(),
        "local n = 111111111111; string.find(n, ('1-'):rep(30) .. '2')".to_owned(),
        "local s = ('a'):rep(1e6); string.find(s, ('a'):rep(5e5) .. 'b', 1, true)".to_owned(),
        "while true do local s = ('x'):rep(1e6) end".to_owned(),
    ] {
        let message = failure(&body);
        let wanted = "test.lua:2: stopped after 20000000 instructions without waiting";
        assert!(message.starts_with(wanted), "{body}: {message}");
    }
    assert_eq!(failure("string.find('a.b.c', '(%w+)%.(%w+)%.(%w+)')"), "");
    let malformed = failure("string.find(('a'):rep(1e5), '%')");
    assert!(
        malformed.starts_with("test.lua:2: malformed pattern"),
        "{malformed}"
    );
}

#[test]
fn clients_are_stopped_and_have_not_failed_once_the_run_is_over() {
    let settings = Settings {
        clients: 3,
        limits: Limits {
            instructions: u64::MAX,
            ..Limits::default()
        },
        ..Settings::default()
    };
    let is_over = settings.is_over.clone();
    let text = "function client(c) while true do pcall(function() while true do end end) end end";
    let mut script = Script::load(text, "test.lua", settings).unwrap();
    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    (0..3).for_each(|client| script.start(client, Instant::ZERO));
    while script.step(&mut Vec::new()) {}
    assert_eq!((script.running(), script.failures().total), (0, 0));
}
