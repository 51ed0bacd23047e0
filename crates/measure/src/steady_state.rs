//! The course of a run: how it began, what it sustained, and whether that drifted.
//!
//! Looks at rate, p50, p95 and p99 of the whole intervals within the window; works on any record,
//! old ones included, and reads nothing but its intervals.
//!
//! * *Where the sustained part begins* is found by MSER-5 (White, An Effective Truncation Heuristic
//!   for Bias Reduction in Simulation Output, 1997): of all ways to cut off the beginning, the one
//!   that leaves the least standard error. Batches are of five intervals (of fewer, if there are
//!   fewer than fifty), and their percentiles come from merged histograms. What is cut off counts
//!   as a beginning only if it stands out from what follows, by three deviations and by
//!   [`OPENING_MIN`], and if what follows is level: where the change goes on, it is a drift.
//! * *Drift* of the sustained part is a trend by Mann and Kendall's test, corrected for successive
//!   intervals that resemble each other, whose line (Theil and Sen) changes by [`DRIFT_MIN`] or
//!   more.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interval::Interval;
use crate::metric::Metric;
use crate::notation::{counted, rate, seconds};
use crate::record::RunRecord;
use crate::statistics::{MAD_TO_DEVIATION, mad, mann_kendall, mean, median, squares, theil_sen};

#[cfg(test)]
mod tests;

/// With fewer intervals a start-up phase, drift and noise cannot be distinguished.
pub const INTERVALS_MIN: usize = 20;

/// A beginning differs from the sustained part by this share at least; rates by
/// [`OF_RATES`] of it.
pub const OPENING_MIN: f64 = 0.1;

/// A drift changes a figure by this share at least; rates by [`OF_RATES`] of it.
pub const DRIFT_MIN: f64 = 0.05;

/// Rates are steadier than percentiles: less of a change counts.
pub const OF_RATES: f64 = 0.4;

/// Chance of taking noise for a drift, of each metric.
const DRIFT_P_VALUE: f64 = 0.01;

/// Intervals in a batch of MSER-5.
const BATCH: usize = 5;

/// Batches that there are at least.
const BATCHES_MIN: usize = 10;

/// Points of the series in which a drift is looked for: their pairs are looked at.
const POINTS_MAX: usize = 300;

/// The figures whose course is looked at.
const METRICS: [Metric; 4] = [Metric::Qps, Metric::P50, Metric::P95, Metric::P99];

/// The course of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyState {
    /// Whole intervals within the window.
    pub intervals: u64,
    /// The sustained part of the run; none if there are too few intervals.
    pub sustained: Option<Sustained>,
    /// Figures that differed at the start.
    pub openings: Vec<Opening>,
    /// Figures that drifted in the sustained part.
    pub drifts: Vec<Drift>,
}

/// The sustained part of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sustained {
    /// Its start in nanoseconds since the start of the measured run.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
    /// Responses a second.
    pub achieved_qps: f64,
    /// Median of the latency.
    pub latency_p50_ns: Option<u64>,
    /// Its 95th percentile.
    pub latency_p95_ns: Option<u64>,
    /// Its 99th percentile.
    pub latency_p99_ns: Option<u64>,
}

/// A figure that was different in the beginning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Opening {
    /// The figure.
    pub metric: Metric,
    /// Its value in the first interval.
    pub from: f64,
    /// Its median from where it had settled.
    pub to: f64,
    /// When it had settled, nanoseconds since the start of the measured run.
    pub settled_ns: u64,
}

/// A figure that changed slowly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drift {
    /// The figure.
    pub metric: Metric,
    /// Where its line begins.
    pub from: f64,
    /// Where its line ends.
    pub to: f64,
    /// Probability of such a trend by chance.
    pub p_value: f64,
}

impl SteadyState {
    /// The course of a run as its record has it, or found now in a record without it; none if
    /// nothing was answered.
    pub fn in_record(record: &RunRecord) -> Option<SteadyState> {
        (record.steady_state.clone()).or_else(|| SteadyState::found(record))
    }

    /// The course of a run; none if nothing was answered.
    pub fn found(record: &RunRecord) -> Option<SteadyState> {
        let is_answered = !record.asks_nothing() && record.total.counts.responses > 0;
        is_answered.then(|| SteadyState::of(record))
    }

    /// When the sustained part began, if the beginning was different; nanoseconds since the start
    /// of the measured run.
    pub fn settled_ns(&self) -> Option<u64> {
        let is_settled = !self.openings.is_empty();
        let sustained = self.sustained.as_ref().filter(|_| is_settled);
        sustained.map(|sustained| sustained.start_ns)
    }

