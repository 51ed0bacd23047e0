//! Filters, pages, and records that changed after they were indexed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;

use measure::RunRecord;
use measure::metric::Metric;
use testing::example;
use testing::folder::Folder;

use super::{Filter, PAGE_ROWS, read_record};
use crate::index::History;

fn record(started_at: &str, target: &str, label: &str) -> RunRecord {
    let mut record = example::record(vec![example::interval(0, &[(1_000_000, 500)])]);
    record.self_test = false;
    record.scenario.server_name = None;
    record.started_at = started_at.to_owned();
    record.scenario.target = target.to_owned();
    record.scenario.labels = BTreeMap::from([("version".to_owned(), label.to_owned())]);
    record
}

/// Three records, the newest of which is in a subfolder.
fn furnished(test: &str) -> Folder {
    let folder = Folder::new(test);
    fs::create_dir(folder.path("night")).unwrap();
    for (file, day, target, label) in [
        ("a.json", "01", "192.0.2.1:53", "Alpha"),
        ("b.json", "02", "192.0.2.2:53", "100%_beta"),
        ("night/c.json", "03", "192.0.2.1:853", "gamma"),
    ] {
        let started = format!("2026-02-{day}T09:00:00Z");
        folder.write(file, record(&started, target, label).to_json());
    }
    folder
}

fn history(folder: &Folder) -> History {
    let mut history = History::open(folder.folder()).unwrap();
    history.update().unwrap();
    history
}

fn found(history: &History, text: &str) -> Vec<String> {
    let filter = Filter {
        text: text.to_owned(),
        ..Filter::default()
    };
    let page = history.search(&filter, 1).unwrap();
    assert_eq!(page.total, page.entries.len() as u64);
    page.entries.into_iter().map(|it| it.file).collect()
}

#[test]
fn newest_run_comes_first_and_text_is_found_in_names_targets_and_labels() {
    let folder = furnished("search-text");
    let history = history(&folder);
    let all = ["night/c.json", "b.json", "a.json"];
    for (text, expected) in [
        ("", &all[..]),
        ("NIGHT/", &all[..1]),
        ("192.0.2.1", &["night/c.json", "a.json"]),
        ("alpha", &["a.json"]),
        // No wildcards, and no SQL.
        ("%", &["b.json"]),
        ("_", &["b.json"]),
        ("' OR 1=1 --", &[]),
        // Facts that all runs share are not searched.
        ("udp", &[]),
    ] {
        assert_eq!(found(&history, text), expected, "{text}");
    }
}

#[test]
fn transport_and_verdict_filter_runs() {
    let folder = furnished("search-facts");
    let history = history(&folder);
    let limit = history.values_of("limit", 10).unwrap();
    assert_eq!(history.values_of("transport", 10).unwrap(), ["udp"]);
    for (transport, limit, expected) in [
        ("udp", "", 3),
        ("dot", "", 0),
        ("udp", limit[0].as_str(), 3),
        ("udp", "none such", 0),
    ] {
        let filter = Filter {
            transport: transport.to_owned(),
            limit: limit.to_owned(),
            ..Filter::default()
        };
        let page = history.search(&filter, 1).unwrap();
        assert_eq!(page.total, expected, "{transport} {limit}");
    }
}

#[test]
fn pages_are_bounded_and_the_last_one_stands_for_those_behind_it() {
    let folder = Folder::new("search-pages");
    let empty = history(&folder).search(&Filter::default(), 7).unwrap();
    assert_eq!((empty.number, empty.pages, empty.total), (1, 1, 0));
    let json = record("2026-02-01T09:00:00Z", "192.0.2.1:53", "x").to_json();
    for number in 0..=PAGE_ROWS {
        folder.write(&format!("{number:03}.json"), &json);
    }
    let history = history(&folder);
    for (asked, number, rows) in [
        (0, 1, PAGE_ROWS),
        (1, 1, PAGE_ROWS),
        (2, 2, 1),
        (u64::MAX, 2, 1),
    ] {
        let page = history.search(&Filter::default(), asked).unwrap();
        assert_eq!(page.number, number, "{asked}");
        assert_eq!(page.entries.len() as u64, rows, "{asked}");
        assert_eq!((page.total, page.pages), (PAGE_ROWS + 1, 2));
    }
}

