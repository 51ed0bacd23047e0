//! Run records, and the documents of other commands, as somebody may have changed them: refused in
//! words, or rendered, judged, merged and compared; what is made of them can be read again.
//!
//! Mutated JSON is hardly ever a record. So octets are changes of records that were made by runs
//! (`fuzz/records`), unless they are JSON themselves.

#![no_main]

mod shared;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use measure::ab::{AbComparison, Settings, Side, doubts};
use measure::doctor::{of_run, of_runs};
use measure::merge::Misfits;
use measure::statistics::Bootstrap;
use measure::{RunRecord, merge};
use report::doctor::OfRuns;
use report::{Answer, Collection, Source};
use serde_json::{Number, Value};
use shared::faults::check_words;

/// Octets of a change: what is done, where, and with which value.
const CHANGE_OCTETS: usize = 4;
/// Changes to one document; more are hardly ever still one.
const CHANGES_MAX: usize = 12;
/// What stands where an interval stands that is all of the run.
const OF_ALL: [&str; 3] = ["/intervals/0/", "/total/", "/groups/0/total/"];

struct Base {
    document: Value,
    /// JSON pointers of everything in it that is no list or object with something in it.
    leaves: Vec<String>,
}

static BASES: LazyLock<Vec<Base>> = LazyLock::new(|| {
    let texts = [
        include_str!("../records/udp.json"),
        include_str!("../records/simulated.json"),
        include_str!("../records/dot.json"),
        include_str!("../records/capacity.json"),
        include_str!("../records/ramp.json"),
        include_str!("../records/transports.json"),
        include_str!("../records/sides.json"),
    ];
    let base = |text| {
        let document: Value = serde_json::from_str(text).expect("a file of ours");
        let mut leaves = Vec::new();
        find_leaves(&document, String::new(), &mut leaves);
        Base { document, leaves }
    };
    texts.into_iter().map(base).collect()
});

fn find_leaves(value: &Value, pointer: String, leaves: &mut Vec<String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, field) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                find_leaves(field, format!("{pointer}/{key}"), leaves);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                find_leaves(item, format!("{pointer}/{index}"), leaves);
            }
        }
        _ => leaves.push(pointer),
    }
}

/// Numbers at which something changes, and what is no number.
fn value(choice: u8) -> Value {
    const NUMBERS: [u64; 14] = [
        0,
        1,
        2,
        3,
        7,
        1_000,
        65_535,
        1_000_000_000,
        1 << 32,
        1 << 36,
        (1 << 53) - 1,
        1 << 53,
        1 << 63,
        u64::MAX,
    ];
    const FRACTIONS: [f64; 7] = [-1.0, -0.0, 0.5, 1.5, 1e9, f64::MIN_POSITIVE, f64::MAX];
    const TEXTS: [&str; 10] = [
        "",
        "x",
        "0",
        "-1",
        "1/0",
        "\u{1b}[2J\n",
        "=1+1",
        "<script>&",
        "[::1]:53",
        "340282366920938463463374607431768211455",
    ];
    let choice = usize::from(choice);
    match choice / 32 {
        0..=3 => NUMBERS[choice % NUMBERS.len()].into(),
        4 => Number::from_f64(FRACTIONS[choice % FRACTIONS.len()]).map_or(Value::Null, Value::from),
        5 => TEXTS[choice % TEXTS.len()].into(),
        6 => (choice % 2 == 0).into(),
        _ => [Value::Null, Value::Array(Vec::new()), serde_json::json!({})][choice % 3].clone(),
    }
}

/// The place itself, and those that have to be the same for the record to agree with itself.
fn places(pointer: &str) -> Vec<String> {
    let found = OF_ALL
        .iter()
        .find_map(|prefix| pointer.strip_prefix(prefix));
    match found {
        Some(rest) => OF_ALL
            .iter()
            .map(|prefix| format!("{prefix}{rest}"))
            .collect(),
        None => vec![pointer.to_owned()],
    }
}

fn add(document: &mut Value, pointer: &str, number: u64) {
    if let Some(place) = document.pointer_mut(pointer)
        && let Some(before) = place.as_u64()
    {
        *place = before.wrapping_add(number).into();
    }
}

