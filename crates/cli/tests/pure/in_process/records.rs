//! Run records: `--record`, `throng report`, `throng merge`, `throng schema`.

use std::fs;

use measure::RunRecord;
use testing::folder::Folder;

use crate::call::{throng, throng_with};
use crate::conforms::offences;

/// Makes a simulated run, and returns the path of its record and what was printed.
fn recorded(folder: &Folder, name: &str, flags: &str) -> (String, String) {
    let file = folder.path(name);
    let stdout = throng(&format!("run --driver sim --quiet --record {file} {flags}")).succeeded();
    (file, stdout)
}

fn read(file: &str) -> RunRecord {
    RunRecord::from_json(&fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn a_record_is_what_the_run_printed_and_report_prints_again() {
    let folder = Folder::new("report");
    for transport in ["udp", "tcp", "dot"] {
        let flags = format!("--transport {transport} --queries 2000 --interval 1ms");
        for format in ["text", "json", "csv"] {
            let flags = format!("{flags} --format {format}");
            let (file, printed) = recorded(&folder, "record.json", &flags);
            let again = throng(&format!("report {file} --format {format}")).succeeded();
            assert_eq!(again, printed, "{flags}");
        }
        let file = folder.path("record.json");
        let json = throng(&format!("report {file} --format json")).succeeded();
        assert_eq!(json, fs::read_to_string(&file).unwrap());
        let text = throng(&format!("report {file} --details")).succeeded();
        let piped = throng_with("report - --details", json.as_bytes()).succeeded();
        assert_eq!(piped, text);
    }
}

#[test]
fn result_is_short_with_the_verdict_first_and_details_on_demand() {
    let folder = Folder::new("summary");
    let (file, short) = recorded(&folder, "record.json", "--queries 2000");
    assert!(short.lines().count() <= 25, "{short}");
    let first = short.lines().next().unwrap();
    assert!(
        first.starts_with("SIMULATION. Undecided: limit unknown. "),
        "{first}"
    );
    assert_eq!(throng(&format!("report {file}")).succeeded(), short);
    let (_, whole) = recorded(&folder, "other.json", "--queries 2000 --details");
    assert!(whole.contains("\nVerdict\n  limit: unknown, "), "{whole}");
    assert_eq!(
        throng(&format!("report {file} --details")).succeeded(),
        whole
    );
    let (error, hint) = throng(&format!("report {file} --details --format csv")).refused();
    assert!(
        error.contains("--details does nothing in this format"),
        "{error}"
    );
    assert!(hint.contains("--format text"), "{hint}");
    let other = folder.path("other.json");
    let (error, _) = throng(&format!("report {file} {other} --details")).refused();
    assert!(error.contains("2 runs: --details is of one run"), "{error}");
    let (error, _) = throng("capacity --driver sim --details").refused();
    assert!(error.contains("--details"), "{error}");
}

/// Five thousand intervals are kept as 625 of eight each, in every rendering.
#[test]
fn record_of_a_long_run_has_intervals_that_were_merged() {
    let folder = Folder::new("merged-intervals");
    let flags = "--rate 200 --duration 5s --interval 1ms --details";
    let (file, text) = recorded(&folder, "record.json", flags);
    let record = read(&file);
    assert_eq!(
        (
            record.intervals_merged,
            record.intervals_in_window().count()
        ),
        (8, 625)
    );
    assert_eq!(record.total.counts.offered, 1_000);
    let said = "of 8.000 ms: 8 of 1.000 ms each were merged, for the length of the run";
    assert!(text.contains(said), "{text}");
    for (form, wanted) in [
        ("markdown", said),
        ("csv", "\n624,4.992000000,5.000000000,"),
    ] {
        let report = throng(&format!("report {file} --format {form}")).succeeded();
        assert!(report.contains(wanted), "{form}: {report}");
    }
    let metrics = throng(&format!("report {file} --format dns-metrics")).succeeded();
    assert!(metrics.contains("\"stats_interval\":0.008"), "{metrics}");
    let compared = throng(&format!("compare {file} {file}")).succeeded();
    assert!(
        compared.contains("bootstrap of blocks of 78 intervals"),
        "{compared}"
    );
}

#[test]
fn records_agree_with_the_published_schema() {
    let schema = serde_json::from_str(&throng("schema").succeeded()).unwrap();
    for flags in [
        "--queries 2000 --transport tcp --queries-per-connection 100",
        "--queries 2000 --transport dot",
        "--rate 100 --duration 2s --interval 1ms",
        "--queries 200 --truncate 0.5 --tcp-fallback",
        "--rate 1k --duration 200ms --warmup 100ms --workers 2 --arrival poisson",
        "--queries 500 --sim-loss 0.1 --sim-duplicate 0.1",
        "--queries 200 --delay uniform:1us..9us --rcodes SERVFAIL=0.1 --end-after 9:error=3",
        "--queries 50 --sim-miss-time 1ms --sim-cache-ttl 1s --stall at=0s,for=1ms",
        "--queries 50 --tsig key:c2VjcmV0 --dnssec",
    ] {
        let json = throng(&format!("run --driver sim --quiet --format json {flags}")).succeeded();
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
    // One of them is there twice, and a simulation has no time that others can share.
    let (error, _) = throng(&format!("merge {a} {b} {a}")).refused();
    for reason in [
        "when record 2 or record 1 measured is not known: of a simulation",
        "record 3 has a run that is in record 1 already",
    ] {
        assert!(error.contains(reason), "{reason}: {error}");
    }
    let alone = throng(&format!("merge {a}")).succeeded();
    assert_eq!(alone, fs::read_to_string(&a).unwrap());

    let merged = throng(&format!("merge {a} {b} --force")).succeeded();
    let file = folder.path("merged.json");
    let silent = throng(&format!("merge {a} {b} --force --record {file}")).succeeded();
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

#[test]
fn records_of_different_scenarios_are_not_merged() {
    let folder = Folder::new("unlike");
    let (udp, _) = recorded(&folder, "udp.json", "--queries 100");
    let (tcp, _) = recorded(&folder, "tcp.json", "--queries 100 --transport tcp");
    let (open, _) = recorded(&folder, "open.json", "--rate 1k --queries 100");
    for (other, reason) in [
        (
            tcp,
            "scenario.transport of record 2 is tcp, of record 1 udp",
        ),
        (open, "scenario.arrival of record 2 is open loop"),
    ] {
        let (error, hint) = throng(&format!("merge {udp} {other}")).refused();
        assert!(
            error.starts_with("these records cannot be merged: "),
            "{error}"
        );
        assert!(error.contains(reason), "{error}");
        assert!(
            hint.starts_with("merge only records of one load") && !hint.contains("--force"),
            "{hint}"
        );
    }
}

#[test]
fn files_that_are_no_records_are_refused_with_the_place_at_fault() {
    let folder = Folder::new("no-record");
    let (good, _) = recorded(&folder, "good.json", "--queries 100");
    let text = fs::read_to_string(good).unwrap();
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from), "no {from} in {text}");
        folder.write("record.json", text.replacen(from, to, 1))
    };
    for (file, reason) in [
        (folder.path("missing.json"), "No such file or directory"),
        (folder.write("empty.json", ""), "not a run record"),
        (
            folder.write("names.txt", "a.example A\n"),
            "not a run record",
        ),
        (folder.write("binary.json", [0xff, 0xfe]), "not UTF-8"),
    ] {
        for command in ["report", "merge"] {
            let (error, _) = throng(&format!("{command} {file}")).refused();
            assert!(error.contains(&file) && error.contains(reason), "{error}");
        }
    }
    for (from, to, reason) in [
        (
            "\"schema_version\": \"4\"",
            "\"schema_version\": \"99\"",
            "schema version 99",
        ),
        ("\"generators\": 1", "\"generators\": \"one\"", "line "),
        ("\"offered\": 100", "\"offered\": 101", "contradicts itself"),
        (
            "\"generators\"",
            "\"generator_count\"",
            "unknown field `generator_count`",
        ),
    ] {
        let file = changed(from, to);
        let (error, _) = throng(&format!("report {file}")).refused();
        assert!(error.contains(&file) && error.contains(reason), "{error}");
    }
}
