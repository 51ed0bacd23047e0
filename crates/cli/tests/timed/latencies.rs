//! Times that are read back: no longer than what was asked for, and a little.

use measure::RunRecord;
use measure::evaluation::Versus;
use measure::{Evaluation, StampSource};
use testing::folder::Folder;
use testing::quiet::{Disturbance, Quiet};
use testing::timed::{Attempt, on_quiet_host};

use crate::fleet::{Fleet, record};
use crate::host::{on_quiet_machine, wrong_unless};
use crate::process::{Responder, measured, throng};
use crate::stopped;

const MS: u64 = 1_000_000;

/// An attempt that is a single run.
fn attempt(record: &RunRecord, outcome: Result<(), String>) -> Attempt {
    Attempt {
        disturbance: Disturbance::of(record),
        outcome,
    }
}

#[test]
fn evaluation_ranks_a_server_that_is_slower_by_its_delay() {
    let fast = Responder::start("udp:127.0.0.1:0", "--delay 1ms");
    let slow = Responder::start("udp:127.0.0.1:0", "--delay 20ms");
    let servers = format!("--server {} --server {}", slow.address(), fast.address());
    let flags = format!("a.example {servers} --count 12 --interval 10ms --format json");
    on_quiet_machine(Quiet::VERDICT, || {
        let json = throng(&format!("eval {flags}")).succeeded();
        let mut evaluation: Evaluation = serde_json::from_str(&json).unwrap();
        let rows = &evaluation.rows;
        let is_slower = match rows[0].versus {
            Versus::Slower {
                low_ns, high_ns, ..
            } => low_ns < high_ns && (5e6..60e6).contains(&low_ns),
            _ => false,
        };
        let is_right = is_slower && rows[1].versus == Versus::Fastest;
        let rows = format!("{rows:?}");
        evaluation.sort();
        let first = &evaluation.rows[0].server;
        let is_sorted = *first == fast.address().to_string();
        wrong_unless(is_right && is_sorted, || format!("{first} first of {rows}"))
    });
}

#[test]
fn ping_shows_the_delay_of_the_server_as_its_least_time() {
    let responder = Responder::start("udp:127.0.0.1:0", "--delay 3ms");
    let server = responder.address();
    let line = format!("ping www.example.com --server {server} --count 5 --interval 20ms");
    on_quiet_machine(Quiet::VERDICT, || {
        let text = throng(&line).succeeded();
        wrong_unless(text.contains("  response  3."), || text)
    });
}

#[test]
fn kernel_stamps_are_known_of_nearly_all_responses_in_each_interval() {
    let flags = "--timestamps kernel --delay 5ms --rate 500 --duration 600ms --interval 200ms";
    on_quiet_host(Quiet::VERDICT, || {
        let record = measured(flags);
        assert_eq!(record.scenario.timestamps, Some(StampSource::Kernel));
        let known = record.total.distributions.path.network.count();
        let mut intervals = record.intervals.iter();
        let in_each = intervals.all(|it| !it.distributions.path.is_empty());
        let outcome = wrong_unless(known >= 270 && in_each, || {
            format!("{known}: {:?}", record.total.counts.stamps)
        });
        attempt(&record, outcome)
    });
}

/// The run-queue wait of a process that is stopped does not grow.
#[test]
fn a_generator_that_was_stopped_shows_in_its_own_parts_alone() {
    on_quiet_host(Quiet::VERDICT, || {
        let record = stopped::record();
        let path = &record.total.distributions.path;
        let most = path.network.percentile(0.95);
        let is_right = path.reader.max_ns() > Some(300 * MS) && most < Some(100 * MS);
        let outcome = wrong_unless(is_right, || format!("95 % in {most:?}: {path:?}"));
        attempt(&record, outcome)
    });
}

#[test]
fn clocks_of_agents_are_compared_to_within_milliseconds() {
    on_quiet_host(Quiet::VERDICT, || {
        let fleet = Fleet::new("timed-clocks", &["here", "day", "day-2"]);
        let load = "--clients 30 --per-client poisson:20 --duration 1s --timeout 20s --seed 5";
        let record = record(fleet.run(&format!("{load} --workers 3")));
        let bounds = record.agents.iter().map(|it| it.clock.unwrap());
        let widest = bounds.map(|it| it.start_bound_ns).max().unwrap();
        // They began together: responses would come long after the end else.
        let drain_ns = record.phases.drain_ns;
        let outcome = wrong_unless(widest < 50 * MS && drain_ns < 5_000 * MS, || {
            format!("clocks to within {widest} ns, {drain_ns} ns after the end")
        });
        attempt(&record, outcome)
    });
}

#[test]
fn dnsperf_counts_the_wait_for_late_responses_and_no_more() {
    let responder = Responder::start("udp:127.0.0.1:0", "--delay 300ms");
    let folder = Folder::new("timed-run-time");
    let names = folder.write("names.txt", "a.example A\n");
    let port = responder.address().port();
    on_quiet_machine(Quiet::VERDICT, || {
        let stdout = throng(&format!("dnsperf -p {port} -d {names} -l 0.2")).succeeded();
        let seconds = stdout.split_once("Run time (s):").unwrap().1;
        let seconds: f64 = seconds.split_whitespace().next().unwrap().parse().unwrap();
        wrong_unless((0.3..2.0).contains(&seconds), || stdout)
    });
}
