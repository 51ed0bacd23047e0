//! The clocks of parts on other hosts, beside that of their parent.
//!
//! A part says what its clock shows whenever it is asked. When it read it is not known, but that it
//! was between question and answer: so half of the round trip is how wrong the difference may be,
//! whatever the way there and the way back took. Clocks run at different rates, so what was seen
//! some time ago may be wrong by more.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::parent::Parts;

/// The most by which two clocks drift apart: 500 ppm, which is the most that Linux corrects.
const DRIFT_MAX_PPM: i128 = 500;
/// Exchanges before a start.
const EXCHANGES: usize = 32;
/// Exchanges that are kept of each part: those of the last 20 s.
const EXCHANGES_KEPT: usize = 40;
/// How often clocks are asked in the run.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// How long an answer may take before the next question is asked.
const ANSWER_MAX: Duration = Duration::from_secs(1);
/// Time between the moment when the last part is ready and the common start: as long as it may
/// take until all parts have heard of it, on a host whose CPUs are busy.
const START_DELAY: Duration = Duration::from_millis(50);
/// The same where some are on other hosts, at least.
const START_DELAY_ELSEWHERE: Duration = Duration::from_millis(200);

/// A question and its answer, in nanoseconds of the two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When it was asked, by the parent's clock.
    pub asked_ns: u64,
    /// What the part's clock showed.
    pub theirs_ns: u64,
    /// When the answer was there, by the parent's clock.
    pub answered_ns: u64,
}

/// What the clock of a part shows beside that of its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    /// Its time less the parent's.
    pub(super) offset_ns: i128,
    /// By how much that may be wrong.
    pub(super) bound_ns: u64,
}

impl Exchange {
    /// How long it took.
    pub(super) fn round_trip(&self) -> Duration {
        Duration::from_nanos(self.answered_ns.saturating_sub(self.asked_ns))
    }

    /// The difference, as it is at an instant of the parent's clock after the exchange.
    fn offset_at(&self, now_ns: u64) -> Offset {
        let (asked, answered) = (i128::from(self.asked_ns), i128::from(self.answered_ns));
        let age = i128::from(now_ns.saturating_sub(self.asked_ns));
        let bound = (answered - asked + 1) / 2 + age * DRIFT_MAX_PPM / 1_000_000;
        Offset {
            offset_ns: i128::from(self.theirs_ns) - (asked + answered) / 2,
            bound_ns: u64::try_from(bound).unwrap_or(u64::MAX),
        }
    }
}

impl Offset {
    /// What the part's clock shows when the parent's shows that.
    pub(super) fn theirs(&self, own_ns: u64) -> u64 {
        u64::try_from(i128::from(own_ns) + self.offset_ns).unwrap_or_default()
    }
}

/// What is known of the clocks of all parts.
#[derive(Debug)]
pub(super) struct Clocks {
    /// None of a part that shares its parent's clock.
    each: Vec<Option<Known>>,
}

/// What is known of the clock of one part.
#[derive(Debug, Default)]
struct Known {
    exchanges: VecDeque<Exchange>,
    /// When it was asked last, and whether it has answered.
    asked: Option<Instant>,
    has_answered: bool,
}

impl Clocks {
    /// Of these parts, none of which was asked yet.
    pub(super) fn of(parts: &Parts) -> Self {
        let one = |part: usize| parts.host(part).map(|_| Known::default());
        Clocks {
            each: (0..parts.count() as usize).map(one).collect(),
        }
    }

    /// True if some are on other hosts.
    pub(super) fn are_elsewhere(&self) -> bool {
        self.each.iter().any(Option::is_some)
    }

    /// True if a part is to be asked now: without a pause if it `hurries`.
    pub(super) fn is_due(&mut self, part: usize, hurries: bool) -> bool {
        let Some(known) = &mut self.each[part] else {
            return false;
        };
        let pause = match (known.has_answered, hurries) {
            (true, true) => Duration::ZERO,
            (true, false) => ASK_EVERY,
            (false, _) => ANSWER_MAX,
        };
        let is_due = known.asked.is_none_or(|asked| asked.elapsed() >= pause);
        if is_due {
            (known.asked, known.has_answered) = (Some(Instant::now()), false);
        }
        is_due
    }

