//! Tests that depend on how fast a machine is: they pause, poll, time out early, or assert that
//! something took less than a time.
//!
//! Each rule has a list of places that may, with the reason: a path, and what stands there.

use std::ops::Range;

use crate::repository::{File, Offence};
use crate::source::{Source, line_of, words};

/// A path, what may stand there, and why.
type Allowed = (&'static str, &'static str, &'static str);

/// Waits that end by a time of milliseconds.
const PAUSES_ALLOWED: [Allowed; 6] = [
    (
        "crates/cli/tests/real/cluster/bed.rs",
        "read -t 0.1",
        "the one wait of scripts in the cluster, for a command to succeed",
    ),
    (
        "crates/proto/src/quic/tests/oracles/doq.rs",
        "yield_now",
        "a task lets others of its thread run, and no thread waits",
    ),
    (
        "crates/cli/tests/faulty/signals.rs",
        "sleep 0.7",
        "a run that is stopped for a while: the while is the fault",
    ),
    (
        "crates/cli/tests/real/command_line/lab.rs",
        "sleep 60",
        "a command that does not end by itself; the test ends it",
    ),
    (
        "crates/cli/tests/real/command_line/lab.rs",
        "sleep 100",
        "a command that does not end by itself; the test ends it",
    ),
    (
        "crates/cli/tests/real/command_line/topologies.rs",
        "sleep 60",
        "a command that does not end by itself; the test ends it",
    ),
];

/// Timeouts of queries below two seconds, where no response is to come in time.
const TIMEOUTS_ALLOWED: [Allowed; 11] = [
    (
        "crates/cli/tests/faulty/path.rs",
        "--timeout 400ms",
        "nothing answers until smaller probes go through, after a second",
    ),
    (
        "crates/cli/tests/faulty/peer.rs",
        "--timeout 500ms",
        "nothing answers there",
    ),
    (
        "crates/cli/tests/faulty/signals.rs",
        "--timeout 100ms",
        "a part is stopped: how long it may be silent counts from this",
    ),
    (
        "crates/cli/tests/real/command_line/bad_input.rs",
        "--timeout 100ms",
        "nothing answers there",
    ),
    (
        "crates/cli/tests/real/command_line/ends.rs",
        "--timeout 100ms",
        "nothing answers there with DNS",
    ),
    (
        "crates/cli/tests/real/command_line/hosts.rs",
        "--timeout 100ms",
        "a part is stopped: how long it may be silent counts from this",
    ),
    (
        "crates/cli/tests/real/command_line/losses.rs",
        "--timeout 1s",
        "a part is stopped: how long it may be silent counts from this",
    ),
    (
        "crates/cli/tests/real/command_line/ping.rs",
        "--timeout 50ms",
        "nothing answers there",
    ),
    (
        "crates/cli/tests/real/command_line/process.rs",
        "--timeout 20ms",
        "nothing answers there",
    ),
    (
        "crates/cli/tests/real/command_line/trace.rs",
        "--timeout 20ms",
        "nothing answers there",
    ),
    (
        "crates/cli/tests/real/command_line/xdp.rs",
        "--timeout 1s",
        "nothing answers there: the responder is stopped",
    ),
];

/// No duration that a test asserts to be the most is shorter: only a wait for an event is.
const PATIENCE_S_MIN: u64 = 60;
const TIMEOUT_MS_MIN: f64 = 2_000.0;
const TIMED: &str = "/tests/timed/";
/// Time in these is the simulator's.
const SIMULATED: [&str; 2] = [
    "crates/cli/tests/pure/in_process/",
    "crates/lab/tests/pure/simulated/",
];

/// Files of tests, but for timed ones, whose subject are times. The samples of these rules break
/// them on purpose.
fn is_test(file: &File) -> bool {
    let is_of_tests = file.path.contains("/tests/") || file.path.ends_with("/tests.rs");
    let is_exempt =
        file.path.starts_with("crates/cli/tests/pure/tidy/") || file.path.contains(TIMED);
    is_of_tests && file.is_rust() && !is_exempt
}

fn is_allowed(allowed: &[Allowed], file: &File, found: &str) -> bool {
    let mut all = allowed.iter();
    all.any(|(path, text, _)| *path == file.path && *text == found)
}

/// No test pauses: neither itself, by a wait of milliseconds for nothing, nor in a shell.
pub(crate) fn pauses(file: &File) -> Vec<Offence> {
    if !is_test(file) {
        return Vec::new();
    }
    let source = Source::of(&file.text);
    let short = short_durations(&source.code);
    let mut found = Vec::new();
    for call in ["park_timeout", "yield_now", "spin_loop"] {
        found.extend(words(&source.code, call).map(|offset| (offset, call.to_owned())));
    }
    for call in ["recv_timeout", "wait_timeout", "wait_timeout_while"] {
        for offset in words(&source.code, call) {
            let arguments = &source.code[arguments(&source.code, offset)];
            let is_named = short.iter().any(|it| words(arguments, it).next().is_some());
            if is_named || arguments.contains("from_millis") {
                found.push((offset, call.to_owned()));
            }
        }
    }
    // The second is a pause if nothing comes that could be read.
    for (command, flag) in [("sleep", ""), ("read", " -t")] {
        for offset in words(&source.literals, command) {
            let rest = &source.literals[offset + command.len()..];
            let rest = rest.strip_prefix(flag).unwrap_or_default();
            let time = number(rest.trim_start_matches(' '));
            if rest.starts_with(' ') && !time.is_empty() {
                found.push((offset, format!("{command}{flag} {time}")));
            }
        }
    }
    found.retain(|(_, what)| !is_allowed(&PAUSES_ALLOWED, file, what));
    let cure = "end the wait by the event that it is for, or use testing::wait";
    let offences = found.into_iter().map(|(offset, what)| {
        let line = line_of(&file.text, offset);
        file.offence(line, format!("`{what}` in a test"), cure)
    });
    offences.collect()
}

/// Names of constants that are durations in milliseconds.
fn short_durations(code: &str) -> Vec<&str> {
    let is_short = |rest: &str| {
        rest.trim_start()
            .starts_with("Duration = Duration::from_millis(")
    };
    let constants = words(code, "const").filter_map(|offset| {
        let (name, rest) = code[offset + "const".len()..].split_once(':')?;
        is_short(rest).then_some(name.trim())
    });
    constants.collect()
}

/// What stands in the parentheses after the name of a call.
fn arguments(code: &str, call: usize) -> Range<usize> {
    let Some(open) = code[call..].find('(').map(|it| call + it) else {
        return call..call;
    };
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return open + 1..at;
        }
    }
    open..code.len()
}

