//! Runs that are killed: what they had measured until their last checkpoint is beside the record.

use std::fs;
use std::path::Path;

use measure::RunRecord;
use measure::record::EndedBy;
use testing::folder::Folder;
use testing::wait;

use crate::process::{Responder, throng};
use crate::running::{Running, signal_and_wait};

const LOAD: &str = "--clients 30 --rate 600 --arrival constant --interval 100ms";

/// Kills a run after a checkpoint; then another one makes the record.
fn kill(name: &str, agents: &str) {
    let folder = Folder::new(name);
    let names = folder.write("names", "www.example. A\n");
    let responder = Responder::start("udp:127.0.0.1:0", "");
    let (path, kept) = (
        folder.path("record.json"),
        folder.path("record.json.checkpoint"),
    );
    let server = responder.address();
    let run = format!("--server {server} --names {names} --record {path} {LOAD} {agents}");
    let running = Running::begin(&format!("{run} --duration 60s"));
    wait::until("a checkpoint on disk", || Path::new(&kept).exists());
    signal_and_wait(running.child.id(), "KILL");
    assert!(!Path::new(&path).exists());
    let record = RunRecord::from_json(&fs::read_to_string(&kept).unwrap()).unwrap();
    assert_eq!(record.ended_by, EndedBy::Killed);
    assert!(record.total.counts.responses > 0);
    assert!(
        record.measured_ns >= 5_000_000_000,
        "{}",
        record.measured_ns
    );
    let text = throng(&format!("report {kept}")).succeeded();
    assert!(text.contains("Killed. "), "{text}");

    let finished = throng(&format!("run {run} --duration 1s"));
    assert!(
        finished.stderr.contains("before it was killed"),
        "{}",
        finished.stderr
    );
    finished.succeeded();
    assert!(Path::new(&path).exists() && !Path::new(&kept).exists());
    let whole = RunRecord::from_json(&fs::read_to_string(&path).unwrap()).unwrap();
    let sent = |record: &RunRecord| record.warmup.counts.sent + record.total.counts.sent;
    let received = responder.counters().get("queries received");
    assert!(received >= sent(&record) + sent(&whole), "{received}");
}

#[test]
fn a_killed_run_leaves_its_last_checkpoint() {
    kill("killed-run", "");
}

#[test]
fn a_killed_lead_leaves_the_last_checkpoint_of_all_agents() {
    kill("killed-lead", "--agents 3");
}
