//! `--observe`: what a server tells of itself beside a run, and what happens where nobody does.

use std::fs;

use measure::RunRecord;
use testing::folder::Folder;
use testing::ports::ClosedTcpPort;

use crate::process::{Responder, measured, throng};

/// A run of a second against the responder in a process of its own: with fewer queries it may not
/// use a hundredth of a second of CPU time, in which the kernel counts it.
fn run(responder: &Responder, names: &str, more: &str) -> String {
    format!(
        "run --quiet --server {} --names {names} --rate 5k --duration 1s --timeout 20s {more}",
        responder.address()
    )
}

#[test]
fn auto_finds_the_process_behind_the_target_and_both_ends_are_in_the_record() {
    let folder = Folder::new("observe");
    let names = folder.write("names.txt", "a.example A\n");
    let responder = Responder::start("udp:127.0.0.1:0", "");
    for processes in ["", "--agents 2"] {
        let json = run(
            &responder,
            &names,
            &format!("--observe auto --format json {processes}"),
        );
        let json = throng(&json).succeeded();
        let record = RunRecord::from_json(&json).unwrap();
        let programs = record.programs();
        let facts = &programs[0].observation().facts;
        assert_eq!(facts.process_id, Some(responder.child.id()), "{processes}");
        assert_eq!(programs[0].name(), "throng");
        assert!(programs[0].cpus_used > 0.0, "{programs:#?}");
        let scrapes = &programs[0].observation().scrapes;
        assert!(scrapes.len() >= 2, "{scrapes:#?}");
        // Before the load, and after it.
        assert!(scrapes[0].at_ns < 0, "{scrapes:#?}");
        let last = scrapes.last().unwrap();
        assert!(last.at_ns > record.measured_ns as i64, "{scrapes:#?}");
        let warnings = record.warnings.join("\n");
        assert!(
            warnings.contains("`throng` is a product without a profile"),
            "{warnings}"
        );
    }
    let text = throng(&run(&responder, &names, "--observe auto --details")).succeeded();
    assert!(text.contains("\nServer\n"), "{text}");
    assert!(text.contains("CPU seconds per 1,000 queries"), "{text}");
    let csv = throng(&run(&responder, &names, "--observe auto --format csv")).succeeded();
    assert!(csv.contains("server_cpu"), "{csv}");
}

#[test]
fn a_source_that_tells_nothing_is_a_line_and_a_gap_and_the_run_goes_on() {
    let folder = Folder::new("observe-gap");
    let names = folder.write("names.txt", "a.example A\n");
    let responder = Responder::start("udp:127.0.0.1:0", "");
    let port = ClosedTcpPort::new();
    let closed = port.address();
    let sources = format!("--observe bind=http://{closed}/ --observe process=no-such-program");
    let observe = format!("{sources} --details");
    let text = throng(&run(&responder, &names, &observe)).succeeded();
    assert!(text.contains("Connection refused"), "{text}");
    assert!(text.contains("statistics-channels"), "{text}");
    assert!(text.contains("no process `no-such-program`"), "{text}");
    let json = throng(&run(
        &responder,
        &names,
        &format!("{observe} --format json"),
    ))
    .succeeded();
    let record = RunRecord::from_json(&json).unwrap();
    for observation in &record.observations {
        let cost = observation.cost();
        assert_eq!(cost.failed, cost.number, "{observation:#?}");
        assert!(!observation.notes.is_empty());
    }
    assert_eq!(record.total.counts.responses, 5_000);
}

#[test]
fn a_self_test_has_nothing_to_observe_but_its_host() {
    let record = measured("--rate 1k --duration 1s --observe auto --observe host");
    let warnings = record.warnings.join("\n");
    assert!(
        warnings.contains("there is nothing to observe"),
        "{warnings}"
    );
    assert_eq!(record.observations.len(), 1);
    assert_eq!(record.observations[0].profile, "host");
    assert!(record.programs().is_empty());
}

#[test]
fn the_servers_figures_are_conditions() {
    let folder = Folder::new("observe-conditions");
    let names = folder.write("names.txt", "a.example A\n");
    let responder = Responder::start("udp:127.0.0.1:0", "");
    let observed = |more: &str| throng(&run(&responder, &names, more));
    let busy = "--observe auto --fail-if server.cpu>0%";
    let failed = observed(busy);
    let said = "FAILED: --fail-if 'server.cpu>0%': server.cpu is ";
    assert!(failed.stderr.contains(said), "{}", failed.stderr);
    failed.ended_with(3);
    observed("--observe auto --fail-if server.cpu>100% --require server.cpu_per_query<1s")
        .succeeded();
    // Without anybody who looks, nothing is known.
    let unknown = observed("--require server.cpu<100%");
    assert!(
        unknown.stderr.contains("it takes --observe"),
        "{}",
        unknown.stderr
    );
    unknown.ended_with(3);
}

#[test]
fn histories_follow_the_servers_figures_over_its_versions() {
    let folder = Folder::new("observe-trend");
    let names = folder.write("names.txt", "a.example A\n");
    let responder = Responder::start("udp:127.0.0.1:0", "");
    let json = run(&responder, &names, "--observe auto --format json");
    let mut record = RunRecord::from_json(&throng(&json).succeeded()).unwrap();
    let records = folder.folder().join("records");
    fs::create_dir(&records).unwrap();
    for version in ["9.18.33", "9.20.26"] {
        let mut observations = record.observations.iter_mut();
        let process = observations.find(|it| it.profile == "process").unwrap();
        process.facts.version = Some(version.to_owned());
        let file = records.join(format!("{version}.json"));
        fs::write(file, record.to_json()).unwrap();
    }
    let trend = throng(&format!(
        "history trend server.cpu_per_query --by version --records {} --format json",
        records.display()
    ));
    let trend: serde_json::Value = serde_json::from_str(&trend.succeeded()).unwrap();
    let groups = trend["groups"].as_array().unwrap();
    let versions: Vec<&str> = groups
        .iter()
        .map(|it| it["value"].as_str().unwrap())
        .collect();
    assert_eq!(versions, ["9.18.33", "9.20.26"]);
    assert!(
        groups.iter().all(|it| it["median"].as_f64() > Some(0.0)),
        "{trend}"
    );
}
