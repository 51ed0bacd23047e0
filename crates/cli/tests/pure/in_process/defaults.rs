//! Defaults from files and variables: which come first, and what is wrong with them.

use std::ffi::OsString;
use std::sync::atomic::{AtomicUsize, Ordering};

use cli::Call;
use measure::RunRecord;
use testing::folder::Folder;
use testing::program::Finished;

use crate::call::call;

/// Calls `throng` with variables.
fn throng(line: &str, variables: &[(&str, &str)]) -> Finished {
    let variables = variables.iter();
    call(Call {
        arguments: line.split_whitespace().map(Into::into).collect(),
        variables: variables
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .collect(),
        ..Call::default()
    })
}

/// Calls `throng` with a user's file.
fn with_file(line: &str, text: &str) -> Finished {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = Folder::new(&format!("defaults-{number}"));
    let file = folder.write("throng.toml", text);
    throng(line, &[("THRONG_CONFIG", &file)])
}

/// The record of a simulation that ends with exit code 0.
fn record(finished: Finished) -> RunRecord {
    RunRecord::from_json(&finished.succeeded()).unwrap()
}

const RUN: &str = "run --driver sim --quiet --format json";

#[test]
fn user_file_is_looked_for_in_both_places() {
    let folder = Folder::new("defaults-user");
    std::fs::create_dir_all(folder.path(".config/throng")).unwrap();
    folder.write(".config/throng/throng.toml", "[run]\nqueries = 7\n");
    let home = folder.path("");
    let at_home = record(throng(RUN, &[("HOME", &home)]));
    assert_eq!(at_home.total.counts.responses, 7);
    let xdg = folder.path(".config");
    let by_xdg = record(throng(
        RUN,
        &[("XDG_CONFIG_HOME", &xdg), ("HOME", "/nowhere")],
    ));
    assert_eq!(by_xdg.total.counts.responses, 7);
    let line = format!("{RUN} --queries 3");
    let none = record(throng(&line, &[("HOME", &home), ("THRONG_CONFIG", "none")]));
    assert_eq!(none.total.counts.responses, 3);
}

#[test]
fn variable_wins_over_file_and_what_is_typed_over_both() {
    let folder = Folder::new("defaults-order");
    let text = "[all]\nqueries = 20\n[run]\nqueries = 30\n[ping]\ncount = 1\n";
    let file = folder.write("throng.toml", text);
    let of_file = ("THRONG_CONFIG", file.as_str());
    let queries = |line: &str, variables: &[(&str, &str)]| {
        record(throng(line, variables)).total.counts.responses
    };
    assert_eq!(queries(RUN, &[of_file]), 30);
    assert_eq!(queries(RUN, &[of_file, ("THRONG_QUERIES", "40")]), 40);
    let closed = folder.write("closed.toml", "[run]\noutstanding = 9\n");
    let variables = [
        ("THRONG_CONFIG", closed.as_str()),
        ("THRONG_DURATION", "2s"),
        ("THRONG_RATE", "100"),
    ];
    assert_eq!(queries(RUN, &variables), 200);
    let typed = format!("{RUN} --queries 50");
    assert_eq!(queries(&typed, &[of_file, ("THRONG_QUERIES", "40")]), 50);
    let refused = format!("--no-defaults {RUN} --queries 60 --clients 1");
    let clients = ("THRONG_CLIENTS", "wrong");
    assert_eq!(queries(&refused, &[of_file, clients]), 60);
}

#[test]
fn default_that_contradicts_what_is_typed_is_dropped() {
    let text = "[run]\nrate = 1000\nqueries = 10\ntransport = \"tcp\"\n";
    let run = record(with_file(&format!("{RUN} --outstanding 5"), text));
    assert_eq!(run.total.counts.responses, 10);
    let arrival = format!("{:?}", run.scenario.arrival);
    assert!(arrival.contains("outstanding: 5"), "{arrival}");
    let run = record(with_file(&format!("{RUN} --tcp-fallback"), text));
    assert_eq!(run.scenario.transport.to_string(), "udp");
    let server = "[run]\nqueries = 10\nserver = \"192.0.2.1\"\ntls-ca = \"ca.pem\"\n";
    let run = record(with_file(RUN, server));
    assert!(run.simulation.is_some());
}

#[test]
fn switches_and_lists_are_written_as_toml_has_them() {
    let text = "[run]\nqueries = 10\nquiet = false\ndetails = true\nrcodes = \"SERVFAIL=1\"\n\
                fail-if = [\"loss > 50%\", \"goodput < 1\"]\n";
    let finished = with_file("run --driver sim", text);
    let output = finished.ended_with(3);
    assert!(output.contains("goodput"), "{output}");
    let quiet = throng(
        "run --driver sim --queries 5 --format json",
        &[("THRONG_QUIET", "no")],
    );
    quiet.succeeded();
    throng("run --driver sim", &[("THRONG_QUIET", "perhaps")])
        .refused_with("THRONG_QUIET: --quiet is `perhaps`", "write 1 or 0");
}

#[test]
fn scenario_says_more_than_a_default() {
    let folder = Folder::new("defaults-scenario");
    let scenario = folder.write("scenario.toml", "queries = 12\n[[clients]]\nrate = 100\n");
    let text = "[run]\nqueries = 5\nclients = 3\noutstanding = 8\nrate = 7\n";
    let run = record(with_file(&format!("{RUN} {scenario}"), text));
    assert_eq!(run.total.counts.responses, 12);
}

