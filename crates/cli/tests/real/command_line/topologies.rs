//! Servers in a network of their own: `throng lab up --topology` and `[lab] topology`. Each test
//! has a temporary folder of its own, and looks for what is left where its servers were. Needs
//! root.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use measure::RunRecord;
use measure::line::Line;
use serde_json::Value;
use testing::folder::Folder;
use testing::host::is_root_for;
use testing::program::{Finished, execute, signal};

use crate::process::THRONG;

/// The servers of one test; all have ended when it is dropped.
pub(crate) struct Lab(pub(crate) Folder);

impl Lab {
    /// None without the rights that a network needs.
    pub(crate) fn new(test: &str) -> Option<Lab> {
        is_root_for("network namespaces").then(|| Lab(Folder::new(test)))
    }

    fn line(&self, words: &str) -> String {
        format!("env TMPDIR={} {words}", self.0.folder().display())
    }

    pub(crate) fn throng(&self, flags: &str) -> Finished {
        execute(&self.line(&format!("{THRONG} {flags}")))
    }

    /// Runs what was offered for a transport, with further flags.
    pub(crate) fn offered(&self, text: &str, transport: &str, flags: &str) -> RunRecord {
        let is_meant = |line: &&str| line.contains(&format!("--transport {transport} "));
        let offered = text.lines().find(is_meant).unwrap();
        let offered = offered
            .trim()
            .replace("throng run", &format!("{THRONG} run"));
        let flags = format!("{offered} --quiet --format json {flags}");
        RunRecord::from_json(&execute(&self.line(&flags)).succeeded()).unwrap()
    }

    fn list(&self) -> Vec<Value> {
        let json = self.throng("lab list --format json").succeeded();
        serde_json::from_str(&json).unwrap()
    }

    /// The network namespaces of what is in the list.
    pub(crate) fn namespaces(&self) -> Vec<String> {
        let all = self.list();
        let named = all.iter().filter_map(|it| it["namespaces"].as_array());
        let names = named.flatten().map(|it| it.as_str().unwrap().to_owned());
        names.collect()
    }