fn change(base: &Base, document: &mut Value, change: &[u8]) {
    let at = usize::from(u16::from_be_bytes([change[1], change[2]]));
    let pointer = &base.leaves[at % base.leaves.len()];
    let value = value(change[3]);
    match change[0] % 4 {
        0 | 1 => {
            for pointer in places(pointer) {
                if let Some(place) = document.pointer_mut(&pointer) {
                    *place = value.clone();
                }
            }
        }
        2 => {
            let (parent, key) = pointer.rsplit_once('/').unwrap_or_default();
            if let Some(Value::Object(fields)) = document.pointer_mut(parent) {
                fields.remove(key);
            }
        }
        // Queries without a response, which leave the sums right.
        _ => {
            let queries = value.as_u64().unwrap_or(1);
            let causes = [
                "timeouts",
                "connection_losses",
                "exchange_failures/malformed",
            ];
            for part in OF_ALL {
                for count in ["offered", "sent", causes[at % causes.len()]] {
                    add(document, &format!("{part}counts/{count}"), queries);
                }
            }
        }
    }
}

/// The document that the octets stand for.
fn document(octets: &[u8]) -> Option<String> {
    if octets.first() == Some(&b'{') {
        return String::from_utf8(octets.to_vec()).ok();
    }
    let (&choice, changes) = octets.split_first()?;
    let base = &BASES[usize::from(choice) % BASES.len()];
    let mut document = base.document.clone();
    for octets in changes.chunks_exact(CHANGE_OCTETS).take(CHANGES_MAX) {
        change(base, &mut document, octets);
    }
    Some(document.to_string())
}

fn source(file: &str, record: &RunRecord) -> Source {
    Source::new(file, record.clone())
}

/// The same run in words that any run has.
fn render(record: &RunRecord) {
    let again = RunRecord::from_json(&record.to_json()).expect("what was read is read again");
    assert_eq!(&again, record);
    report::text::render(record);
    report::json::render(record);
    report::csv::render(record);
    let _ = report::dns_metrics::render(record);
    let mut concluded = record.clone();
    concluded.conclude();
    concluded.check().expect("conclusions contradict nothing");
}

/// Reports on one run and on two, in every form.
fn report(sources: &[Source]) {
    for count in 1..=sources.len() {
        let collection = Collection::new(sources[..count].to_vec()).expect("there is one");
        let document = report::several::document(&collection);
        report::html::render(&document);
        report::plain::markdown(&document);
        report::plain::text(&document);
        report::collection::csv(&collection);
        report::collection::json(&collection);
    }
    let records: Vec<&RunRecord> = sources.iter().map(|source| &source.record).collect();
    let each: Vec<_> = records.iter().map(|record| of_run(record)).collect();
    let found = OfRuns {
        sources,
        each: &each,
        together: &of_runs(&records),
    };
    found.text();
    found.json();
}

fn merge_with(record: &RunRecord, other: &RunRecord) {
    for misfits in [Misfits::Refused, Misfits::Forced] {
        match merge(vec![record.clone(), other.clone()], misfits) {
            Ok(merged) => {
                RunRecord::from_json(&merged.to_json()).expect("what was merged is a record");
                report::text::render(&merged);
            }
            Err(misfits) => assert!(!misfits.is_empty()),
        }
    }
}

fn compare(record: &RunRecord, other: &RunRecord) {
    let side = |label: &str, record| Side {
        label: label.to_owned(),
        runs: vec![(label.to_owned(), record)],
    };
    let (a, b) = (side("a", record), side("b", other));
    doubts(&a, &b);
    let settings = Settings {
        bootstrap: Bootstrap {
            resamples: 20,
            ..Bootstrap::default()
        },
        ..Settings::default()
    };
    let comparison = AbComparison::new(&a, &b, &[record], &settings);
    report::ab::text(&comparison);
    report::ab::markdown(&comparison);
    report::ab::csv(&comparison);
    let json = report::ab::json(&comparison);
    assert!(
        matches!(Answer::read(&json), Some(Ok(_))),
        "it is read again"
    );
}

fuzz_target!(|octets: &[u8]| {
    let Some(text) = document(octets) else {
        return;
    };
    match RunRecord::from_json(&text) {
        Ok(record) => {
            let other = RunRecord::from_json(&BASES[0].document.to_string()).expect("a record");
            render(&record);
            report(&[source("a.json", &record), source("b.json", &other)]);
            merge_with(&record, &other);
            compare(&record, &other);
        }
        Err(error) => check_words(&error),
    }
    match Answer::read(&text) {
        Some(Ok(answer)) => {
            answer.text();
            answer.csv();
            let json = answer.json();
            assert!(
                matches!(Answer::read(&json), Some(Ok(_))),
                "it is read again"
            );
            report::html::render(&answer.document("a.json"));
            report::plain::markdown(&answer.document("a.json"));
        }
        Some(Err(error)) => check_words(&error),
        None => {}
    }
});
