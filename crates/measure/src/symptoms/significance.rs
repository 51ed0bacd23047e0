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

/// Of the time that half of the queries waited, a queue has the fastest tenth wait this part at
/// least: 0.5 of the queue of a closed loop with five slots (Erlang), more with more. Times that
/// differ by themselves leave it less: 0.15 if they are exponential, 0.2 if uniform.
const WAITED_BY_ALL: f64 = 0.5;

/// True if what delayed half of these beyond the shortest delayed nearly all of them: a queue
/// does, and a target that takes longer for some names does not.
pub(crate) fn delays_all(times: &Histogram, shortest_ns: u64) -> bool {
    let beyond = |p| Some(times.percentile(p)?.saturating_sub(shortest_ns) as f64);
    let both = beyond(0.1).zip(beyond(0.5));
    both.is_some_and(|(few, half)| few >= WAITED_BY_ALL * half)
}

/// Median latency at the start and at the end, if it at least doubled and grew by over 1 ms, and
/// that is no chance: a course in which nothing changes but at times shows no growth. Nor does one
/// that has reached another level: the backlog of a target that falls behind grows to the end.
pub(crate) fn growing_latency(figures: &Figures<'_>) -> Option<(u64, u64)> {
    let latency = figures.latency_by_interval();
    let third = latency.len() / 3;
    let [first, last] =
        [&latency[..third], &latency[latency.len() - third..]].map(Histogram::merged);
    let (_, first_most) = median_between(&first)?;
    let (last_least, _) = median_between(&last)?;
    let grew = last_least >= 2 * first_most && last_least - first_most > 1_000_000;
    let p50 = |latency: &Histogram| latency.percentile(0.5);
    let is_growth =
        grew && !is_level(figures.record) && goes_on(&latency, figures.record.scenario.timeout_ns);
    p50(&first).zip(p50(&last)).filter(|_| is_growth)
}

/// From this share of the timeout on, latency grows beyond it, and is not seen to.
const OF_TIMEOUT: f64 = 0.5;
/// A backlog that began with the run grows by 1.2 from one half of its last third to the other.
const GOES_ON: f64 = 1.1;

/// True if latency still grew in the last third of the window; in a window of few intervals, from
/// the second third to the last.
fn goes_on(latency: &[&Histogram], timeout_ns: u64) -> bool {
    let third = latency.len() / 3;
    let length = if third > 1 { third } else { 2 * third };
    let (before, after) = latency[latency.len() - length..].split_at(length / 2);
    let [before, after] = [before, after].map(|part| median_between(&Histogram::merged(part)));
    let least_and_most = before.zip(after);
    least_and_most.is_some_and(|((_, most), (least, _))| {
        least as f64 > GOES_ON * most as f64 || least as f64 >= OF_TIMEOUT * timeout_ns as f64
    })
}

/// True if the run's course has neither a beginning of its own nor a drift.
fn is_level(record: &RunRecord) -> bool {
    let course = SteadyState::in_record(record);
    course
        .is_some_and(|it| it.sustained.is_some() && it.openings.is_empty() && it.drifts.is_empty())
}