/// Files, with what their error and its hint say.
const FAULTS: &[(&str, &str, &str)] = &[
    (
        "[run]\nserver = ",
        "throng.toml, line 2: ",
        "https://toml.io",
    ),
    (
        "timeout = \"2s\"\n",
        "line 1: `timeout` is outside of a table",
        "[all]",
    ),
    (
        "[runn]\nrate = 1\n",
        "line 1: [runn] is not a command",
        "do you mean [run]?",
    ),
    (
        "[dnsperf]\nrate = 1\n",
        "line 1: [dnsperf] is not a command",
        "tables are [all]",
    ),
    (
        "[lab.upp]\n",
        "line 1: [lab.upp] is not a command",
        "do you mean [up]?",
    ),
    (
        "[run]\n\nduratoin = 1\n",
        "line 3: `throng run` has no flag `duratoin`",
        "`duration`",
    ),
    (
        "[all]\nqps = 1\n",
        "line 2: no command has a flag `qps`",
        "give --rate QPS",
    ),
    (
        "[run]\nquiet = \"yes\"\n",
        "line 2: `quiet` has a value",
        "write true or false",
    ),
    (
        "[run]\nrate = true\n",
        "line 2: `rate` is true",
        "write its value",
    ),
    (
        "[run]\nrate = [1, 2]\n",
        "line 2: `rate` is a list",
        "not repeated",
    ),
    (
        "[run]\nrate = 2024-01-01\n",
        "line 2: `rate` is a date",
        "write a text",
    ),
    (
        "[run]\ntimeout = \"soon\"\n",
        "line 2: invalid value 'soon'",
        "500ms",
    ),
    (
        "[all]\ntransport = \"carrier\"\n",
        "line 2: invalid value 'carrier'",
        "udp",
    ),
];

#[test]
fn faults_of_files_are_named_with_their_lines() {
    for (text, error, hint) in FAULTS {
        with_file("run --driver sim --queries 1", text).refused_with(error, hint);
    }
    throng("run", &[("THRONG_CONFIG", "/nowhere.toml")]).refused_with(
        "cannot read the defaults /nowhere.toml",
        "THRONG_CONFIG=none",
    );
    throng("run --driver sim", &[("THRONG_TIMEOUT", "soon")])
        .refused_with("THRONG_TIMEOUT: invalid value 'soon'", "500ms");
}

#[test]
fn value_for_all_commands_is_left_out_where_it_means_nothing() {
    let text = "[all]\nformat = \"json\"\nrate = \"1k\"\nqueries = 10\n";
    with_file("names records --count 1", text).succeeded();
    let run = record(with_file("run --driver sim --quiet", text));
    assert_eq!(run.total.counts.responses, 10);
}

#[test]
fn variables_that_mean_something_else_are_no_flags() {
    let variables = [
        ("THRONG_NAMES", "/nowhere/names.txt"),
        ("THRONG_ALLOW_PUBLIC", "1"),
        ("THRONG_NODE", "a"),
        ("THRONG_UDP", "127.0.0.1:1"),
        ("THRONG_ZONE", "eu-1"),
        ("THRONG_NO_SUCH_FLAG", "1"),
        ("THRONG_TEST_SECONDS", "1"),
    ];
    let run = record(throng(&format!("{RUN} --queries 5"), &variables));
    assert_eq!(run.total.counts.responses, 5);
    let names = throng("names records --count 1", &variables).succeeded();
    assert!(names.contains("throng.test"), "{names}");
    let refused = throng(
        "run --server 8.8.8.8 --random-labels example.org",
        &variables,
    );
    assert!(refused.refused().0.contains("8.8.8.8"));
    // A hook of an experiment: variables say what is varied.
    let hook = [("THRONG_EXPERIMENT", "a"), ("THRONG_QUERIES", "9")];
    let run = record(throng(&format!("{RUN} --queries 5"), &hook));
    assert_eq!(run.total.counts.responses, 5);
}

#[test]
fn refused_command_says_which_defaults_it_had() {
    let text = "[run]\nnames = \"/nowhere/names.txt\"\n";
    let finished = with_file("run --driver sim --queries 1", text);
    assert_eq!(finished.code, Some(2), "{}", finished.stderr);
    let lines: Vec<&str> = finished.stderr.lines().collect();
    assert!(lines[0].starts_with("error: cannot read"), "{lines:?}");
    let note = lines.last().unwrap();
    assert!(
        note.starts_with("note: defaults in force: --names"),
        "{note}"
    );
    assert!(note.ends_with("line 2)"), "{note}");
}

#[test]
fn config_shows_what_is_in_force_and_what_is_not() {
    let text = "[all]\ntimeout = \"2s\"\n[run]\nrate = 5\noutstanding = 7\n\
                tsig = \"k.example:c2VjcmV0\"\n[experiment.run]\nrepeat = 3\n";
    let shown = with_file("config", text).succeeded();
    for part in [
        "Defaults in force",
        "--timeout",
        "2s",
        "line 2",
        "--repeat",
        "experiment run",
        "Left out",
        "it contradicts",
        "(not shown)",
        "read",
    ] {
        assert!(shown.contains(part), "no {part}: {shown}");
    }
    assert!(!shown.contains("c2VjcmV0"), "{shown}");
    let of_run = with_file("config run", text).succeeded();
    assert!(!of_run.contains("--repeat"), "{of_run}");
    let none = throng("config", &[("THRONG_CONFIG", "none")]).succeeded();
    assert!(none.contains("none: THRONG_CONFIG=none"), "{none}");
    throng("config rnu", &[]).refused_with("`rnu` is not a command", "throng help");
}