/// The digits, with a point in them, that a text begins with.
fn number(text: &str) -> &str {
    let end = text.find(|it: char| !it.is_ascii_digit() && it != '.');
    &text[..end.unwrap_or(text.len())]
}

/// No query of a test times out before two seconds, unless time is the simulator's.
pub(crate) fn short_timeouts(file: &File) -> Vec<Offence> {
    let is_simulated = SIMULATED.iter().any(|it| file.path.starts_with(it));
    if !is_test(file) || is_simulated {
        return Vec::new();
    }
    let literals = Source::of(&file.text).literals;
    let mut offences = Vec::new();
    for (offset, _) in literals.match_indices(" --timeout ").chain(
        // At the beginning of a literal there is no blank.
        literals.match_indices("\"--timeout "),
    ) {
        let rest = &literals[offset + " --timeout ".len()..];
        let number = number(rest);
        let unit = &rest[number.len()..];
        let (in_ms, unit) = match unit {
            unit if unit.starts_with("ms") => (1.0, "ms"),
            unit if unit.starts_with('s') => (1_000.0, "s"),
            _ => continue,
        };
        let ms = number.parse::<f64>().unwrap_or_default() * in_ms;
        // None is no timeout: it is refused.
        let is_short = ms > 0.0 && ms < TIMEOUT_MS_MIN;
        let what = format!("--timeout {number}{unit}");
        let is_simulated = literal_at(&literals, offset + 1).contains("--driver sim");
        if is_short && !is_simulated && !is_allowed(&TIMEOUTS_ALLOWED, file, &what) {
            let cure = "give busy hosts two seconds, use the simulator, or name the place in \
                        waiting.rs";
            let what = format!("`{what}` in a test");
            offences.push(file.offence(line_of(&literals, offset), what, cure));
        }
    }
    offences
}

/// The literal around an offset, or the part of it between quotes.
fn literal_at(literals: &str, offset: usize) -> &str {
    let begin = literals[..offset].rfind('"').map_or(0, |it| it + 1);
    let end = literals[offset..].find('"');
    &literals[begin..end.map_or(literals.len(), |it| offset + it)]
}