    fn of(record: &RunRecord) -> SteadyState {
        let whole: Vec<&Interval> = record.whole_intervals().collect();
        let mut course = SteadyState {
            intervals: whole.len() as u64,
            sustained: None,
            openings: Vec::new(),
            drifts: Vec::new(),
        };
        if whole.len() < INTERVALS_MIN {
            return course;
        }
        let size = (whole.len() / BATCHES_MIN).clamp(1, BATCH);
        let openings = METRICS
            .iter()
            .filter_map(|metric| opening(*metric, &whole, size));
        course.openings = openings.collect();
        let settled = course
            .openings
            .iter()
            .map(|opening| opening.settled_ns)
            .max();
        let start_ns = settled.unwrap_or(whole[0].start_ns);
        let sustained: Vec<&Interval> = whole
            .iter()
            .copied()
            .filter(|it| it.start_ns >= start_ns)
            .collect();
        let joined = Interval::joined(sustained.iter().copied());
        let latency = &joined.distributions.latency;
        course.sustained = Some(Sustained {
            start_ns,
            end_ns: sustained.last().map_or(start_ns, |last| last.end_ns),
            achieved_qps: joined.per_second(joined.counts.responses),
            latency_p50_ns: latency.percentile(0.5),
            latency_p95_ns: latency.percentile(0.95),
            latency_p99_ns: latency.percentile(0.99),
        });
        let drifts = METRICS
            .iter()
            .filter_map(|metric| drift(*metric, &sustained));
        course.drifts = drifts.collect();
        course
    }

    /// What changed during the run, one sentence each; empty of a level run.
    pub fn changes(&self) -> Vec<String> {
        let openings = self.openings.iter().map(Opening::sentence);
        openings
            .chain(self.drifts.iter().map(Drift::sentence))
            .collect()
    }

    /// The course in words, one sentence each.
    pub fn sentences(&self) -> Vec<String> {
        let Some(sustained) = &self.sustained else {
            let found = counted(self.intervals, "interval");
            return vec![format!(
                "{found} are too few to tell warm-up and drift from noise: {INTERVALS_MIN} are \
                    enough (a longer run, or a shorter --interval)"
            )];
        };
        let openings = self.openings.iter().map(Opening::sentence);
        let mut sentences: Vec<String> = openings.collect();
        sentences.push(match self.openings.is_empty() {
            true => format!(
                "no warm-up: level from the start, over {}",
                counted(self.intervals, "interval")
            ),
            false => sustained.sentence(),
        });
        match self.drifts.is_empty() {
            true => sentences.push("no drift of rate, p50, p95 or p99".into()),
            false => sentences.extend(self.drifts.iter().map(Drift::sentence)),
        }
        sentences
    }
}

impl Opening {
    fn sentence(&self) -> String {
        let over = seconds(self.settled_ns);
        let show = |value| self.metric.show(value);
        let (from, to) = (show(self.from), show(self.to));
        match (self.metric, self.from > self.to) {
            (Metric::Qps, true) => {
                format!("initial burst: {from} at first, {to} from {over} on")
            }
            (Metric::Qps, false) => {
                format!("warm-up: the rate rose from {from} to {to} over the first {over}")
            }
            (metric, is_falling) => {
                let (name, verb) = (metric.name(), if is_falling { "fell" } else { "rose" });
                format!("{name} {verb} from {from} to {to} over the first {over}")
            }
        }
    }
}

impl Sustained {
    fn sentence(&self) -> String {
        let mut text = format!(
            "sustained part from {} to {}: {}",
            seconds(self.start_ns),
            seconds(self.end_ns),
            rate(self.achieved_qps)
        );
        for (metric, value) in [
            (Metric::P50, self.latency_p50_ns),
            (Metric::P95, self.latency_p95_ns),
            (Metric::P99, self.latency_p99_ns),
        ] {
            if let Some(ns) = value {
                text.push_str(&format!(", {} {}", metric.name(), metric.show(ns as f64)));
            }
        }
        text
    }
}

impl Drift {
    fn sentence(&self) -> String {
        let name = match self.metric {
            Metric::Qps => "the rate",
            metric => metric.name(),
        };
        let verb = match self.to > self.from {
            true => "rises",
            false => "falls",
        };
        let (from, to) = (self.metric.show(self.from), self.metric.show(self.to));
        let change = self.metric.show_change(self.to / self.from - 1.0);
        format!("drift: {name} {verb} {from} -> {to} ({change}) in the sustained part")
    }
}

/// The least change of a metric that counts.
fn least(metric: Metric, share: f64) -> f64 {
    match metric {
        Metric::Qps => share * OF_RATES,
        _ => share,
    }
}