    /// Nothing of these servers is left.
    #[track_caller]
    pub(crate) fn check_empty(&self, namespaces: &[String]) {
        assert_eq!(self.list().len(), 0);
        let left: Vec<_> = fs::read_dir(self.0.folder()).unwrap().flatten().collect();
        let left = left.iter().filter(|it| {
            let name = it.file_name();
            name.to_string_lossy().starts_with("throng-")
        });
        assert_eq!(left.count(), 0);
        for name in namespaces {
            assert!(!is_there(name), "{name} is left");
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.throng("lab down --all");
    }
}

fn is_there(namespace: &str) -> bool {
    Path::new("/run/netns").join(namespace).exists()
}

/// The growth of a series that some source of a record has.
pub(crate) fn grown(record: &RunRecord, profile: &str, series: &str) -> Option<f64> {
    let mut observations = record.observations.iter();
    let found = observations.find(|it| it.profile == profile)?;
    found.series(series)?.growth
}

#[test]
fn a_server_in_a_network_of_its_own_is_asked_and_observed_and_goes_with_it() {
    let Some(lab) = Lab::new("topology-veth") else {
        return;
    };
    let text = lab.throng("lab up bind --topology veth").succeeded();
    let namespaces = lab.namespaces();
    assert_eq!(namespaces.len(), 2);
    assert!(namespaces.iter().all(|name| is_there(name)));
    for transport in ["udp", "tcp", "dot"] {
        let record = lab.offered(&text, transport, "--queries 200 --observe auto");
        assert_eq!(record.total.counts.rcodes.by_rcode[0], 200, "{transport}");
        // Its process, in the other namespace, and its statistics, on loopback in there.
        let counted = grown(&record, "bind", "queries");
        assert_eq!(counted, Some(200.0), "{transport}: {:#?}", record.warnings);
        let facts = &record.observations[1].facts;
        assert_eq!(facts.product.as_deref(), Some("BIND"), "{transport}");
        if transport == "udp" {
            let host = record.host_use.as_ref().unwrap();
            assert!(host.target_udp_drops.is_some(), "{host:?}");
        }
        let shared = "on this host, in another network namespace";
        assert!(record.warnings.iter().any(|it| it.contains(shared)));
    }
    lab.throng("lab down bind").succeeded();
    lab.check_empty(&namespaces);
}

#[test]
fn a_line_stays_with_its_server_and_says_what_it_did_when_they_end() {
    let Some(lab) = Lab::new("topology-line") else {
        return;
    };
    let text = lab
        .throng("lab up nsd --topology line:5ms/3ms,jitter=1ms")
        .succeeded();
    let namespaces = lab.namespaces();
    let record = lab.offered(&text, "udp", "--queries 100 --no-preflight");
    assert_eq!(record.total.counts.responses, 100);
    let least = record.total.distributions.service.min_ns();
    assert!(least >= Some(8_000_000), "{least:?}");
    let listing = lab.throng("lab list").succeeded();
    assert!(listing.contains("nsd-network (line:5ms/3ms,jitter=1ms): process"));
    let ended = lab.throng("lab down nsd");
    let said = ended.stderr.clone();
    ended.succeeded();
    for row in [
        "delay 5.000 ms 3.000 ms",
        "packets 100 100",
        "delivered 100 100",
    ] {
        let mut lines = said.lines();
        let is_row = |line: &str| line.split_whitespace().eq(row.split(' '));
        assert!(lines.any(is_row), "no `{row}`: {said}");
    }
    lab.check_empty(&namespaces);
}

#[test]
fn a_command_beside_a_server_is_at_the_other_end_of_its_line() {
    let Some(lab) = Lab::new("topology-command") else {
        return;
    };
    let run = "run --server $THRONG_UDP --names $THRONG_NAMES --queries 500 --no-preflight";
    let limits = "--timeout 2s --rate 1000 --quiet --format json";
    let test = lab.0.write("test", format!("{THRONG} {run} {limits}"));
    let finished = lab.throng(&format!(
        "lab up nsd --topology line:1ms,5%,seed=7 -- sh {test}"
    ));
    let said = finished.stderr.clone();
    let record = RunRecord::from_json(&finished.succeeded()).unwrap();
    let counts = &record.total.counts;
    assert_eq!(counts.sent, 500);
    let lost = counts.sent - counts.responses;
    // Losses there and back are all that there are.
    let row = said.lines().find(|line| line.contains("lost as specified"));
    let row = row.unwrap_or_else(|| panic!("{said}"));
    let numbers = row
        .split_ascii_whitespace()
        .filter_map(|it| it.parse::<u64>().ok());
    assert!(lost > 0);
    assert_eq!(numbers.sum::<u64>(), lost, "{said}");
    lab.check_empty(&[]);
}

#[test]
fn what_a_killed_command_left_of_a_network_is_found_named_and_removed() {
    let Some(lab) = Lab::new("topology-killed") else {
        return;
    };
    for topology in ["veth", "line:1ms"] {
        let kill = lab.0.write("kill", "kill -KILL $PPID; exec sleep 60");
        let finished = lab.throng(&format!("lab up nsd --topology {topology} -- sh {kill}"));
        assert_eq!(finished.code, None);
        let namespaces = lab.namespaces();
        assert!(namespaces.iter().all(|name| is_there(name)), "{topology}");
        let text = lab.throng("lab list").succeeded();
        assert!(text.contains(&format!("({topology}): left over")), "{text}");
        let next = lab.throng("lab up nsd");
        let told = "removed what was left over of `throng-network-";
        assert!(next.stderr.contains(told), "{}", next.stderr);
        next.succeeded();
        lab.throng("lab down nsd").succeeded();
        lab.check_empty(&namespaces);
    }
}

/// Runs a command about the experiment `text`.
pub(crate) fn experiment(lab: &Lab, text: &str, command: &str) -> Finished {
    let file = lab.0.write("topologies.toml", text);
    let command = command.replace("FILE", &file);
    lab.throng(&format!(
        "experiment {}",
        command.replace("OUT", &lab.0.path("out"))
    ))
}

const CELLS: &str = r#"
repeat = 1
[lab]
topology = ["loopback", "veth", "line:4ms/2ms,2%,seed=5"]

[run]
rate = 500
queries = 300
timeout = "2s"

[[server]]
product = "bind"
data = "zone:30,ttl=1s"
"#;

/// The record of the cell with that topology, and what its line did.
fn cell(lab: &Lab, topology: &str) -> (RunRecord, Option<Line>) {
    let name = format!("topology={topology},server=bind,r1");
    let text = |file: &str| fs::read_to_string(lab.0.path(&format!("out/{file}")));
    let record = text(&format!("records/{name}.json")).unwrap();
    let record = RunRecord::from_json(&record).unwrap();
    let line = text(&format!("lines/{name}.line")).ok();
    (
        record,
        line.map(|line| serde_json::from_str(&line).unwrap()),
    )
}

#[test]
fn topologies_are_cells_whose_lines_account_for_their_losses() {
    let Some(lab) = Lab::new("topology-cells") else {
        return;
    };
    let plan = experiment(&lab, CELLS, "plan FILE").succeeded();
    assert!(plan.contains("3 cells, 1 repetition: 3 runs"), "{plan}");
    experiment(&lab, CELLS, "run FILE --output OUT").succeeded();
    lab.check_empty(&[]);
    for topology in ["loopback", "veth"] {
        let (record, line) = cell(&lab, topology);
        assert_eq!(record.total.counts.responses, 300, "{topology}");
        assert_eq!(record.scenario.labels["topology"], topology);
        assert_eq!(grown(&record, "bind", "queries"), Some(300.0), "{topology}");
        assert!(line.is_none());
    }
    let (record, line) = cell(&lab, "line%3A4ms%2F2ms%2C2%25%2Cseed%3D5");
    let line = line.unwrap();
    let counts = &record.total.counts;
    let lost = line.to_far.lost_total() + line.to_near.lost_total();
    assert!(line.to_far.adds_up() && line.to_near.adds_up());
    // Beside the queries, the server was looked at before the run, asked for its version, and sent
    // echo requests, of which those after the last reply are not in the record.
    let echoes = record.network.echo.as_ref().unwrap().sent;
    let others = line.to_far.packets + line.to_far.not_read - counts.sent;
    let unanswered = counts.sent - counts.responses;
    assert!(unanswered > 0 && unanswered <= lost && lost <= unanswered + others);
    assert!(
        (echoes..echoes + 20).contains(&others),
        "{others}, {echoes}"
    );
    assert!(record.total.distributions.service.min_ns() >= Some(6_000_000));
    // What the server counted is what came out of the line.
    let arrived = grown(&record, "bind", "queries").unwrap() as u64;
    assert!(arrived >= counts.responses && arrived <= line.to_far.delivered);
    let results = experiment(&lab, CELLS, "results OUT").succeeded();
    let told = "4.000 ms, 2 % lost, back 2.000 ms, 2 % lost, no latency below 6.000 ms; lost ";
    assert!(results.contains(told), "{results}");
}

#[test]
fn an_interrupted_experiment_leaves_nothing_of_its_network() {
    let Some(lab) = Lab::new("topology-interrupted") else {
        return;
    };
    let text = CELLS.replace("queries = 300", "duration = \"60s\"");
    let text = text.replace("[\"loopback\", \"veth\", ", "[");
    let file = lab.0.write("topologies.toml", text);
    let mut command = Command::new(THRONG);
    command.args(["experiment", "run", &file, "--output", &lab.0.path("out")]);
    command.env("TMPDIR", lab.0.folder());
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("[1/1]")));
    // In mid-run, or before it.
    while lab.namespaces().is_empty() {
        assert!(child.try_wait().unwrap().is_none());
    }
    let namespaces = lab.namespaces();
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(lines);
    lab.check_empty(&namespaces);
}

