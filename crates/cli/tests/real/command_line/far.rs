//! Agents of which one is at the far end of a line that is slow, or is cut. Needs root.

use std::fs;
use std::process::{Command, Stdio};

use measure::RunRecord;
use measure::record::EndedBy;
use testing::due;
use testing::folder::Folder;
use testing::host::is_root_for;
use testing::program::{self, execute};

use crate::laid::Laid;
use crate::process::{Responder, THRONG, throng};
use crate::running::Running;

/// A lead with its target and an agent at the near end, and an agent at the far end.
struct Fleet {
    lead: Running,
    agents: [program::Running; 2],
    responder: Responder,
    laid: Laid,
    folder: Folder,
}

impl Fleet {
    fn begin(test: &str, line: &str, run: &str) -> Fleet {
        let folder = Folder::new(test);
        let keys = folder.path("keys");
        throng(&format!("fleet keys {keys}")).succeeded();
        let laid = Laid::lay(test, line);
        let listen = "udp:10.98.0.1:0";
        let responder = Responder::start_by(laid.command(0, THRONG), listen, "");
        let record = folder.path("record.json");
        let mut command = laid.command(0, THRONG);
        command.args(["run", "--server", &responder.address().to_string()]);
        command.args(["--agents", "2", "--clients", "8", "--workers", "2"]);
        command.args(["--random-labels", "example", "--listen", "10.98.0.1:0"]);
        command.args(["--keys", &keys, "--record", &record]);
        command.args(run.split_whitespace());
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut lead = Running::from_command(command);
        let said = lead.wait_for("waiting for");
        let address = said.split(" at ").nth(1).unwrap();
        let address = address.split_whitespace().next().unwrap();
        let agents = [0, 1].map(|end| {
            let mut command = laid.command(end, THRONG);
            command.args(["fleet", "agent", address, "--keys", &keys]);
            command.args(["--index", &end.to_string()]);
            command.stdin(Stdio::null()).stderr(Stdio::null());
            program::Running(command.spawn().unwrap())
        });
        Fleet {
            lead,
            agents,
            responder,
            laid,
            folder,
        }
    }

    /// Exit codes of the lead and of the agents, the record, and what the target received.
    fn ended(mut self) -> ([Option<i32>; 3], RunRecord, u64) {
        let (code, _, said) = self.lead.ended();
        let [near, far] = self.agents.map(|mut it| it.wait().unwrap().code());
        let record = fs::read_to_string(self.folder.path("record.json"));
        let record = record.unwrap_or_else(|error| panic!("{error}: {said}"));
        let record = RunRecord::from_json(&record).unwrap();
        let received = self.responder.counters().get("queries received");
        ([code, near, far], record, received)
    }
}

#[test]
fn an_agent_a_second_away_takes_part_exactly() {
    if !is_root_for("network namespaces") {
        return;
    }
    let run = "--rate 100 --duration 2s --timeout 30s --no-preflight --barrier-timeout 2m";
    let (codes, record, received) = Fleet::begin("far-slow", "--delay 1s", run).ended();
    assert_eq!(codes, [Some(0); 3]);
    assert_eq!(record.generators, 2);
    due::assert_answered(&record, 200);
    assert_eq!(received, due::sent(&record));
    let clocks = record.agents.iter().map(|it| it.clock.unwrap());
    let bounds: Vec<u64> = clocks.map(|it| it.start_bound_ns).collect();
    // Half of a round trip of two seconds at least, and the other agent is none the worse for it.
    assert!(bounds.iter().any(|it| *it >= 1_000_000_000), "{bounds:?}");
    // Half of the queries took the line there and back.
    let slow = &record.total.distributions.service;
    assert!(slow.max_ns() >= Some(2_000_000_000));
}

/// Nothing passes any more, or nothing in one direction.
fn an_agent_is_cut_off(test: &str, cut: impl Fn(&str)) {
    if !is_root_for("network namespaces") {
        return;
    }
    let run = "--rate 400 --duration 1m --interval 100ms --timeout 2s --barrier-timeout 2m";
    let mut fleet = Fleet::begin(test, "--delay 1ms", run);
    // With a checkpoint of both.
    fleet.lead.wait_for_intervals(61);
    cut(&fleet.laid.between[1]);
    let (codes, record, received) = fleet.ended();
    assert_eq!(codes, [Some(1), Some(0), Some(97)]);
    assert_eq!(record.ended_by, EndedBy::AgentLost);
    let degraded = record.degraded.as_ref().unwrap();
    let [lost] = degraded.lost.as_slice() else {
        panic!("{degraded:?}")
    };
    let known = record.warmup.counts.sent + record.total.counts.sent + degraded.total.counts.sent;
    // What was sent into the cut line did not arrive.
    let range = known..=known + lost.fate_unknown_max;
    assert!(range.contains(&received), "{received} of {range:?}");
}

#[test]
fn an_agent_whose_line_is_cut_stops_sending_and_costs_only_its_time() {
    an_agent_is_cut_off("far-cut", |end| {
        let devices = execute(&format!("ip -n {end} -o link show")).succeeded();
        let names = devices.lines().filter_map(|it| it.split(": ").nth(1));
        for name in names.filter(|name| *name != "lo") {
            let name = name.split('@').next().unwrap();
            execute(&format!("ip -n {end} link set {name} down")).succeeded();
        }
    });
}

#[test]
fn an_agent_that_is_not_heard_any_more_stops_sending() {
    an_agent_is_cut_off("far-unheard", |end| drop_all(end, "output"));
}

#[test]
fn an_agent_that_hears_nothing_any_more_stops_sending() {
    an_agent_is_cut_off("far-deaf", |end| drop_all(end, "input"));
}

/// Drops all that passes that hook of an end.
fn drop_all(end: &str, hook: &str) {
    for rule in [
        "add table inet cut".to_owned(),
        format!("add chain inet cut passing {{ type filter hook {hook} priority 0; }}"),
        "add rule inet cut passing drop".to_owned(),
    ] {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", end, "nft", &rule]);
        assert!(command.status().unwrap().success(), "{rule}");
    }
}