/// A figure of successive batches of intervals; none if a batch does not have it.
fn batches(metric: Metric, intervals: &[&Interval], size: usize) -> Option<Vec<f64>> {
    let batch = |batch: &[&Interval]| {
        // No RCODE: none of the figures looked at is about goodput.
        metric.of_interval(&Interval::joined(batch.iter().copied()), &[])
    };
    intervals.chunks_exact(size).map(batch).collect()
}

/// The beginning of a metric, if it stands out and then settles.
fn opening(metric: Metric, intervals: &[&Interval], size: usize) -> Option<Opening> {
    let series = batches(metric, intervals, size)?;
    let cut = mser(&series)?;
    let (head, tail) = series.split_at(cut);
    let (first, to) = (*head.first()?, median(tail)?);
    let deviation = MAD_TO_DEVIATION * mad(tail)?;
    let distance = (first - to).abs();
    let is_far = |from: f64| (from - to).abs() >= least(metric, OPENING_MIN) * to;
    let stands_out = distance > 3.0 * deviation && is_far(first);
    (stands_out && !goes_on(&series, cut)?).then(|| {
        let at_once = metric.of_interval(intervals[0], &[])?;
        let is_of_batch = is_far(at_once) && (at_once > to) == (first > to);
        Some(Opening {
            metric,
            // An interval of a batch may be as those of the end are.
            from: if is_of_batch { at_once } else { first },
            to,
            settled_ns: intervals[cut * size].start_ns,
        })
    })?
}

/// True if what follows the first `cut` batches is no end of the change: it goes on a third as
/// steeply or more, or one straight line fits all batches nearly as well as a level fits the last.
fn goes_on(series: &[f64], cut: usize) -> Option<bool> {
    let tail = &series[cut..];
    let level = median(tail)?;
    let steepness = (level - series[0]) / (cut as f64 + tail.len() as f64 / 2.0);
    let slope = theil_sen(series)?;
    let from_line = series.iter().zip(0_u32..);
    let from_line: Vec<f64> = from_line
        .map(|(value, index)| value - slope * f64::from(index))
        .collect();
    let scatter =
        |values: &[f64], middle: f64| (squares(values, middle) / values.len() as f64).sqrt();
    let of_line = scatter(&from_line, median(&from_line)?);
    let is_straight = of_line <= NEARLY_LEAST * scatter(tail, level);
    Some(is_straight || theil_sen(tail)? / steepness >= 1.0 / 3.0)
}

/// How many batches to cut off so that the standard error of the mean of the rest is least; none if
/// nothing is to be cut off. A quarter is left at least.
fn mser(series: &[f64]) -> Option<usize> {
    let longest = series.len() - series.len().div_ceil(4).max(3);
    let error = |cut: usize| {
        let rest = &series[cut..];
        let number = rest.len() as f64;
        Some(squares(rest, mean(rest)?) / (number * number))
    };
    let errors: Vec<f64> = (0..=longest).filter_map(error).collect();
    let least = errors.iter().copied().min_by(f64::total_cmp)?;
    // Chance makes the error of what is steady go up and down: the first that is about as good.
    let cut = errors
        .iter()
        .position(|error| *error <= NEARLY_LEAST * least)?;
    (cut > 0).then_some(cut)
}

/// Errors up to this multiple of the least are equally good: they vary by this much at random.
const NEARLY_LEAST: f64 = 1.5;

/// Where the line through a series begins and ends. It is one of logarithms, so that it does not
/// fall below zero, as no figure does; with intervals at zero (without a response) it is cut there.
fn ends_of_line(series: &[f64]) -> Option<(f64, f64)> {
    let line = |series: &[f64]| {
        let half = theil_sen(series)? * (series.len() - 1) as f64 / 2.0;
        let middle = median(series)?;
        Some((middle - half, middle + half))
    };
    if series.iter().any(|value| *value <= 0.0) {
        let (from, to) = line(series)?;
        return Some((from.max(0.0), to.max(0.0)));
    }
    let logarithms: Vec<f64> = series.iter().map(|value| value.ln()).collect();
    let (from, to) = line(&logarithms)?;
    Some((from.exp(), to.exp()))
}

/// The drift of a metric, if it has one.
fn drift(metric: Metric, intervals: &[&Interval]) -> Option<Drift> {
    let size = intervals.len().div_ceil(POINTS_MAX).max(1);
    let series = batches(metric, intervals, size)?;
    let trend = mann_kendall(&series)?;
    let (from, to) = ends_of_line(&series)?;
    let is_drift = trend.p_value < DRIFT_P_VALUE
        && from > 0.0
        && (to / from - 1.0).abs() >= least(metric, DRIFT_MIN);
    is_drift.then_some(Drift {
        metric,
        from,
        to,
        p_value: trend.p_value,
    })
}