#[test]
fn samples_are_the_newest_in_the_order_of_time() {
    let folder = furnished("search-samples");
    let history = history(&folder);
    let filter = Filter::default();
    let samples = history.samples((Metric::Qps, "version"), &filter, 2);
    let groups: Vec<String> = samples.unwrap().into_iter().map(|it| it.group).collect();
    assert_eq!(groups, ["100%_beta", "gamma"]);
    let samples = history.samples((Metric::Qps, "none"), &filter, 9).unwrap();
    assert_eq!(samples.len(), 3);
    assert!(
        samples
            .iter()
            .all(|it| it.group.is_empty() && it.value > 0.0)
    );
}

#[test]
fn record_that_changed_after_it_was_indexed_is_an_error() {
    let folder = furnished("search-changed");
    let outside = Folder::new("search-outside");
    let secret = outside.write("secret.json", fs::read(folder.path("a.json")).unwrap());
    assert!(read_record(folder.folder(), "a.json").is_ok());
    assert!(read_record(folder.folder(), "night/c.json").is_ok());
    symlink(folder.path("a.json"), folder.path("within.json")).unwrap();
    assert!(read_record(folder.folder(), "within.json").is_ok());
    let why = |file: &str| read_record(folder.folder(), file).unwrap_err();
    symlink(secret, folder.path("link.json")).unwrap();
    assert!(why("link.json").why.contains("leads out of the folder"));
    let above = format!("../{}/secret.json", name(&outside));
    assert!(why(&above).why.contains("leads out of the folder"));
    let absolute = outside.path("secret.json");
    assert!(why(&absolute).why.contains("leads out of the folder"));
    assert!(why("none.json").has_gone);
    assert!(why("night").why.contains("not a file"));
    let whole = fs::read_to_string(folder.path("a.json")).unwrap();
    folder.write("a.json", &whole[..whole.len() / 2]);
    assert!(!why("a.json").has_gone);
    folder.write("b.json", [0xff, 0xfe]);
    assert!(!why("b.json").has_gone);
}

fn name(folder: &Folder) -> String {
    let name = folder.folder().file_name().unwrap();
    name.to_string_lossy().into_owned()
}

#[test]
fn record_that_lies_is_no_run() {
    let folder = furnished("search-lies");
    let mut lying = record("2026-02-04T09:00:00Z", "192.0.2.1:53", "liar");
    lying.total.counts.responses += 1;
    folder.write("lying.json", lying.to_json());
    let mut history = History::open(folder.folder()).unwrap();
    let update = history.update().unwrap();
    assert_eq!((update.runs, update.unreadable.len()), (3, 1));
    assert_eq!(found(&history, "liar"), [""; 0]);
    assert!(read_record(folder.folder(), "lying.json").is_err());
}

#[test]
fn number_of_a_run_leads_to_its_file() {
    let folder = furnished("search-number");
    let history = history(&folder);
    let page = history.search(&Filter::default(), 1).unwrap();
    let newest = &page.entries[0];
    assert_eq!(history.file_of(newest.id).unwrap().unwrap(), newest.file);
    for id in [0, -1, i64::MAX] {
        assert_eq!(history.file_of(id).unwrap(), None);
    }
}

#[test]
fn many_new_records_are_taken_in_by_batches_and_counted() {
    let folder = Folder::new("search-batches");
    for number in 0..250 {
        folder.write(&format!("{number:03}.json"), "{}");
    }
    let mut history = History::open(folder.folder()).unwrap();
    let mut shown = Vec::new();
    let update = history.update_and_show(|read, all| {
        assert_eq!(all, 250);
        if read == 250 {
            // What an interruption would leave.
            let seen = History::open(folder.folder()).unwrap();
            let count = "SELECT count(*) FROM run";
            let count = seen.connection.query_row(count, [], |row| row.get(0));
            assert_eq!(count, Ok(200));
        }
        shown.push(read);
    });
    assert_eq!(update.unwrap().unreadable.len(), 250);
    assert_eq!(shown, (1..=250).collect::<Vec<u64>>());
    let again = history.update_and_show(|_, _| panic!("nothing is new"));
    assert_eq!(again.unwrap().unreadable.len(), 250);
}