/// No test asserts that something took less than a time, unless that is a wait's patience.
pub(crate) fn duration_bounds(file: &File) -> Vec<Offence> {
    if !is_test(file) {
        return Vec::new();
    }
    let code = Source::of(&file.text).code;
    let mut offences = Vec::new();
    for offset in words(&code, "assert") {
        let asserted = &code[arguments(&code, offset)];
        let is_bound = ["elapsed() <", "elapsed <", "took <", "took() <"];
        let bound = is_bound.iter().find_map(|it| asserted.split_once(it));
        let Some((_, most)) = bound else {
            continue;
        };
        let seconds = most
            .split_once("from_secs(")
            .map_or("", |(_, it)| number(it));
        let is_patience = seconds.parse().unwrap_or(0) >= PATIENCE_S_MIN;
        if !is_patience {
            let cure = "assert what no scheduling can break, or let it be a timed test";
            let what = "an upper bound of a duration";
            offences.push(file.offence(line_of(&code, offset), what, cure));
        }
    }
    offences
}

/// Exceptions that nothing needs any more.
pub(crate) fn stale_exceptions(files: &[File]) -> Vec<Offence> {
    let is_stale = |(path, text, _): &&Allowed| {
        let file = files.iter().find(|file| file.path == *path);
        !file.is_some_and(|file| file.text.contains(text))
    };
    let all = PAUSES_ALLOWED.iter().chain(&TIMEOUTS_ALLOWED);
    let stale = all.filter(is_stale).map(|(path, text, _)| {
        let file = File::new("crates/cli/tests/pure/tidy/waiting.rs", "");
        file.offence(
            1,
            format!("`{text}` is not in {path}"),
            "delete the exception",
        )
    });
    stale.collect()
}

#[cfg(test)]
fn count(rule: fn(&File) -> Vec<Offence>, text: &str) -> usize {
    assert_eq!(rule(&File::new("crates/a/src/lib.rs", text)), [], "{text}");
    rule(&File::new("crates/a/tests/b.rs", text)).len()
}

#[test]
fn pauses_of_tests_are_offences() {
    for text in [
        "thread::park_timeout(x);",
        "while !f() { std::thread::yield_now(); }",
        "f(\"kill -s STOP $PID; sleep 0.7; true\");",
        "f(\"until g; do read -t 0.1 <> <(:) || :; done\");",
        "while a.recv_timeout(Duration::from_millis(5)).is_err() {}",
        "const EVERY: Duration = Duration::from_millis(5);\nlet _ = a.recv_timeout(EVERY);",
    ] {
        assert_eq!(count(pauses, text), 1, "{text}");
    }
    for text in [
        "// park_timeout, sleep 1",
        "f(\"sleep is over\"); f(\"asleep 1\"); f(\"read -r line\"); f(\"thread -t 1\");",
        "const PATIENCE: Duration = Duration::from_secs(60);\nlet _ = a.recv_timeout(PATIENCE);",
    ] {
        assert_eq!(count(pauses, text), 0, "{text}");
    }
    let allowed = "f(\"sleep 0.7\"); f(\"sleep 0.8\");";
    let offences = pauses(&File::new("crates/cli/tests/faulty/signals.rs", allowed));
    assert_eq!(offences.len(), 1);
}

#[test]
fn short_timeouts_of_tests_are_offences() {
    for text in [
        "f(\"run --timeout 800ms --rate 5\");",
        "f(\"--timeout 1s\");",
        "f(\"--driver sim\");\nf(\"--timeout 0.5s\");",
    ] {
        assert_eq!(count(short_timeouts, text), 1, "{text}");
    }
    for text in [
        "f(\"run --timeout 2s --rate 5\");",
        "f(\"run --timeout 2500ms\");",
        "f(\"run --connection-idle-timeout 1s\");",
        "f(\"run --timeout 50ms \\\n    --driver sim\");",
        "f(\"--timeout 0s\"); f(\"--timeout {time}\"); // --timeout 1s",
    ] {
        assert_eq!(count(short_timeouts, text), 0, "{text}");
    }
}

#[test]
fn upper_bounds_of_durations_are_offences() {
    for text in [
        "assert!(begun.elapsed() < Duration::from_millis(3_500));",
        "assert!(lost.took < Duration::from_secs(5), \"{x}\");",
        "assert!(\n    begun.elapsed() <= most);",
    ] {
        assert_eq!(count(duration_bounds, text), 1, "{text}");
    }
    for text in [
        "assert!(begun.elapsed() >= Duration::from_millis(5));",
        "assert!(begun.elapsed() < Duration::from_secs(60), \"nothing connects\");",
        "if begun.elapsed() < most {}",
    ] {
        assert_eq!(count(duration_bounds, text), 0, "{text}");
    }
}
