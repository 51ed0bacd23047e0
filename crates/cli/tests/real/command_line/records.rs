//! Records of runs on sockets: what they say of hosts, processes and targets.

use testing::folder::Folder;

use crate::conforms::offences;
use crate::process::throng;

/// Runs a small self-test, and returns the path of its record and what was printed.
fn recorded(folder: &Folder, name: &str, flags: &str) -> (String, String) {
    let file = folder.path(name);
    let stdout = throng(&format!("run --quiet --record {file} {flags}")).succeeded();
    (file, stdout)
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
fn runs_one_after_the_other_against_different_targets_are_not_merged() {
    let folder = Folder::new("merge");
    let (a, _) = recorded(&folder, "a.json", "--queries 100");
    let (b, _) = recorded(&folder, "b.json", "--queries 100");
    // Each built-in responder has its own port.
    let (error, hint) = throng(&format!("merge {a} {b}")).refused();
    for reason in [
        "the target of record 2 is ",
        "they share 0.0 % of their time",
    ] {
        assert!(error.contains(reason), "{reason}: {error}");
    }
    assert!(hint.contains("--force"), "{hint}");
}
