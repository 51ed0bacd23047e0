//! The offset between the clocks of an agent on another host and of its lead.
//!
//! An agent replies to each question with its clock's time. It read its clock at some instant
//! between question and answer. So the error of the offset is at most half of the round trip,
//! however that divides between the two directions. Clocks run at different rates, so the bound
//! grows with the age of an exchange.

use std::collections::VecDeque;
use std::time::Duration;

use proto::Instant;

use crate::BEAT_EVERY;

/// Maximum drift between two clocks: 500 ppm, the most that Linux corrects.
const DRIFT_MAX_PPM: i128 = 500;
/// Exchanges before a start; if each takes long, as many as fit into [`ENOUGH`].
const EXCHANGES: usize = 32;
const EXCHANGES_MIN: usize = 3;
const ENOUGH: Duration = Duration::from_secs(5);
/// How long an exchange is used.
const EXCHANGE_LASTS: Duration = Duration::from_secs(20);
/// How long an answer may take before the next question is asked.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// A question and its answer, in nanoseconds of the two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// When the question was sent, by the lead's clock.
    pub(crate) asked_ns: u64,
    /// What the agent's clock showed.
    pub(crate) theirs_ns: u64,
    /// When the answer came, by the lead's clock.
    pub(crate) answered_ns: u64,
}

/// The offset of an agent's clock from that of its lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offset {
    /// Its time less the lead's.
    pub(crate) offset_ns: i128,
    /// Its maximum error.
    pub(crate) bound_ns: u64,
}

impl Exchange {
    /// How long it took.
    fn round_trip(&self) -> Duration {
        Duration::from_nanos(self.answered_ns.saturating_sub(self.asked_ns))
    }

    /// The offset at an instant of the lead's clock after the exchange.
    fn offset_at(&self, now: Instant) -> Offset {
        let (asked, answered) = (i128::from(self.asked_ns), i128::from(self.answered_ns));
        let age = i128::from(now.as_nanos().saturating_sub(self.asked_ns));
        let bound = (answered - asked + 1) / 2 + age * DRIFT_MAX_PPM / 1_000_000;
        Offset {
            offset_ns: i128::from(self.theirs_ns) - (asked + answered) / 2,
            bound_ns: u64::try_from(bound).unwrap_or(u64::MAX),
        }
    }
}

impl Offset {
    /// The agent's time at an instant of the lead's clock.
    pub(crate) fn theirs(&self, own: Instant) -> u64 {
        let theirs = i128::from(own.as_nanos()) + self.offset_ns;
        u64::try_from(theirs).unwrap_or_default()
    }
}

/// The recent exchanges with one agent.
#[derive(Debug, Default)]
pub(crate) struct AgentsClock {
    exchanges: VecDeque<Exchange>,
    /// When the last question was sent; none once it is answered.
    asked: Option<Instant>,
    has_answered: bool,
}

impl AgentsClock {
    /// True if a question is due now, which then counts as sent; without a pause if it `hurries`.
    pub(crate) fn is_due(&mut self, now: Instant, hurries: bool) -> bool {
        let pause = match (self.has_answered, hurries) {
            (true, true) => Duration::ZERO,
            (true, false) => BEAT_EVERY,
            (false, _) => ANSWER_MAX,
        };
        let is_due = self.asked.is_none_or(|asked| now >= asked + pause);
        if is_due {
            (self.asked, self.has_answered) = (Some(now), false);
        }
        is_due
    }

    /// Records an exchange.
    pub(crate) fn note(&mut self, exchange: Exchange) {
        self.has_answered = true;
        // Ignore an answer to a question of another clock.
        if exchange.asked_ns > exchange.answered_ns {
            return;
        }
        self.exchanges.push_back(exchange);
        let counts_from = (exchange.answered_ns).saturating_sub(EXCHANGE_LASTS.as_nanos() as u64);
        while self.exchanges.len() > EXCHANGES
            && let Some(_) = self.exchanges.pop_front_if(|it| it.asked_ns < counts_from)
        {}
        if self.exchanges.len() > 2 * EXCHANGES {
            self.exchanges.pop_front();
        }
    }

    /// True if there are enough recent exchanges for a start.
    pub(crate) fn is_known(&self, now: Instant) -> bool {
        let ago = |time: Duration| now.as_nanos().saturating_sub(time.as_nanos() as u64);
        let counts_from = ago(EXCHANGE_LASTS);
        let recent = self
            .exchanges
            .iter()
            .filter(|it| it.asked_ns >= counts_from);
        let took_long = recent
            .clone()
            .next()
            .is_some_and(|it| it.asked_ns <= ago(ENOUGH));
        let number = recent.count();
        number >= EXCHANGES || (took_long && number >= EXCHANGES_MIN)
    }

