//! The same load, however it is divided, and the same agents for one run after the other.

use measure::RunRecord;
use serde_json::{Value, json};

use super::pieces::Fleet;
use crate::process::{THRONG, execute, measured, throng};

const LOAD: &str = "--clients 30 --per-client poisson:20 --seed 5 --workers 3 --duration 2s \
                    --interval 200ms --timeout 20s --driver epoll";

/// What does not depend on when anything happened, or where: what was asked for and decided, all
/// counts of warm-up and run, where intervals begin and end, and of each client how much it asked
/// and how much was answered. Left out are latencies, work of CPU, kernel and driver, hosts,
/// agents, workers, and in which interval a query was sent or answered.
fn untimed(record: &RunRecord) -> Value {
    let all = serde_json::to_value(record).unwrap();
    let mut asked = all["asked"].clone();
    for group in asked.as_array_mut().unwrap() {
        // How it is divided.
        group["run"]["generator"] = Value::Null;
    }
    let intervals = all["intervals"].as_array().unwrap().iter();
    let intervals = intervals.filter(|it| it["end_ns"].as_u64() <= all["measured_ns"].as_u64());
    let intervals: Vec<Value> = intervals
        .map(|it| json!([it["start_ns"], it["end_ns"]]))
        .collect();
    let groups = all["groups"].as_array().unwrap().iter();
    let groups: Vec<Value> = groups
        .map(|it| {
            let each = &it["experience"];
            let counts = [&it["total"]["counts"], &each["queries"], &each["responses"]];
            json!([it["name"], it["clients"], it["scenario"], counts])
        })
        .collect();
    json!({
        "versions": [all["schema_version"], all["throng_version"]],
        "scenario": all["scenario"], "asked": asked, "driver": all["driver"],
        "counts": [all["total"]["counts"], all["warmup"]["counts"]],
        "measured_ns": all["measured_ns"], "intervals": intervals, "groups": groups,
        "ended_by": all["ended_by"], "self_test": all["self_test"],
    })
}

#[test]
fn a_population_asks_the_same_in_one_process_three_processes_on_three_hosts_and_of_a_lead() {
    let fleet = Fleet::new("exact");
    let ssh = "#!/bin/sh\nshift\nexec sh -c \"exec $*\"\n";
    let ssh = fleet.folder.write("ssh", ssh);
    execute(&format!("chmod +x {ssh}")).succeeded();
    let lines = ["a", "b", "c"].map(|host| format!("{host} {THRONG}\n"));
    let hosts = fleet.folder.write("hosts", lines.concat());
    let load = fleet.load(LOAD);
    let alone = measured(&load);
    let divided = [
        measured(&format!("{load} --processes 3")),
        measured(&format!("{load} --hosts {hosts} --ssh {ssh}")),
        fleet.measured(LOAD),
        fleet.measured(LOAD),
    ];
    let counts = &alone.total.counts;
    assert!(counts.offered > 1_000, "{counts:?}");
    assert_eq!((counts.responses, counts.lost()), (counts.offered, 0));
    for (record, generators) in divided.iter().zip([1, 3, 3, 3]) {
        assert_eq!((record.generators, record.processes), (generators, 3));
        for (name, value) in untimed(record).as_object().unwrap() {
            assert_eq!(*value, untimed(&alone)[name], "{name}");
        }
        assert_eq!(record.check(), Ok(()));
    }
    // Both ends agree.
    assert_eq!(fleet.received(), 5 * counts.sent);
    for record in &divided {
        let of_workers: u64 = record.workers.iter().map(|it| it.queries).sum();
        assert_eq!(of_workers, counts.sent);
    }
    // The same agents have made both runs.
    let names = |record: &RunRecord| -> Vec<Option<String>> {
        record.agents.iter().map(|it| it.name.clone()).collect()
    };
    assert_eq!(names(&divided[3]), names(&divided[2]));
    for agent in &fleet.agents {
        assert_eq!(agent.stderr(), "");
    }
    fleet.end();
}

#[test]
fn searches_and_comparisons_are_made_by_a_lead() {
    let fleet = Fleet::new("commands");
    let load = fleet.load("--quiet --format json");
    let search = "--search rate --start 200 --max 400 --rounds 1 --trial-duration 1s --clients 6";
    let (code, stdout, stderr) = fleet.ask(&format!("capacity {search} {load}")).ended();
    assert!(matches!(code, Some(0 | 1)), "{stderr}");
    let capacity: Value = serde_json::from_str(&stdout).unwrap();
    let trials = capacity["trials"].as_array();
    assert!(trials.is_some_and(|it| it.len() >= 2), "{capacity}");
    let names = fleet.folder.path("names");
    let [udp, tcp] = fleet.servers;
    let transports = format!(
        "compare-transports --quiet --format json --server udp={udp} --server tcp={tcp} --names \
         {names} --clients 6 --rate 300 --duration 1s --transports udp,tcp"
    );
    let (code, stdout, stderr) = fleet.ask(&transports).ended();
    assert!(matches!(code, Some(0 | 1)), "{stderr}");
    let _: Value = serde_json::from_str(&stdout).unwrap();
    let status = throng("--version").succeeded();
    assert!(status.starts_with("throng"), "{status}");
    fleet.end();
}
