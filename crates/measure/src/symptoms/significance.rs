//! Whether events are enough to be more than chance: the one place in which chance is computed.

use statrs::distribution::{Binomial, DiscreteCDF};

use crate::histogram::Histogram;
use crate::record::RunRecord;
use crate::steady_state::SteadyState;

use super::Figures;

/// What chance does that often does not count as seen.
const CHANCE_MAX: f64 = 0.01;
/// What cannot be ruled out with this probability of error is possible.
pub(crate) const POSSIBLE: f64 = 0.05;
/// Deviations of a normal distribution that one median in a thousand exceeds, to either side.
pub(super) const DEVIATIONS: f64 = 3.29;
/// Queries of which a median tells something: of fewer, the least and the greatest are both on one
/// side of it more often than once in a thousand times.
pub(crate) const EVENTS_MIN: u64 = 11;

/// How a share compares with a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// It is greater.
    Above,
    /// It is not.
    NotAbove,
    /// There are too few events to tell.
    TooFew,
}

/// Compares the chance of an event, seen in `events` of `of` cases, with `bound` (0 to 1): by the
/// exact binomial probabilities of that many or more, and of that many or fewer.
pub(crate) fn share(events: u64, of: u64, bound: f64) -> Share {
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

/// True if the share of `events` in `of` cases is above `bound` by more than chance.
pub(crate) fn is_above(events: u64, of: u64, bound: f64) -> bool {
    share(events, of, bound) == Share::Above
}

/// The interval that holds the median of what these values are a sample of, all but once in a
/// thousand times (order statistics; Conover, Practical Nonparametric Statistics, section 3.2);
/// none of too few values.
pub(crate) fn median_between(values: &Histogram) -> Option<(u64, u64)> {
    if values.count() < EVENTS_MIN {
        return None;
    }
    let reach = DEVIATIONS / 2.0 / (values.count() as f64).sqrt();
    let quantile = |p: f64| values.percentile(p.clamp(0.0, 1.0));
    Some((quantile(0.5 - reach)?, quantile(0.5 + reach)?))
}

/// Median latency at the start and at the end, if it at least doubled and grew by over 1 ms, and
/// that is no chance: a course in which nothing changes but at times shows no growth.
pub(crate) fn growing_latency(figures: &Figures<'_>) -> Option<(u64, u64)> {
    let (first, last) = figures.first_and_last_latency()?;
    let (_, first_most) = median_between(&first)?;
    let (last_least, _) = median_between(&last)?;
    let grew = last_least >= 2 * first_most && last_least - first_most > 1_000_000;
    let p50 = |latency: &Histogram| latency.percentile(0.5);
    let is_growth = grew && !is_level(figures.record);
    p50(&first).zip(p50(&last)).filter(|_| is_growth)
}

/// True if the run's course has neither a beginning of its own nor a drift.
fn is_level(record: &RunRecord) -> bool {
    let course = SteadyState::in_record(record);
    course
        .is_some_and(|it| it.sustained.is_some() && it.openings.is_empty() && it.drifts.is_empty())
}