    /// The usual duration of an exchange.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        let mut each: Vec<_> = self.exchanges.iter().map(Exchange::round_trip).collect();
        each.sort_unstable();
        each.get(each.len() / 2).copied()
    }

    /// Its offset at an instant of the lead's clock.
    pub(crate) fn offset(&self, now: Instant) -> Option<Offset> {
        let each = self.exchanges.iter().map(|it| it.offset_at(now));
        each.min_by_key(|it| it.bound_ns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The offset of an agent's clock by these exchanges.
    fn offset(exchanges: &[Exchange], now_ns: u64) -> Option<Offset> {
        let mut clock = AgentsClock::default();
        exchanges.iter().for_each(|it| clock.note(*it));
        clock.offset(Instant::from_nanos(now_ns))
    }

    /// What an agent's clock shows, by the lead's: so far ahead at its zero, and with that drift.
    #[derive(Clone, Copy, Debug)]
    struct Theirs {
        ahead_s: i64,
        drift_ppm: i64,
    }

    impl Theirs {
        fn at(self, own: u64) -> i128 {
            let drift = i128::from(own) * i128::from(self.drift_ppm) / 1_000_000;
            i128::from(own) + i128::from(self.ahead_s) * 1_000_000_000 + drift
        }

        /// The error of an offset at a time of the lead's clock.
        fn error(self, found: Offset, own: u64) -> u128 {
            (found.offset_ns - (self.at(own) - i128::from(own))).unsigned_abs()
        }

        /// A question at that time, and ways that take so long.
        fn exchange(self, asked_ns: u64, (there, back): (u64, u64)) -> Exchange {
            Exchange {
                asked_ns,
                theirs_ns: self.at(asked_ns + there) as u64,
                answered_ns: asked_ns + there + back,
            }
        }
    }

    fn any_clock() -> impl Strategy<Value = Theirs> {
        (0_i64..100_000, -500_i64..=500)
            .prop_map(|(ahead_s, drift_ppm)| Theirs { ahead_s, drift_ppm })
    }

    proptest! {
        /// However long the two directions take, and whichever clock is faster.
        #[test]
        fn the_true_offset_is_within_the_bound(
            theirs in any_clock(),
            ways in prop::collection::vec((0_u64..5_000_000, 0_u64..5_000_000), 1..90),
        ) {
            let mut now = 1_000_000_000_u64;
            let mut exchanges = Vec::new();
            for ways in ways {
                let exchange = theirs.exchange(now, ways);
                exchanges.push(exchange);
                now = exchange.answered_ns + 20_000_000;
            }
            let found = offset(&exchanges, now).unwrap();
            let error = theirs.error(found, now);
            prop_assert!(error <= u128::from(found.bound_ns) + 1, "{error} of {found:?}");
        }

        /// Over a minute of a run: the offset, the ends of intervals, which an agent has by its own
        /// clock, and the drift that is reported.
        #[test]
        fn intervals_of_a_drifting_clock_end_within_the_bound(
            theirs in any_clock(),
            before in prop::collection::vec((0_u64..5_000_000, 0_u64..5_000_000), 32),
            meanwhile in prop::collection::vec((0_u64..50_000_000, 0_u64..50_000_000), 120),
        ) {
            let second = 1_000_000_000;
            let mut clock = AgentsClock::default();
            let mut armed = second;
            for ways in before {
                let exchange = theirs.exchange(armed, ways);
                clock.note(exchange);
                armed = exchange.answered_ns;
            }
            let offset_at = |clock: &AgentsClock, own| {
                clock.offset(Instant::from_nanos(own)).unwrap()
            };
            let at_arming = offset_at(&clock, armed);
            let start = armed + second / 10;
            let at_start = offset_at(&clock, start);
            let starts = i128::from(at_start.theirs(Instant::from_nanos(start)));
            for (number, ways) in (0..).zip(meanwhile) {
                let exchange = theirs.exchange(start + number * second / 2, ways);
                clock.note(exchange);
                let found = offset_at(&clock, exchange.answered_ns);
                let error = theirs.error(found, exchange.answered_ns);
                prop_assert!(error <= u128::from(found.bound_ns) + 1, "{error} of {found:?}");
            }
            for number in 1..=60 {
                let since = number * second;
                let late = starts + i128::from(since) - theirs.at(start + since);
                let bound = u128::from(at_start.bound_ns + since * 500 / 1_000_000);
                prop_assert!(late.unsigned_abs() <= bound + 1_000_000, "{late} of {bound}");
            }
            let end = start + 60 * second;
            let at_end = offset_at(&clock, end);
            let drift = theirs.at(end) - theirs.at(armed) - i128::from(end - armed);
            let error = (at_end.offset_ns - at_arming.offset_ns - drift).unsigned_abs();
            let bound = u128::from(at_arming.bound_ns + at_end.bound_ns);
            prop_assert!(error <= bound + 2, "{error} of {bound}");
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
        assert_eq!(best.theirs(Instant::from_nanos(now)), now + 5);
        assert_eq!(offset(&[], now), None);
    }

    /// Agents that wait for others for minutes get new questions before they start.
    #[test]
    fn only_recent_exchanges_let_a_start_happen() {
        let mut clock = AgentsClock::default();
        let second = 1_000_000_000;
        for number in 0..40 {
            clock.note(Exchange {
                asked_ns: second + number * 1_000,
                theirs_ns: 7,
                answered_ns: second + number * 1_000 + 500,
            });
        }
        assert!(clock.is_known(Instant::from_nanos(2 * second)));
        assert!(!clock.is_known(Instant::from_nanos(60 * second)));
    }
}
