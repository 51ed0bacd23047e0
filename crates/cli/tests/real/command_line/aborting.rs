//! `--abort-if` on real sockets: the run ends early, and both ends have counted the same.

use measure::{EndedBy, RunRecord};
use testing::folder::Folder;

use crate::process::{Responder, throng};

/// The run would take ten minutes if its condition did not end it. Some queries are answered,
/// however late it begins: a run without any response has an exit code of its own.
fn check(folder: &Folder, condition: &str, flags: &str) {
    let names = folder.write("names", "www.example. A\n");
    let responder = Responder::start("udp:127.0.0.1:0", "--loss 0.97");
    let server = responder.address();
    let finished = throng(&format!(
        "run --quiet --format json --server {server} --rate 500 --clients 4 --timeout 2s \
         --names {names} --duration 600s --interval 200ms --abort-if {condition} {flags}"
    ));
    let record = RunRecord::from_json(&finished.ended_with(4)).unwrap();
    assert_eq!(record.ended_by, EndedBy::Aborted);
    let aborted = record.aborted.as_ref().unwrap();
    assert_eq!(aborted.condition, condition);
    assert!(aborted.value > 0.9, "{aborted:?}");
    assert!(record.measured_ns >= aborted.until_ns);
    assert!(
        record.measured_ns < 600_000_000_000,
        "{}",
        record.measured_ns
    );
    // Every query has ended, and the responder has received each.
    let counts = &record.total.counts;
    assert_eq!(counts.sent, counts.responses + counts.timeouts);
    assert!(counts.timeouts > 0, "{counts:?}");
    let counters = responder.counters();
    assert_eq!(
        counters.get("queries received"),
        counts.sent,
        "{}",
        counters.0
    );
}

#[test]
fn run_ends_when_its_server_answers_hardly_anything() {
    check(&Folder::new("abort-one"), "loss>90%", "");
}

#[test]
fn lead_ends_all_its_agents_by_a_condition_on_a_group() {
    let folder = Folder::new("abort-agents");
    let groups = "[[clients]]\nname = 'a'\n[[clients]]\nname = 'b'\n";
    let scenario = folder.write("s.toml", groups);
    // Agents send intervals of groups because of the condition.
    check(&folder, "loss[b]>90%", &format!("--agents 2 {scenario}"));
}