    /// A part has told what its clock shows.
    pub(super) fn note(&mut self, part: usize, exchange: Exchange) {
        if let Some(known) = &mut self.each[part] {
            known.has_answered = true;
            known.exchanges.push_back(exchange);
            if known.exchanges.len() > EXCHANGES_KEPT {
                known.exchanges.pop_front();
            }
        }
    }

    /// True if enough is known of all of them for a start.
    pub(super) fn are_known(&self) -> bool {
        let mut each = self.each.iter().flatten();
        each.all(|known| known.exchanges.len() >= EXCHANGES)
    }

    /// How long it may take until all have heard when to start.
    pub(super) fn start_delay(&self) -> Duration {
        if !self.are_elsewhere() {
            return START_DELAY;
        }
        let usual = |known: &Known| {
            let mut each: Vec<_> = known.exchanges.iter().map(Exchange::round_trip).collect();
            each.sort_unstable();
            each.get(each.len() / 2).copied()
        };
        let longest = self.each.iter().flatten().filter_map(usual).max();
        START_DELAY_ELSEWHERE.max(4 * longest.unwrap_or_default())
    }

    /// What the clock of a part shows beside that of its parent at an instant of the latter; none
    /// if it is the same clock.
    pub(super) fn offset(&self, part: usize, now_ns: u64) -> Option<Offset> {
        let known = self.each[part].as_ref()?;
        let each = known.exchanges.iter().map(|it| it.offset_at(now_ns));
        each.min_by_key(|it| it.bound_ns)
    }

    /// What the clock of a part shows when its parent's shows that.
    pub(super) fn theirs(&self, part: usize, own_ns: u64) -> u64 {
        let offset = self.offset(part, own_ns);
        offset.map_or(own_ns, |offset| offset.theirs(own_ns))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is known of the clock of one part by these exchanges.
    fn offset(exchanges: &[Exchange], now_ns: u64) -> Option<Offset> {
        let mut clocks = Clocks {
            each: vec![Some(Known::default())],
        };
        exchanges.iter().for_each(|it| clocks.note(0, *it));
        clocks.offset(0, now_ns)
    }

    proptest! {
        /// Whatever the ways take, and whichever clock is faster.
        #[test]
        fn the_true_offset_is_within_the_bound(
            offset_s in 0_i64..100_000,
            drift_ppm in -500_i64..=500,
            ways in prop::collection::vec((0_u64..5_000_000, 0_u64..5_000_000), 1..40),
        ) {
            let theirs = |own: u64| {
                let drift = i128::from(own) * i128::from(drift_ppm) / 1_000_000;
                i128::from(own) + i128::from(offset_s) * 1_000_000_000 + drift
            };
            let mut now = 1_000_000_000_u64;
            let mut exchanges = Vec::new();
            for (there, back) in ways {
                let asked_ns = now;
                let theirs_ns = theirs(now + there) as u64;
                now += there + back;
                exchanges.push(Exchange { asked_ns, theirs_ns, answered_ns: now });
                now += 20_000_000;
            }
            let found = offset(&exchanges, now).unwrap();
            let truth = theirs(now) - i128::from(now);
            let error = (found.offset_ns - truth).unsigned_abs();
            prop_assert!(error <= u128::from(found.bound_ns) + 1, "{error} of {found:?}");
        }
    }

    #[test]
    fn the_shortest_round_trip_counts_unless_it_is_old() {
        let exchange = |asked_ns: u64, took: u64| Exchange {
            asked_ns,
            theirs_ns: 5 + asked_ns + took / 2,
            answered_ns: asked_ns + took,
        };
        let second = 1_000_000_000;
        let all = [
            exchange(0, 100),
            exchange(second, 40),
            exchange(second, 4_000),
        ];
        let now = second + 10_000;
        let best = offset(&all, now).unwrap();
        assert_eq!((best.offset_ns, best.bound_ns), (5, 20 + 5));
        assert_eq!(best.theirs(now), now + 5);
        assert_eq!(offset(&[], now), None);
    }
}
