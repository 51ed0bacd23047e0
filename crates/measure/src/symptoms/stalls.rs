//! Whether the host was what stopped a target in some spans of a run.
//!
//! A target on the generator's host waits for the same CPUs. For how long it did is mostly known of
//! the whole run: waits of a few milliseconds at all times add up to seconds, and none of them is
//! an outage. What is known of a span are the generator's own waits.

use super::Figures;
use crate::interval::Interval;

/// A worker that takes no turn for this long is booked as not scheduled.
const UNSEEN_NS: u64 = 60_000_000;
/// A generator whose longest wait took this part of a span at most ran in it.
const OF_SPAN: u64 = 4;
/// A wait within a span is usual for the run up to that many times the longest one outside.
const USUAL: u64 = 2;
/// A host did it that stopped something for at least this part of the time.
const PART: u64 = 2;

/// Bins of a timeline hold that share of an amount...
const CONCENTRATED: f64 = 0.9;
/// ... and are no more than that share of the bins: it is concentrated in time.
const OF_BINS: f64 = 0.25;

/// From when to when, in nanoseconds since the start of the measured run.
pub(super) type Span = (u64, u64);

/// What the host has to do with a target that was silent in some spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Host {
    /// Nothing: the target did not wait for CPUs that long, or the generator had them.
    Ran,
    /// It stopped the generator too.
    Stopped,
    /// The target waited that long at some time, and nothing shows when.
    Unknown,
}

/// Spans of a timeline that hold most of an amount, given by bin: they are few of the `used` bins,
/// and those at most `apart` bins from another are one. None where it is not concentrated in time.
pub(super) fn concentrated(amounts: &[f64], used: usize, apart: usize, width_ns: u64) -> Vec<Span> {
    let all: f64 = amounts.iter().sum();
    let mut order: Vec<usize> = (0..amounts.len()).collect();
    order.sort_by(|a, b| amounts[*b].total_cmp(&amounts[*a]));
    let mut sum = 0.0;
    let needed = order.iter().take_while(|bin| {
        let is_needed = sum < CONCENTRATED * all;
        sum += amounts[**bin];
        is_needed
    });
    let mut bins: Vec<usize> = needed.copied().collect();
    bins.sort_unstable();
    if bins.len() as f64 > OF_BINS * used as f64 {
        return Vec::new();
    }
    let mut spans: Vec<Span> = Vec::new();
    for bin in bins {
        let (begin, end) = (bin as u64 * width_ns, (bin as u64 + 1) * width_ns);
        match spans.last_mut() {
            Some(last) if begin <= last.1 + apart as u64 * width_ns => last.1 = end,
            _ => spans.push((begin, end)),
        }
    }
    spans
}

/// What the host did in these spans, by the waits of the target and of the generator.
pub(super) fn host_in(figures: &Figures<'_>, spans: &[Span]) -> Host {
    let length_ns = length_ns(spans);
    if has_not_waited(figures, spans) || generator_ran(figures, spans) {
        return Host::Ran;
    }
    let stopped_ns: u64 = spans.iter().map(|it| stopped_ns(figures, *it)).sum();
    let width_ns = (figures.record.timeline.as_ref()).map_or(u64::MAX, |it| it.width_ns());
    // What was within a wide bin need not have been within the span.
    let mut lengths = spans.iter().map(|(begin, end)| end - begin);
    let is_told = lengths.all(|it| width_ns <= it / PART);
    match is_told && PART * stopped_ns >= length_ns {
        true => Host::Stopped,
        false => Host::Unknown,
    }
}

pub(super) fn length_ns(spans: &[Span]) -> u64 {
    spans.iter().map(|(begin, end)| end - begin).sum()
}

/// The target waited for CPUs less than half as long as these spans are: in the whole run, or in
/// the time around them, where it was observed.
pub(super) fn has_not_waited(figures: &Figures<'_>, spans: &[Span]) -> bool {
    let waited_ns = [figures.target_waited_ns(), waited_around_ns(figures, spans)];
    let least_ns = waited_ns.into_iter().flatten().min();
    least_ns.is_some_and(|it| PART * it < length_ns(spans))
}

