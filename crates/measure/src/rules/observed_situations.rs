//! Made-up observed servers: the samples of a source in each second of a run of ten.

use super::situations::*;
use crate::observation::{
    Observation, ObservationMode, Observed, Recorder, Scrape, SeriesKind, ServerFacts,
};

/// A source scraped before a run of ten seconds, in each second of it, and after it. Counters grow
/// by the given amount each second; gauges stay.
pub(crate) fn observation(
    name: &str,
    facts: ServerFacts,
    series: &[(&str, SeriesKind, f64)],
) -> Observation {
    let mut recorder = Recorder::new(name, name, ObservationMode::During, SECOND);
    *recorder.facts() = facts;
    for second in 0..12 {
        let at_ns = i64::from(second) * SECOND as i64 - SECOND as i64 / 2;
        // Nothing happens before the run, nor after it.
        let passed = (at_ns as f64 / 1e9).clamp(0.0, 10.0);
        let values = series.iter().map(|(name, kind, value)| Observed {
            name: (*name).to_owned(),
            unit: "any".to_owned(),
            kind: *kind,
            value: match kind {
                SeriesKind::Counter => value * passed,
                SeriesKind::Gauge => *value,
            },
            is_stale: false,
        });
        recorder.push(Scrape::between(at_ns, at_ns + MS as i64), values.collect());
    }
    recorder.finish()
}

/// A program on two CPUs with the given CPU usage, and that of its busiest thread.
pub(crate) fn program(cpus: f64, thread: f64, more: &[(&str, SeriesKind, f64)]) -> Observation {
    let facts = ServerFacts {
        binary: Some("/usr/sbin/named".to_owned()),
        cpus: Some("0-1".to_owned()),
        ..ServerFacts::default()
    };
    let mut series = vec![
        ("cpu.user", SeriesKind::Counter, 0.75 * cpus),
        ("cpu.system", SeriesKind::Counter, 0.25 * cpus),
        ("cpu.busiest_thread", SeriesKind::Gauge, thread),
    ];
    series.extend(more);
    observation("process", facts, &series)
}

/// A server with the given count of queries in each second.
pub(crate) fn server(queries: f64, more: &[(&str, SeriesKind, f64)]) -> Observation {
    let facts = ServerFacts {
        product: Some("BIND".to_owned()),
        ..ServerFacts::default()
    };
    let mut series = vec![("queries", SeriesKind::Counter, queries)];
    series.extend(more);
    observation("bind", facts, &series)
}

pub(crate) fn observing(mut record: RunRecord, observations: &[Observation]) -> RunRecord {
    record.observations = observations.to_vec();
    record.verdict = judge(&record);
    record
}

/// The verdict's evidence and advice as one text.
pub(crate) fn said(record: &RunRecord) -> String {
    let verdict = &record.verdict;
    let all = verdict.evidence.iter().chain(&verdict.advice);
    all.cloned().collect::<Vec<_>>().join("\n")
}

#[track_caller]
pub(crate) fn tells(record: &RunRecord, words: &[&str]) {
    let told = said(record);
    for words in words {
        assert!(told.contains(words), "no `{words}` in:\n{told}");
    }
}
