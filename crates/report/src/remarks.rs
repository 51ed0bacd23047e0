//! Sentences that follow from a record: what it shows, what limits it, what to do.
//!
//! Each is tied to the chart or table that has its figures. A cause is named only where the verdict
//! has evidence for it; where a record shows *that* something changed and not why, so does the
//! sentence.

use measure::doctor::{self, Diagnosis};
use measure::notation::{count, counted, decimal, latency, percent, rate, share};
use measure::{Histogram, Interval, RunRecord, SteadyState};

use crate::document::{Remark, Subject};

/// Changes below this share are those of chance.
const CHANGE_MIN: f64 = 0.1;
/// Intervals that a change over time must be seen in.
const INTERVALS_MIN: usize = 10;

/// What one run shows.
pub(crate) fn of_run(record: &RunRecord) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let shows = |text: String, source: &str| Remark::new(Subject::Shows, text, source);
    if !record.asks_nothing() {
        remarks.push(shows(answered(record), "outcome"));
    }
    let shown = [
        steadiness(record).map(|text| (text, "rates")),
        overlap(record).map(|text| (text, "rates")),
        spread(record).map(|text| (text, "latencies")),
        ends(record).map(|text| (text, "latency")),
        goodput(record).map(|text| (text, "rcodes")),
        worst_clients(record).map(|text| (text, "clients")),
    ];
    remarks.extend(
        shown
            .into_iter()
            .flatten()
            .map(|(text, source)| shows(text, source)),
    );
    remarks.extend(course(record));
    remarks.extend(of_verdict(record));
    remarks
}

/// The verdict's evidence, what else the run met, the warnings; and what cures all that, in the
/// words of `throng doctor`.
fn of_verdict(record: &RunRecord) -> Vec<Remark> {
    let diagnoses = doctor::of_run(record);
    // The decisive evidence stands with the verdict.
    let decisive = record.verdict.evidence.first();
    let evidence = record.verdict.evidence.iter().skip(1);
    let met = diagnoses.iter().map(|diagnosis| &diagnosis.seen);
    let mut limits: Vec<&String> = Vec::new();
    for text in evidence.chain(met).chain(&record.warnings) {
        if Some(text) != decisive && !text.is_empty() && !limits.contains(&text) {
            limits.push(text);
        }
    }
    let limits = limits.into_iter().cloned();
    let limits = limits.map(|text| Remark::new(Subject::Limits, text, ""));
    limits.chain(advice(&diagnoses)).collect()
}

/// The cures of all diagnoses, each once.
fn advice(diagnoses: &[Diagnosis]) -> Vec<Remark> {
    let mut sentences: Vec<String> = Vec::new();
    for cure in diagnoses.iter().flat_map(|diagnosis| &diagnosis.cures) {
        let sentence = cure.sentence();
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    let remark = |text: String| Remark::new(Subject::Advice, text, "");
    sentences.into_iter().map(remark).collect()
}

fn answered(record: &RunRecord) -> String {
    let counts = &record.total.counts;
    format!(
        "{} were answered, {} of the {} offered; {} lost",
        rate(record.achieved_qps()),
        share(counts.responses, counts.offered),
        counted(counts.offered, "query"),
        count(counts.lost())
    )
}

/// The intervals of the window but the first and the last, which may be cut short.
fn inner(record: &RunRecord) -> &[Interval] {
    let within = record.intervals_in_window().count();
    match record.intervals.get(1..within.saturating_sub(1)) {
        Some(intervals) if intervals.len() + 2 >= INTERVALS_MIN => intervals,
        _ => &[],
    }
}

/// How far the rate of single intervals was from that of the run.
fn steadiness(record: &RunRecord) -> Option<String> {
    let intervals = inner(record);
    let rates = intervals
        .iter()
        .map(|it| it.per_second(it.counts.responses));
    let (low, high) = rates.fold((f64::INFINITY, 0.0_f64), |(low, high), qps| {
        (low.min(qps), high.max(qps))
    });
    let mean = record.achieved_qps();
    (!intervals.is_empty() && mean > 0.0).then(|| {
        let word = match (high - low) / mean {
            width if width < CHANGE_MIN => "steady",
            width if width < 0.5 => "uneven",
            _ => "very uneven",
        };
        format!(
            "the rate was {word}: single intervals had {} to {}",
            rate(low),
            rate(high)
        )
    })
}

/// How far sent and completed are apart in single intervals.
fn overlap(record: &RunRecord) -> Option<String> {
    let intervals = inner(record);
    let apart = |it: &Interval| it.counts.sent.abs_diff(it.counts.responses);
    let widest = intervals.iter().max_by_key(|it| apart(it))?;
    Some(format!(
        "sent and completed differ by at most {} in an interval ({} of those sent in it)",
        counted(apart(widest), "query"),
        share(apart(widest), widest.counts.sent)
    ))
}

/// Median and mean, and the tail relative to the median.
fn spread(record: &RunRecord) -> Option<String> {
    let values = &record.total.distributions.latency;
    let p = |share| values.percentile(share).map(|ns| ns as f64);
    Some(format!(
        "median latency {}, mean {}, p95 {}, p99 {} ({} times the median)",
        latency(p(0.5)?),
        latency(values.mean_ns()?),
        latency(p(0.95)?),
        latency(p(0.99)?),
        decimal(p(0.99)? / p(0.5)?.max(1.0), 1)
    ))
}

/// The tail at both ends of the run; [`course`] says what to make of it.
fn ends(record: &RunRecord) -> Option<String> {
    let (first, last) = tail_at_ends(record)?;
    Some(format!(
        "p99 was {} in the first tenth of the run and {} in the last",
        latency(first),
        latency(last)
    ))
}

/// How the run began, what it sustained and how that drifted.
fn course(record: &RunRecord) -> Vec<Remark> {
    let course = SteadyState::in_record(record);
    let sentences = course.map_or_else(Vec::new, |course| course.sentences());
    let remark = |text: String| Remark::new(Subject::Shows, text, "latency");
    sentences.into_iter().map(remark).collect()
}

/// p99 of the first and the last tenth of the window, in nanoseconds.
fn tail_at_ends(record: &RunRecord) -> Option<(f64, f64)> {
    let within = record.intervals_in_window().count();
    let tenth = within / INTERVALS_MIN;
    if tenth == 0 {
        return None;
    }
    let intervals = &record.intervals[..within];
    let p99 = |part: &[Interval]| {
        let mut all = Histogram::on_demand();
        part.iter()
            .for_each(|it| all.merge(&it.distributions.latency));
        all.percentile(0.99).map(|ns| ns as f64)
    };
    p99(&intervals[..tenth]).zip(p99(&intervals[within - tenth..]))
}

fn goodput(record: &RunRecord) -> Option<String> {
    let counts = &record.total.counts;
    let responses = counts.responses;
    let bad = counts.failures(&record.scenario.goodput_rcodes);
    (bad > 0).then(|| {
        format!(
            "{} of the responses are not goodput ({}): fast, but not useful",
            share(bad, responses),
            count(bad)
        )
    })
}

fn worst_clients(record: &RunRecord) -> Option<String> {
    let experience = record.experience()?;
    let worst = experience.worst_percent_p99_ns()? as f64;
    let median = experience.latency.p99.percentile(0.5)? as f64;
    (experience.answered() >= 100 && worst >= (1.0 + CHANGE_MIN) * median).then(|| {
        format!(
            "the worst 1 % of the clients had a p99 of {} or more, {} above the median client's",
            latency(worst),
            percent(worst / median.max(1.0) - 1.0)
        )
    })
}
