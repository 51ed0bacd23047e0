//! Records of runs on sockets: what they say of hosts, processes and targets.

use std::fs;

use measure::RunRecord;
use testing::folder::Folder;

use crate::conforms::offences;
use crate::process::throng;

/// Runs a small self-test, and returns the path of its record and what was printed.
fn recorded(folder: &Folder, name: &str, flags: &str) -> (String, String) {
    let file = folder.path(name);
    let stdout = throng(&format!("run --quiet --record {file} {flags}")).succeeded();
    (file, stdout)
}

fn read(file: &str) -> RunRecord {
    RunRecord::from_json(&fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn record_of_a_run_on_sockets_is_what_the_run_printed_and_report_prints_again() {
    let folder = Folder::new("report");
    for format in ["text", "json", "csv"] {
        let flags = format!("--transport dot --queries 2000 --interval 1ms --format {format}");
        let (file, printed) = recorded(&folder, "record.json", &flags);
        let again = throng(&format!("report {file} --format {format}")).succeeded();
        assert_eq!(again, printed, "{flags}");
    }
}

#[test]
fn records_of_runs_on_sockets_agree_with_the_published_schema() {
    let schema = serde_json::from_str(&throng("schema").succeeded()).unwrap();
    for flags in [
        "--queries 2000",
        "--queries 2000 --transport dot",
        "--rate 1k --duration 200ms --warmup 100ms --workers 2 --arrival poisson",
        "--queries 50 --local-address 127.0.0.0/30",
    ] {
        let json = throng(&format!("run --quiet --format json {flags}")).succeeded();
        let record = serde_json::from_str(&json).unwrap();
        assert_eq!(offences(&schema, &record), Vec::<String>::new(), "{flags}");
    }
}

#[test]
fn merging_adds_counts_and_one_record_stays_as_it_is() {
    let folder = Folder::new("merge");
    let (a, _) = recorded(&folder, "a.json", "--queries 1000 --clients 3");
    let (b, _) = recorded(
        &folder,
        "b.json",
        "--queries 500 --clients 4 --rcodes SERVFAIL=1",
    );
    // Runs one after the other, each against a target of its own, and one of them twice.
    let (error, hint) = throng(&format!("merge {a} {b} {a}")).refused();
    for reason in [
        "the target of record 2 is ",
        "they share 0.0 % of their time",
        "record 3 has a run that is in record 1 already",
    ] {
        assert!(error.contains(reason), "{reason}: {error}");
    }
    assert!(hint.contains("--force"), "{hint}");
    let alone = throng(&format!("merge {a}")).succeeded();
    assert_eq!(alone, fs::read_to_string(&a).unwrap());

    let merged = throng(&format!("merge {a} {b} --force")).succeeded();
    let file = folder.path("merged.json");
    let silent = throng(&format!("merge {a} {b} --force --output {file}")).succeeded();
    assert_eq!(silent, "");
    assert_eq!(fs::read_to_string(&file).unwrap(), merged);

    let (a, b, merged) = (read(&a), read(&b), read(&file));
    let mut counts = a.total.counts.clone();
    counts.add(&b.total.counts);
    assert_eq!(merged.total.counts, counts);
    assert_eq!(counts.offered, 1500);
    assert_eq!(counts.rcodes.by_rcode[..3], [1000, 0, 500]);
    let mut latency = a.total.distributions.latency.clone();
    latency.merge(&b.total.distributions.latency);
    assert_eq!(merged.total.distributions.latency, latency);
    assert_eq!((merged.generators, merged.scenario.clients), (2, 7));
    let text = throng(&format!("report {file}")).succeeded();
    assert!(text.contains("1,500"), "{text}");
    // Every rendering says that there was no such load.
    for form in ["text", "html", "markdown", "csv", "json", "dns-metrics"] {
        let text = throng(&format!("report {file} --format {form}"));
        let text = text.succeeded().to_lowercase();
        let is_marked = text.contains("merged by force") || text.contains("merged_by_force");
        assert!(is_marked, "{form}: {text}");
    }
    let compared = throng(&format!("compare {file} {file} --force")).succeeded();
    assert!(compared.contains("was merged by force"), "{compared}");
}