/// How long an observed target waited from the scrape before each span to the one after it.
fn waited_around_ns(figures: &Figures<'_>, spans: &[Span]) -> Option<u64> {
    let target = figures.programs.first()?.observation();
    let rates = target.rates(&["cpu.wait"]);
    let (first, last) = (rates.first()?.0, rates.last()?.1);
    let is_covered = |it: &Span| first <= it.0 as i64 && it.1 as i64 <= last;
    if !spans.iter().all(is_covered) {
        return None;
    }
    let around = rates.iter().filter(|(from, until, _)| {
        let touches = |it: &Span| *from < it.1 as i64 && (it.0 as i64) < *until;
        spans.iter().any(touches)
    });
    let seconds = around.map(|(from, until, rate)| Some((*rate)? * (until - from) as f64 / 1e9));
    let seconds: Option<f64> = seconds.sum();
    seconds.map(|it| (it * 1e9) as u64)
}

/// A generator that has to wait for CPUs as the target does ran in these spans, and waited no
/// longer in them than at other times.
pub(super) fn generator_ran(figures: &Figures<'_>, spans: &[Span]) -> bool {
    let waits: Option<Vec<u64>> = spans.iter().map(|it| longest_ns(figures, *it)).collect();
    let Some(waits) = waits else {
        return false;
    };
    let has_run = OF_SPAN * waits.iter().sum::<u64>() <= length_ns(spans);
    has_run && is_usual(figures, spans, &waits) && waits_as_target(figures)
}

/// The longest waits in these spans, of a generator that has to wait as the target does, are all
/// that short.
pub(super) fn all_short(
    figures: &Figures<'_>,
    spans: &[Span],
    is_short: impl Fn(u64) -> bool,
) -> bool {
    let mut waits = spans.iter().map(|it| longest_ns(figures, *it));
    waits.all(|it| it.is_some_and(&is_short)) && waits_as_target(figures)
}

/// The generator's longest wait in a span, at most: by the turns that its workers took, and by how
/// late its queries left.
pub(super) fn longest_ns(figures: &Figures<'_>, span: Span) -> Option<u64> {
    let has_turns = figures.record.timeline.is_some();
    let by_turns = has_turns.then(|| stopped_ns(figures, span) + UNSEEN_NS);
    let by_lateness = latest_ns(figures, |it| touches(figures, it, span));
    [by_turns, by_lateness].into_iter().flatten().min()
}

/// How long workers took no turn in a span and in the bins beside it, all together.
fn stopped_ns(figures: &Figures<'_>, (begin_ns, end_ns): Span) -> u64 {
    figures.record.timeline.as_ref().map_or(0, |timeline| {
        let width_ns = timeline.width_ns();
        let around = timeline.between(begin_ns.saturating_sub(width_ns), end_ns + width_ns);
        around.frozen_us * 1_000
    })
}

/// A span is as exact as the bins of the timeline.
fn touches(figures: &Figures<'_>, interval: &Interval, (begin_ns, end_ns): Span) -> bool {
    let width_ns = (figures.record.timeline.as_ref()).map_or(0, |it| it.width_ns());
    interval.start_ns <= end_ns + width_ns && begin_ns <= interval.end_ns + width_ns
}

/// How late the latest query of some intervals left; none where queries are not due by time, or
/// wait for a connection.
fn latest_ns(figures: &Figures<'_>, which: impl Fn(&Interval) -> bool) -> Option<u64> {
    let record = figures.record;
    let shows_waits = record.is_open_loop() && !record.scenario.transport.has_connections();
    let intervals = record.intervals.iter();
    let latest = intervals.filter(|it| which(it) && shows_waits);
    latest
        .filter_map(|it| it.distributions.send_lateness.max_ns())
        .max()
}

/// Queries left as late outside of these spans, where nothing came of it.
fn is_usual(figures: &Figures<'_>, spans: &[Span], waits: &[u64]) -> bool {
    let within = |it: &Interval| spans.iter().any(|span| touches(figures, it, *span));
    match latest_ns(figures, within) {
        None => true,
        Some(_) => {
            let outside = latest_ns(figures, |it| !within(it)).unwrap_or(0);
            waits.iter().all(|it| *it <= USUAL * outside)
        }
    }
}

/// The generator waited for CPUs half as long as the target in the whole run, or longer: one that
/// has CPUs for itself does not show for what the target waits.
pub(super) fn waits_as_target(figures: &Figures<'_>) -> bool {
    let workers = figures.record.workers.iter();
    let own_ns: Option<u64> = workers.map(|it| it.cpu_wait_ns).sum();
    match (own_ns, figures.target_waited_ns()) {
        (Some(own_ns), Some(target_ns)) => PART * own_ns >= target_ns,
        (None, Some(_)) => false,
        (own_ns, None) => own_ns.is_some() || !figures.target_shares_cpus(),
    }
}
