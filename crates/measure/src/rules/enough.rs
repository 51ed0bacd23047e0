//! Whether there are enough events to tell: the one place in which chance is reckoned with.

use statrs::distribution::{Binomial, DiscreteCDF};

use crate::histogram::Histogram;
use crate::limit::Limit;
use crate::notation::{count, counted, percent};

use super::{Figures, Finding, Stage};

/// What chance does that often does not count as seen.
const CHANCE_MAX: f64 = 0.01;
/// What cannot be ruled out with this probability of error is possible.
const POSSIBLE: f64 = 0.05;
/// Deviations of a normal distribution that one median in a thousand exceeds, to either side.
const DEVIATIONS: f64 = 3.29;
/// Queries of which a median tells something: of fewer, the least and the greatest are both on one
/// side of it more often than once in a thousand times.
pub(super) const EVENTS_MIN: u64 = 11;

/// How a share compares with a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// It is greater.
    Above,
    /// It is not.
    NotAbove,
    /// There are too few events to tell.
    TooFew,
}

/// Compares the chance of an event, seen `events` times `of` so many, with `bound` (0 to 1): by the
/// exact binomial probabilities of as many, and of as few.
pub(super) fn share(events: u64, of: u64, bound: f64) -> Share {
    let Ok(binomial) = Binomial::new(bound, of) else {
        return Share::TooFew;
    };
    if events > 0 && binomial.sf(events - 1) < CHANCE_MAX {
        return Share::Above;
    }
    let expected = bound * of as f64;
    let is_below = binomial.cdf(events) < POSSIBLE;
    match is_below || (events as f64) <= expected && expected >= EVENTS_MIN as f64 {
        true => Share::NotAbove,
        false => Share::TooFew,
    }
}

/// True if so many events of so many are more than `bound` by more than chance.
pub(super) fn is_above(events: u64, of: u64, bound: f64) -> bool {
    share(events, of, bound) == Share::Above
}

/// The interval that holds the median of what these values are a sample of, all but once in a
/// thousand times (order statistics; Conover, Practical Nonparametric Statistics, section 3.2);
/// none of too few values.
pub(super) fn median_between(values: &Histogram) -> Option<(u64, u64)> {
    if values.count() < EVENTS_MIN {
        return None;
    }
    let reach = DEVIATIONS / 2.0 / (values.count() as f64).sqrt();
    let quantile = |p: f64| values.percentile(p.clamp(0.0, 1.0));
    Some((quantile(0.5 - reach)?, quantile(0.5 + reach)?))
}

/// Median latency at the start and at the end, if it at least doubled and grew by over 1 ms, and
/// that is no chance.
pub(super) fn growing_latency(figures: &Figures<'_>) -> Option<(u64, u64)> {
    let (first, last) = figures.first_and_last_latency()?;
    let (_, first_most) = median_between(&first)?;
    let (last_least, _) = median_between(&last)?;
    let grew = last_least >= 2 * first_most && last_least - first_most > 1_000_000;
    let p50 = |latency: &Histogram| latency.percentile(0.5);
    p50(&first).zip(p50(&last)).filter(|_| grew)
}

/// The finding on a run whose losses may or may not be many, by chance.
pub(super) fn too_few(figures: &Figures<'_>) -> Finding {
    let counts = figures.counts;
    // The greatest share of losses of which as few as these are seen once in twenty times.
    let possible = match counts.lost() {
        0 => 1.0 - POSSIBLE.powf(1.0 / counts.offered.max(1) as f64),
        lost => (3.0 + lost as f64 + 2.0 * (lost as f64).sqrt()) / counts.offered.max(1) as f64,
    };
    let evidence = format!(
        "too few to tell: of {}, {} got no response, so that up to {} may be lost",
        counted(counts.offered, "query"),
        count(counts.lost()),
        percent(possible.min(1.0))
    );
    let advice = format!(
        "ask at least {} queries: --duration {}s",
        count(QUERIES_WANTED),
        seconds_for(QUERIES_WANTED, figures)
    );
    Finding::concluded(Stage::Load, Limit::Unknown, evidence, &advice)
}

/// With none lost of so many, less than 1 % is lost, all but once in twenty times.
const QUERIES_WANTED: u64 = 300;

/// How long it takes to ask so many at the rate of the run.
fn seconds_for(queries: u64, figures: &Figures<'_>) -> u64 {
    let rate_qps = figures.record.offered_qps();
    match rate_qps > 0.0 {
        true => (queries as f64 / rate_qps).ceil().max(1.0) as u64,
        false => 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_events_tell_nothing_and_three_thousand_do() {
        assert_eq!(share(0, 3, 0.01), Share::TooFew);
        assert_eq!(share(1, 3, 0.01), Share::TooFew);
        assert_eq!(share(0, 300, 0.01), Share::NotAbove);
        assert_eq!(share(3, 1_000, 0.001), Share::TooFew);
        assert_eq!(share(6, 1_000, 0.001), Share::Above);
        assert_eq!(share(200, 1_000_000, 0.001), Share::NotAbove);
        assert_eq!(share(2_000, 1_000_000, 0.001), Share::Above);
        assert_eq!(share(0, 0, 0.001), Share::TooFew);
    }

    #[test]
    fn median_of_few_values_is_anywhere() {
        let mut values = Histogram::new();
        values.record_many(1_000, 5);
        values.record_many(9_000, 5);
        assert_eq!(median_between(&values), None);
        values.record_many(1_000, 500);
        let (low, high) = median_between(&values).expect("has enough");
        assert!(low < 1_100 && high < 1_100, "{low} {high}");
    }
}
