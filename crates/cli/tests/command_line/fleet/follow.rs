//! Commands that go and come back, files, and agents that stand still before the start.

use std::fs;

use measure::RunRecord;

use super::pieces::{Fleet, Made, intervals, until};
use crate::line::is_root;
use crate::process::execute;
use crate::processes::parts_of;

const LOAD: &str = "--clients 30 --rate 600 --arrival constant --interval 100ms --timeout 20s";

/// What `attach` shows and records of the run.
fn attached(fleet: &Fleet) -> (Vec<String>, RunRecord) {
    let path = fleet.folder.path("attached.json");
    let (code, _, stderr) = fleet.ask(&format!("fleet attach --record {path}")).ended();
    assert_eq!(code, Some(0), "{stderr}");
    let record = RunRecord::from_json(&fs::read_to_string(&path).unwrap()).unwrap();
    fs::remove_file(path).unwrap();
    let lines = intervals(&stderr).into_iter().map(str::to_owned);
    (lines.collect(), record)
}

/// Checks that there is a line for each interval of the record, in order, with what it has sent.
fn check_lines(lines: &[String], record: &RunRecord) {
    assert_eq!(lines.len(), record.intervals.len(), "{lines:#?}");
    for (line, interval) in lines.iter().zip(&record.intervals) {
        let mut words = line.split_whitespace();
        let ended = words.next().unwrap();
        assert_eq!(ended, format!("{:.1}", interval.end_ns as f64 / 1e9));
        let sent = words.nth(2).unwrap();
        assert_eq!(sent, interval.counts.sent.to_string(), "{line}");
    }
}

#[test]
fn a_command_that_is_killed_is_followed_by_another_without_gap_or_double() {
    let fleet = Fleet::new("attach");
    let run = fleet.run(&format!("{LOAD} --duration 4s"));
    run.wait_for_intervals(10);
    run.signal("KILL");
    let shown = run.stderr();
    let (lines, record) = attached(&fleet);
    assert_eq!(record.total.counts.responses, 2_400);
    check_lines(&lines, &record);
    let shown = intervals(&shown);
    assert_eq!(shown, lines[..shown.len()]);
    let path = fleet.folder.path("fetched.json");
    let (code, _, stderr) = fleet.ask(&format!("fleet fetch --record {path}")).ended();
    assert_eq!(code, Some(0), "{stderr}");
    let fetched = RunRecord::from_json(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(fetched, record);
    fleet.end();
}

#[test]
fn a_way_to_the_lead_that_breaks_twice_costs_nothing() {
    let fleet = Fleet::new("relay");
    let path = fleet.folder.path("record.json");
    let mut run = fleet.run(&format!("{LOAD} --duration 4s --record {path}"));
    let mut killed = 0;
    for number in [8, 20] {
        run.wait_for_intervals(number);
        let relays = || parts_of(run.child.id());
        until("a relay", || relays().iter().any(|it| *it != killed));
        killed = relays()[0];
        execute(&format!("kill -s KILL {killed}")).succeeded();
    }
    let (code, _, stderr) = run.ended();
    assert_eq!(code, Some(0), "{stderr}");
    let record = RunRecord::from_json(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(record.total.counts.responses, 2_400);
    let shown: Vec<String> = intervals(&stderr).into_iter().map(str::to_owned).collect();
    check_lines(&shown, &record);
    assert_eq!(attached(&fleet), (shown, record));
    fleet.end();
}

/// Names of 200 octets; 50 MB of them.
fn many_names() -> String {
    let label = "x".repeat(60);
    let name = |it: u32| format!("www-{it:07}.{label}.{label}.{label}.example. A\n");
    (0..255_000).map(name).collect()
}

#[test]
fn a_large_file_travels_once_to_agents_that_cannot_read_it() {
    let made = Made {
        has_paths: true,
        hides: is_root(),
        agents: 3,
        ..Made::default()
    };
    let fleet = Fleet::with("large", &made);
    let names = many_names();
    let octets = names.len() as u64;
    assert!(octets >= 50_000_000, "{octets}");
    let path = fleet.folder.write("hidden/names", names);
    let load = "--clients 6 --rate 300 --duration 1s --timeout 20s --quiet --format json";
    let server = fleet.servers[0];
    let came = || fleet.paths.iter().map(|it| it.came()).collect::<Vec<_>>();
    let run = |expected: &str| {
        let line = format!("run --server {server} --names {path} {load}");
        let (code, stdout, stderr) = fleet.ask(&line).ended();
        assert_eq!(code, Some(0), "{expected}: {stderr}");
        let record = RunRecord::from_json(&stdout).unwrap();
        assert_eq!(record.scenario.questions.count, 255_000);
        assert_eq!(record.total.counts.responses, 300);
    };
    run("first");
    let first = came();
    assert!(first.iter().all(|it| *it > octets), "{first:?} of {octets}");
    run("second");
    let second = came();
    println!("50 MB of names: {first:?} bytes to agents in the first run, then {second:?}");
    for (first, second) in first.iter().zip(&second) {
        assert!(second - first < 1_000_000, "{first} {second}");
    }
    fleet.end();
}

/// Its clock is known, and the others' are not yet: it has nothing left to say before the start.
#[test]
fn an_agent_that_stands_still_before_the_start_holds_all() {
    let made = Made {
        has_paths: true,
        agents: 3,
        ..Made::default()
    };
    let fleet = Fleet::with("barrier", &made);
    let mut run = fleet.run(
        "--transport tcp --clients 30 --connect-rate 5 --workers 3 --rate 300 --duration 1s \
         --timeout 100ms",
    );
    fleet.hold_before_the_start();
    fleet.agents[2].signal("STOP");
    fleet.paths[0].release();
    let (code, stdout, stderr) = run.ended();
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("agent 3 of 3 (3@"), "{stderr}");
    assert!(stderr.contains("has not reported"), "{stderr}");
    assert_eq!(fleet.received(), 0);
}
