//! Runs that lose one of their processes: the result is the last checkpoint of all of them.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use measure::record::EndedBy;
use measure::{Limit, RunRecord};

use crate::process::{Folder, Responder, execute, throng};
use crate::processes::{Running, parts_of, wait_until_gone};

/// Intervals between two checkpoints: a tenth of the run.
const BETWEEN: u64 = 6;
const INTERVAL_NS: u64 = 100_000_000;
const RUN: &str = "--processes 3 --duration 6s --interval 100ms --timeout 3s";

/// A run to whose second process something was done.
struct Lost {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    record: Option<RunRecord>,
    /// What the target received.
    received: u64,
    /// From then on.
    took: Duration,
}

/// Runs until so many intervals are over, and sends the second process signals.
fn signalled(
    name: &str,
    (flags, responder): (&str, &str),
    intervals: usize,
    signals: &str,
) -> Lost {
    let folder = Folder::new(name);
    let names = folder.write("names", "www.example. A\n");
    let responder = Responder::start("udp:127.0.0.1:0", responder);
    let path = folder.path("record.json");
    let server = responder.address();
    let mut running = Running::begin(&format!(
        "{RUN} --server {server} --names {names} --record {path} {flags}"
    ));
    running.wait_for_intervals(intervals);
    let parts = parts_of(running.child.id());
    assert_eq!(parts.len(), 3);
    let begun = Instant::now();
    let second = parts[1].to_string();
    let line = signals.replace("PID", &second);
    let status = Command::new("sh").args(["-c", &line]).status().unwrap();
    assert!(status.success(), "{line}");
    let (code, stdout, stderr) = running.ended();
    let took = begun.elapsed();
    wait_until_gone(&parts);
    let record = fs::read_to_string(path).ok();
    Lost {
        code,
        stdout,
        record: record.map(|text| RunRecord::from_json(&text).unwrap_or_else(|it| panic!("{it}"))),
        received: responder.counters().get("queries received"),
        stderr,
        took,
    }
}

fn lost(name: &str, run: (&str, &str), intervals: usize) -> Lost {
    signalled(name, run, intervals, "kill -s KILL PID")
}

/// Checks the result of a run that lost its second process after so many intervals.
fn check<'a>(lost: &'a Lost, intervals: u64, how: &str) -> &'a RunRecord {
    assert_eq!(lost.code, Some(1), "{}", lost.stderr);
    let told = format!("process 2 was lost ({how}");
    assert!(lost.stderr.contains(&told), "{}", lost.stderr);
    assert!(
        lost.stdout.contains("a part of the generator was lost"),
        "{}",
        lost.stdout
    );
    let record = lost.record.as_ref().unwrap();
    assert_eq!(record.ended_by, EndedBy::AgentLost);
    assert_eq!(record.processes, 3);
    assert!(record.timeline.is_some());
    // No checkpoint is lost that all had told.
    assert_eq!(record.measured_ns % (BETWEEN * INTERVAL_NS), 0);
    assert!(record.measured_ns >= intervals / BETWEEN * BETWEEN * INTERVAL_NS);
    let degraded = record.degraded.as_ref().unwrap();
    let [process] = degraded.lost.as_slice() else {
        panic!("{degraded:?}");
    };
    assert_eq!(process.process, 2);
    assert!(process.how.starts_with(how), "{process:?}");
    assert_eq!(degraded.survivors, 2);
    assert!(process.noticed_ns >= record.measured_ns);
    // Nothing that was sent is missing, and nothing that was not is there.
    let known = record.warmup.counts.sent + record.total.counts.sent + degraded.total.counts.sent;
    let range = known + process.sent..=known + process.fate_unknown_max;
    assert!(
        range.contains(&lost.received),
        "{} of {range:?}",
        lost.received
    );
    record
}

#[test]
fn a_run_that_loses_a_process_ends_with_the_last_checkpoint_of_all() {
    let open = "--clients 30 --rate 600 --arrival constant";
    let lost = lost("losses-end", (open, ""), 20);
    let record = check(&lost, 20, "signal 9");
    assert!(record.measured_ns < 5_000_000_000, "{}", record.measured_ns);
    assert!(lost.took < Duration::from_millis(3_500), "{:?}", lost.took);
    // The load was all there until then.
    let due = 600 * record.measured_ns / 1_000_000_000;
    assert_eq!(record.total.counts.offered, due);
    assert_eq!(record.groups[0].clients, 30);
    assert_eq!(record.workers.len(), 3);
    // A schedule bounds what nobody knows of.
    let degraded = record.degraded.as_ref().unwrap();
    let most = degraded.lost[0].fate_unknown_max;
    assert!(
        most <= 200 * degraded.lost[0].noticed_ns.div_ceil(1_000_000_000),
        "{most}"
    );
}

