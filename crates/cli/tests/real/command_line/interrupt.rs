//! Ctrl-C: the first ends the run with a complete record, the second ends the process.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use measure::RunRecord;
use measure::record::EndedBy;
use testing::folder::Folder;

use crate::process::{Responder, THRONG};
use crate::running::Running;

/// A run that would take a minute, once its first interval is over.
fn start(responder: &Responder, folder: &Folder, flags: &str) -> Running {
    let names = folder.write("names.txt", "a.example A\n");
    let record = folder.path("record.json");
    let address = responder.address();
    let line = format!(
        "run --server {address} --names {names} --record {record} --duration 60s --interval 50ms \
         {flags}"
    );
    // Whoever runs the tests may have SIGHUP ignored.
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP", THRONG]);
    command.args(line.split_whitespace()).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::from_command(command);
    running.wait_for_intervals(1);
    running
}

#[test]
fn the_first_interrupt_ends_the_run_with_a_complete_record() {
    for (listen, name, exit_code) in [
        ("udp:127.0.0.1:0", "INT", 130),
        ("tcp:127.0.0.1:0", "TERM", 143),
        ("udp:127.0.0.1:0", "HUP", 129),
    ] {
        let responder = Responder::start(listen, "");
        let folder = Folder::new("interrupt-first");
        let transport = &listen[..3];
        let flags = format!("--rate 500 --transport {transport}");
        let mut running = start(&responder, &folder, &flags);
        running.signal(name);
        running.wait_for("ending the run; waiting for open queries (interrupt again to abort)");
        let (code, stdout, _) = running.ended();
        assert_eq!(code, Some(exit_code), "{stdout}");
        assert!(stdout.starts_with("Interrupted. "), "{stdout}");
        assert!(stdout.contains("Everything else: "), "{stdout}");
        let json = fs::read_to_string(folder.path("record.json")).unwrap();
        // Reading it checks that everything adds up.
        let record = RunRecord::from_json(&json).unwrap();
        assert_eq!(record.ended_by, EndedBy::Interrupted);
        let counts = &record.total.counts;
        assert!(counts.sent > 0);
        assert_eq!(counts.responses, counts.sent);
        assert!(record.measured_seconds() < 30.0);
        assert_eq!(responder.counters().get("queries received"), counts.sent);
    }
}

#[test]
fn an_interrupted_run_does_not_wait_for_a_target_that_is_silent() {
    for listen in ["udp:127.0.0.1:0", "tcp:127.0.0.1:0"] {
        let responder = Responder::start(listen, "--loss 1");
        let folder = Folder::new("interrupt-silent");
        let transport = &listen[..3];
        let flags = format!("--rate 100 --timeout 50s --format json --transport {transport}");
        let mut running = start(&responder, &folder, &flags);
        running.signal("TERM");
        let (code, stdout, _) = running.ended();
        assert_eq!(code, Some(143), "{stdout}");
        let record = RunRecord::from_json(&stdout).unwrap();
        let counts = &record.total.counts;
        assert!(counts.sent > 0);
        assert_eq!((counts.interrupted, counts.timeouts), (counts.sent, 0));
        assert!(record.phases.drain_ns < 30_000_000_000);
    }
}

#[test]
fn the_second_interrupt_ends_the_process_and_leaves_no_record() {
    let responder = Responder::start("udp:127.0.0.1:0", "--loss 1");
    let folder = Folder::new("interrupt-second");
    // Open queries keep the run waiting.
    let mut running = start(&responder, &folder, "--rate 100 --timeout 50s");
    // Both have come when it goes on: two of its threads may take them, in either order.
    for name in ["STOP", "INT", "TERM", "CONT"] {
        running.signal(name);
    }
    let (code, stdout, _) = running.ended();
    assert!(matches!(code, Some(130 | 143)), "{code:?}");
    assert_eq!(stdout, "");
    assert!(!Path::new(&folder.path("record.json")).exists());
}
