//! `--abort-if` on real sockets: the run ends early, and both ends have counted the same.

use std::process::Command;

use measure::{EndedBy, RunRecord};
use testing::folder::Folder;
use testing::program::Finished;

use crate::process::{Responder, THRONG};

const SERVFAIL: u16 = 2;

/// The record of a run that its condition has ended. It would take ten minutes otherwise. Some
/// queries are answered, however late it begins: a run without any response has an exit code of
/// its own.
fn aborted(folder: &Folder, responses: &str, condition: &str, flags: &str) -> RunRecord {
    let names = folder.write("names", "www.example. A\n");
    let responder = Responder::start("udp:127.0.0.1:0", responses);
    let server = responder.address();
    let line = format!(
        "run --quiet --format json --server {server} --rate 500 --clients 4 --timeout 2s \
         --names {names} --duration 600s --interval 200ms {flags}"
    );
    let mut command = Command::new("timeout");
    command.args(["--foreground", "--signal=KILL", "300", THRONG]);
    command.args(line.split_whitespace());
    // It may have blanks.
    command.args(["--abort-if", condition]);
    let finished = Finished::new(&line, command.output().unwrap());
    let record = RunRecord::from_json(&finished.ended_with(4)).unwrap();
    assert_eq!(record.ended_by, EndedBy::Aborted);
    let aborted = record.aborted.as_ref().unwrap();
    assert_eq!(aborted.condition, condition);
    assert!(record.measured_ns >= aborted.until_ns);
    assert!(
        record.measured_ns < 600_000_000_000,
        "{}",
        record.measured_ns
    );
    // Every query has ended, and the responder has received each.
    let counts = &record.total.counts;
    assert_eq!(counts.sent, counts.responses + counts.timeouts);
    let counters = responder.counters();
    assert_eq!(
        counters.get("queries received"),
        counts.sent,
        "{}",
        counters.0
    );
    record
}

/// The same with a server that answers three of a hundred queries.
fn check_loss(folder: &Folder, condition: &str, flags: &str) {
    let record = aborted(folder, "--loss 0.97", condition, flags);
    let value = record.aborted.as_ref().unwrap().value;
    assert!(value > 0.9, "{value}");
    assert!(record.total.counts.timeouts > 0);
}

#[test]
fn run_ends_when_its_server_answers_hardly_anything() {
    check_loss(&Folder::new("abort-one"), "loss>90%", "");
}

#[test]
fn run_ends_when_its_server_answers_servfail_for_a_second() {
    let folder = Folder::new("abort-servfail");
    let condition = "SERVFAIL > 10% for 1s";
    let record = aborted(&folder, "--rcodes SERVFAIL=0.5", condition, "");
    let value = record.aborted.as_ref().unwrap().value;
    assert!(value > 0.1, "{value}");
    let counts = &record.total.counts;
    assert!(counts.rcodes.of(&[SERVFAIL]) > 0, "{counts:?}");
}

#[test]
fn lead_ends_all_its_agents_by_a_condition_on_a_group() {
    let folder = Folder::new("abort-agents");
    let groups = "[[clients]]\nname = 'a'\n[[clients]]\nname = 'b'\n";
    let scenario = folder.write("s.toml", groups);
    // Agents send intervals of groups because of the condition.
    check_loss(&folder, "loss[b]>90%", &format!("--agents 2 {scenario}"));
}