#[test]
fn the_others_go_on_if_asked_and_what_they_do_is_told_apart() {
    let closed = "--clients 30 --outstanding 9 --warmup 500ms --on-agent-loss continue";
    let lost = lost("losses-continue", (closed, "--delay 5ms"), 15);
    let record = check(&lost, 15, "signal 9");
    let degraded = record.degraded.as_ref().unwrap();
    assert!(record.measured_ns < 5_000_000_000);
    assert!(degraded.total.end_ns >= 6_000_000_000, "{degraded:?}");
    assert!(degraded.total.counts.responses > 0);
    let counts = &record.total.counts;
    assert!(
        counts.interrupted > 0 && counts.interrupted <= 9,
        "{counts:?}"
    );
    assert_eq!(counts.lost(), 0);
}

#[test]
fn there_is_no_result_if_that_was_asked_for_or_before_the_first_checkpoint() {
    let open = "--clients 30 --rate 600";
    for (flags, intervals) in [
        (format!("{open} --on-agent-loss fail"), 20),
        (open.to_owned(), 1),
    ] {
        let lost = lost("losses-fail", (&flags, ""), intervals);
        assert_eq!(
            (lost.code, lost.stdout.as_str()),
            (Some(1), ""),
            "{}",
            lost.stderr
        );
        assert!(lost.stderr.contains("process 2 of 3"), "{}", lost.stderr);
        assert!(
            lost.stderr.contains("there is no result"),
            "{}",
            lost.stderr
        );
        assert!(lost.record.is_none());
    }
}

#[test]
fn a_process_that_is_lost_while_the_last_responses_are_waited_for_costs_nothing_of_the_run() {
    let slow = "--clients 30 --rate 600 --arrival constant --on-agent-loss continue";
    let lost = lost("losses-drain", (slow, "--delay 2s"), 60);
    let record = check(&lost, 60, "signal 9");
    assert_eq!(record.measured_ns, 6_000_000_000);
    assert_eq!(record.total.counts.offered, 3_600);
    assert!(
        record.total.counts.interrupted >= 1_000,
        "{:?}",
        record.total.counts
    );
}

#[test]
fn a_process_that_stands_still_for_good_is_lost_and_one_that_goes_on_is_late() {
    let open = "--clients 30 --rate 600 --arrival constant";
    let stopped = signalled(
        "losses-stopped",
        (&format!("{open} --on-agent-loss continue"), ""),
        20,
        "kill -s STOP PID",
    );
    let record = check(&stopped, 20, "said nothing for 1");
    assert!(record.measured_ns < 5_000_000_000);
    let late = signalled(
        "losses-late",
        (open, ""),
        20,
        "kill -s STOP PID; sleep 2; kill -s CONT PID",
    );
    assert_eq!(late.code, Some(0), "{}", late.stderr);
    let record = late.record.unwrap();
    assert_eq!(record.total.counts.offered, 3_600);
    assert!(record.degraded.is_none());
    assert_eq!(record.verdict.limit, Limit::Generator, "{}", late.stdout);
}

/// Clients that have asked all that they had to ask are at the checkpoints of the others too.
#[test]
fn groups_that_have_ended_are_in_the_result() {
    let scenario = Folder::new("losses-groups-scenario");
    let scenario = scenario.write(
        "scenario.toml",
        "[[clients]]\nname = 'soon'\ncount = 3\nper-client = 'constant:20'\nqueries = 30\n\
         [[clients]]\nname = 'late'\ncount = 6\nper-client = 'constant:50'\n",
    );
    let lost = lost("losses-groups", (&scenario, ""), 33);
    let record = check(&lost, 33, "signal 9");
    assert!((3_000_000_000..5_000_000_000).contains(&record.measured_ns));
    let each: Vec<(&str, u64, u64)> = (record.groups.iter())
        .map(|group| {
            (
                group.name.as_str(),
                group.clients,
                group.total.counts.offered,
            )
        })
        .collect();
    let due = 300 * record.measured_ns / 1_000_000_000;
    assert_eq!(each, [("soon", 3, 30), ("late", 6, due)]);
}

#[test]
fn a_process_that_is_lost_before_the_load_ends_the_run() {
    let warmup = "--clients 30 --rate 600 --warmup 60s";
    let folder = Folder::new("losses-warm-up");
    let names = folder.write("names", "www.example. A\n");
    let responder = Responder::start("udp:127.0.0.1:0", "");
    let server = responder.address();
    let mut running = Running::begin(&format!("{RUN} --server {server} --names {names} {warmup}"));
    let parts = running.parts(3);
    execute(&format!("kill -s KILL {}", parts[2])).succeeded();
    let (code, stdout, stderr) = running.ended();
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("there is no result"), "{stderr}");
    wait_until_gone(&parts);
}

#[test]
fn a_long_run_in_processes_has_to_say_what_it_does_when_one_is_lost() {
    throng("run --processes 2 --rate 10 --clients 4 --duration 31m")
        .refused_with("more than 30 minutes in 2 processes", "--on-agent-loss");
}
