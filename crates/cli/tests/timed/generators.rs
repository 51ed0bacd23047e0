//! Generators that cannot do what they are to do: what is said of them.

use std::fs;

use measure::{Limit, RunRecord};
use testing::folder::Folder;
use testing::quiet::{Disturbance, Quiet};
use testing::timed::{Attempt, on_quiet_host};

use crate::host::{on_quiet_machine, wrong_unless};
use crate::process::{Responder, throng};
use crate::running::{Running, children_of, signal_and_wait};

/// The shares of a run without those of the process that was stopped.
#[test]
fn a_process_that_was_stopped_for_a_second_makes_the_generator_the_limit() {
    on_quiet_host(Quiet::VERDICT, || {
        let folder = Folder::new("timed-stopped-process");
        let names = folder.write("names", "www.example. A\n");
        let path = folder.path("record.json");
        let responder = Responder::start("udp:127.0.0.1:0", "");
        let server = responder.address();
        let mut running = Running::begin(&format!(
            "--agents 3 --clients 30 --rate 600 --arrival constant --duration 3s \
             --interval 100ms --server {server} --names {names} --record {path}"
        ));
        running.wait_for_intervals(5);
        let agents = children_of(running.child.id());
        running.stop_for_a_second(agents[1], server);
        let (code, stdout, stderr) = running.ended();
        assert_eq!(code, Some(0), "{stderr}");
        let record = RunRecord::from_json(&fs::read_to_string(path).unwrap()).unwrap();
        let outcome = wrong_unless(record.verdict.limit == Limit::Generator, || stdout);
        Attempt {
            disturbance: Disturbance::of(&record),
            outcome,
        }
    });
}

#[test]
fn the_load_of_all_groups_is_whole_until_the_last_checkpoint_before_a_loss() {
    on_quiet_host(Quiet::VERDICT, || {
        let folder = Folder::new("timed-loss");
        let names = folder.write("names", "www.example. A\n");
        let path = folder.path("record.json");
        let scenario = folder.write(
            "scenario.toml",
            "[[clients]]\nname = 'soon'\ncount = 3\nper-client = 'constant:20'\nqueries = 30\n\
             [[clients]]\nname = 'late'\ncount = 6\nper-client = 'constant:50'\n",
        );
        let responder = Responder::start("udp:127.0.0.1:0", "");
        let server = responder.address();
        let mut running = Running::begin(&format!(
            "{scenario} --agents 3 --duration 10s --interval 100ms --server {server} \
             --names {names} --record {path}"
        ));
        running.wait_for_intervals(21);
        let agents = children_of(running.child.id());
        signal_and_wait(agents[1], "KILL");
        let (code, _, stderr) = running.ended();
        assert_eq!(code, Some(1), "{stderr}");
        let record = RunRecord::from_json(&fs::read_to_string(path).unwrap()).unwrap();
        let groups = record.groups.iter();
        let offered: Vec<u64> = groups.map(|it| it.total.counts.offered).collect();
        let due = 300 * record.measured_ns / 1_000_000_000;
        let outcome = wrong_unless(offered == [30, due], || format!("{offered:?} of {due}"));
        Attempt {
            disturbance: Disturbance::of(&record),
            outcome,
        }
    });
}

/// The first client is stuck in a function in C that is not interrupted, half a second on.
const HANGS: &str = include_str!("../real/command_line/hangs.lua");

#[test]
fn only_the_worker_that_does_not_end_is_left_behind() {
    let folder = Folder::new("timed-script-hangs");
    let path = folder.write("hangs.lua", HANGS);
    let flags = "--workers 2 --clients 4 --interval 100ms --duration 1s --delay 30ms";
    on_quiet_machine(Quiet::VERDICT, || {
        let line = format!("run --quiet --format json --script {path} {flags}");
        let record = RunRecord::from_json(&throng(&line).ended_with(1)).unwrap();
        let left_behind: Vec<bool> = record.workers.iter().map(|it| it.left_behind).collect();
        wrong_unless(left_behind == [true, false], || format!("{left_behind:?}"))
    });
}
