//! `throng run --script` with scripts that do not end by themselves.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use measure::RunRecord;
use measure::record::EndedBy;
use testing::folder::Folder;
use testing::program::signal;

use testing::wait;

use crate::process::{THRONG, throng};

/// The first client moves all of a large table up again and again, from half a second on. A
/// function in C counts as one instruction, so it uses half a minute of CPU time until its
/// instructions are looked at.
const HANGS: &str = include_str!("hangs.lua");

#[test]
fn a_worker_that_does_not_end_is_left_behind_and_the_others_are_recorded() {
    let folder = Folder::new("script-hangs");
    let path = folder.write("hangs.lua", HANGS);
    let record = folder.path("record.json");
    for (flags, processes) in [("--workers 2", 1), ("--workers 2 --agents 2", 2)] {
        let finished = throng(&format!(
            "run --quiet --clients 4 --interval 100ms --duration 1s --script {path} {flags} \
             --delay 30ms --record {record}"
        ));
        let wanted = "error: worker 0 did not end with the run";
        assert!(finished.stderr.contains(wanted), "{}", finished.stderr);
        let text = finished.ended_with(1);
        assert!(text.contains("worker 0 did not end with the run"), "{text}");
        let json = std::fs::read_to_string(&record).unwrap();
        let record = RunRecord::from_json(&json).unwrap();
        assert_eq!(record.agent_count, processes);
        assert_eq!(record.simulation, None);
        let [stuck, _] = record.workers.as_slice() else {
            panic!("{:?}", record.workers);
        };
        assert!(stuck.left_behind, "{stuck:?}");
        let counts = &record.total.counts;
        assert!(counts.responses > 0);
        // The other client of the worker that is stuck waits for a response.
        assert!(counts.interrupted > 0);
        assert_eq!(counts.check_identity(), Ok(()));
        assert!(record.timeline.is_none());
    }
}

/// Seconds of CPU that a process has used.
fn cpu_seconds(child: &Child) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    // Behind the name, which may have blanks: the 14th and 15th field of all, in ticks, of which
    // Linux has 100 a second.
    let fields = stat.rsplit(')').next().unwrap().split_whitespace();
    let ticks = fields.skip(11).take(2).map(|it| it.parse::<u64>().unwrap());
    ticks.sum::<u64>() / 100
}

#[test]
fn a_simulation_that_is_stuck_is_left_behind_at_a_signal_with_its_record() {
    let folder = Folder::new("script-hangs-simulated");
    let path = folder.write("hangs.lua", HANGS);
    let record = folder.path("record.json");
    let line = format!(
        "run --quiet --driver sim --clients 4 --workers 2 --interval 100ms --duration 60s \
         --sim-delay 30ms --script {path} --record {record}"
    );
    let mut child = Command::new(THRONG)
        .args(line.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It is stuck by then on the slowest CPU: its tables take a tenth of a second on a fast one.
    // It looks long after that whether it is to end.
    wait::until_child(&mut child, "a script that is stuck", |child| {
        cpu_seconds(child) >= 2
    });
    signal(&child, "TERM");
    let mut said = String::new();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143), "{said}");
    assert!(said.contains("worker 0 did not end with the run"), "{said}");
    let json = std::fs::read_to_string(&record).unwrap();
    let record = RunRecord::from_json(&json).unwrap();
    assert!(record.simulation.is_some() && record.workers[0].left_behind);
    assert_eq!(record.ended_by, EndedBy::Interrupted);
    assert!(record.total.counts.responses > 0);
}