#[test]
fn a_topology_that_cannot_be_is_refused_before_anything_runs() {
    let folder = Folder::new("topology-refused");
    let server = "[[server]]\nproduct = \"nsd\"\n";
    for (topology, error, hint) in [
        ("\"vethh\"", "no topology `vethh`", "loopback, veth"),
        ("\"line:soon\"", "delay: `soon`", "10ms"),
        ("\"line:10ms,2\"", "loss: `2`", "0.1%"),
        ("\"line:20s\"", "too long", "10s"),
        ("[]", "has no values", "a list"),
        ("[\"veth\", \"veth\"]", "occurs twice", "once"),
    ] {
        let text = format!("{server}[lab]\ntopology = {topology}\n");
        let file = folder.write("refused.toml", text);
        let planned = execute(&format!("{THRONG} experiment plan {file}"));
        planned.refused_with(error, hint);
    }
    let file = folder.write("refused.toml", "[lab]\ntopology = \"veth\"\n");
    let planned = execute(&format!("{THRONG} experiment plan {file}"));
    planned.refused_with("no server", "[[server]]");
    let up = execute(&format!("{THRONG} lab up nsd --topology cluster"));
    assert_eq!(up.code, Some(2));
    let told = "no topology `cluster`: write loopback, veth, kubernetes, or line:";
    assert!(up.stderr.contains(told), "{}", up.stderr);
}

#[test]
fn who_may_make_no_network_is_told_what_still_works() {
    if !is_root_for("network namespaces") {
        return;
    }
    let folder = Folder::new("topology-rights");
    let without = "setpriv --bounding-set=-sys_admin,-net_admin --inh-caps=-sys_admin,-net_admin";
    let run = |flags: &str| {
        let temporary = folder.folder().display();
        execute(&format!(
            "env TMPDIR={temporary} {without} {THRONG} {flags}"
        ))
    };
    for topology in ["veth", "line:1ms"] {
        run(&format!("lab up nsd --topology {topology}")).refused_with(
            "no network namespace can be made",
            "loopback needs no rights",
        );
    }
    let file = folder.write("cells.toml", CELLS);
    let output = folder.path("out");
    run(&format!("experiment run {file} --output {output}")).refused_with(
        "no network namespace can be made",
        "loopback needs no rights",
    );
    run("lab up nsd").succeeded();
    run("lab down nsd").succeeded();
}
