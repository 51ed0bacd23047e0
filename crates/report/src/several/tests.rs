//! A page says one thing of one figure, wherever it says it.

use std::collections::BTreeMap;

use measure::{Limit, RunRecord, Transport};
use proptest::prelude::*;

use super::*;
use crate::collection::Source;
use crate::document::Sheet;
use crate::example;

/// What a run measures: its latencies with how often each came, and queries that were lost.
type Measured = (Vec<(u64, u64)>, u64);

fn run(transport: Transport, (latencies, lost): &Measured) -> RunRecord {
    let mut record = example::full(transport, 10_000);
    let responses = latencies.iter().map(|it| it.1).sum();
    let interval = &mut record.intervals[0];
    let counts = &mut interval.counts;
    counts.responses = responses;
    counts.rcodes.by_rcode[0] = responses;
    counts.timeouts = *lost;
    (counts.offered, counts.sent) = (responses + lost, responses + lost);
    for histogram in [
        &mut interval.distributions.latency,
        &mut interval.distributions.service,
    ] {
        histogram.clear();
        latencies
            .iter()
            .for_each(|(ns, times)| histogram.record_many(*ns, *times));
    }
    record.responses_in_window = responses;
    record.conclude();
    record.groups[0].total = record.total.clone();
    record
}

fn runs() -> impl Strategy<Value = Vec<Measured>> {
    let latencies = prop::collection::vec((20_000_u64..90_000_000, 1_u64..900), 1..6);
    let lost = prop_oneof![2 => Just(0_u64), 1 => 1_u64..900];
    prop::collection::vec((latencies, lost), 1..6)
}

/// What a document says of a figure: figure and cell, and in which place it says what.
type Said = BTreeMap<(&'static str, String), Vec<(String, String)>>;

fn note(said: &mut Said, what: &'static str, cell: &str, place: &str, words: &str) {
    // Tables of transports have the least and the greatest in brackets behind it.
    let value = words.split(" (").next().unwrap_or(words).to_owned();
    let key = (what, cell.to_owned());
    said.entry(key).or_default().push((place.to_owned(), value));
}

/// Names of columns and rows that hold a figure.
const NAMES: [(&str, &str); 9] = [
    ("p99", "p99"),
    ("tail latency (p99)", "p99"),
    ("99 %", "p99"),
    ("p50", "p50"),
    ("median latency (p50)", "p50"),
    ("50 %", "p50"),
    ("mean latency", "mean"),
    ("lost", "lost"),
    ("median qps", "rate"),
];

fn read(said: &mut Said, sheet: &Sheet) {
    let heads: Vec<&str> = sheet.columns.iter().map(|it| it.name.as_str()).collect();
    // Counts, steps between cells, and single runs.
    if ["costs", "runs"].contains(&sheet.id.as_str()) || sheet.id.starts_with("run-") {
        return;
    }
    for row in &sheet.rows {
        for (at, words) in row.iter().enumerate().skip(1) {
            let of_row = NAMES.iter().find(|it| it.0 == row[0]);
            let of_column = NAMES.iter().find(|it| it.0 == heads[at]);
            let is_count = sheet.id == "outcomes" && heads[at] == "lost";
            match (of_row, of_column) {
                (Some((_, what)), _) => note(said, what, heads[at], &sheet.id, words),
                (None, Some((_, what))) if !is_count => note(said, what, &row[0], &sheet.id, words),
                _ => {}
            }
        }
    }
}

fn said(document: &Document) -> Said {
    let mut said = Said::new();
    for block in document.sections.iter().flat_map(|it| &it.blocks) {
        match block {
            Block::Sheet(sheet) => read(&mut said, sheet),
            Block::Chart(chart) if chart.id.starts_with("run-") => {}
            Block::Chart(chart) => {
                read(&mut said, &chart.sheet);
                for part in chart.description.trim_end_matches('.').split("; ") {
                    if let Some((cell, words)) = part.split_once(": 99 % within ") {
                        note(&mut said, "p99", cell, "description", words);
                    }
                }
            }
            Block::Note(_) => {}
        }
    }
    said
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_figure_has_one_value_wherever_a_page_shows_it(udp in runs(), tcp in runs()) {
        let all = [(Transport::Udp, &udp), (Transport::Tcp, &tcp)];
        let records = all.into_iter().flat_map(|(transport, runs)| {
            runs.iter().map(move |measured| run(transport, measured))
        });
        let sources = records.enumerate();
        let sources = sources.map(|(at, record)| Source::new(format!("{at}.json"), record));
        let collection = Collection::new(sources.collect()).expect("there are runs");
        let document = document(&collection);
        let said = said(&document);
        for (figure, places) in &said {
            let first = &places[0];
            for place in places {
                prop_assert_eq!(&place.1, &first.1, "{:?}: {:?}", figure, places);
            }
        }
        // The test looks where figures are.
        for (what, fewest) in [("p99", 4), ("p50", 3), ("mean", 2), ("lost", 2)] {
            let places = said.get(&(what, "UDP".to_owned())).map_or(0, Vec::len);
            prop_assert!(places >= fewest, "{} has {} places: {:?}", what, places, said);
        }
        // No table says that nothing was lost where something was.
        for (name, runs) in [("UDP", &udp), ("TCP", &tcp)] {
            let lost: u64 = runs.iter().map(|it| it.1).sum();
            let key = ("lost", name.to_owned());
            let says_nothing = said.get(&key).is_some_and(|it| it[0].1 == "0 %");
            prop_assert_eq!(says_nothing, lost == 0, "{:?}", said.get(&key));
        }
    }
}

#[test]
fn transports_have_what_a_query_cost_the_target_and_the_generator() {
    let page = |is_observed: bool| {
        let sources = [Transport::Udp, Transport::Tcp].map(|transport| {
            let mut record = run(transport, &(vec![(1_000_000, 900)], 0));
            if is_observed {
                record.observations = example::observed().observations;
            }
            Source::new(format!("{transport}.json"), record)
        });
        let collection = Collection::new(sources.into()).expect("there are runs");
        crate::plain::markdown(&document(&collection))
    };
    let observed = page(true);
    for row in [
        "| CPU of the target |",
        "| CPU of the target, each query |",
        "| CPU of the generator, each query |",
    ] {
        assert!(observed.contains(row), "no {row} in {observed}");
    }
    assert!(!page(false).contains("each query |"));
}

#[test]
fn a_page_begins_with_what_can_be_concluded_and_what_cannot() {
    let measured = (vec![(1_000_000, 100)], 0);
    let limits = [
        (Transport::Udp, Limit::Server),
        (Transport::Tcp, Limit::Generator),
        (Transport::Dot, Limit::Outstanding),
    ];
    let sources = limits.map(|(transport, limit)| {
        let mut record = run(transport, &measured);
        record.verdict.limit = limit;
        Source::new(format!("{transport}.json"), record)
    });
    let collection = Collection::new(sources.into()).expect("there are runs");
    let named = collection.of_experiment(Some("tuning".to_owned()));
    let page = crate::html::render(&document(&named));
    assert!(page.contains("<h1>tuning: Load"), "{page}");
    let can = "<strong>Can be concluded:</strong> what the target can take (UDP)";
    assert!(page.contains(can), "{page}");
    let cannot = page.split("<strong>Cannot be concluded:</strong> ").nth(1);
    let cannot = cannot.and_then(|rest| rest.split("</p>").next()).unwrap();
    for words in [
        "in flight (DoT)",
        "was the limit (TCP)",
        "one run of a scenario",
    ] {
        assert!(cannot.contains(words), "{cannot}");
    }
}
