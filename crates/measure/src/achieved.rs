//! The rate that a run achieved: which of its responses count.
//!
//! A closed loop asks as fast as responses come, so its rate is that of the responses within the
//! window. An open loop asks until the window ends, and its last queries are answered after that:
//! at a round trip of 300 ms, a second in which all of 1,000 queries are answered has 700 responses
//! within it. Nor is the other extreme true, all responses to the queries of the window: a server
//! with a long queue that takes 500 queries a second answers 1,000 in the end too, in two seconds.
//!
//! They are distinguished by whether responses became slower. So responses after the end count if
//! they are no slower than at the start of the run, before a backlog could grow: no slower than 99
//! % of those in the first interval that has any. If queries were lost, a queue may have been full
//! from the start, so that 99 % of the responses waited in it; then they count up to one and a half
//! times the fastest.
//!
//! Queries of a warm-up that are answered within the window make up for those of the window that
//! are answered after it; so the rate is never less than that of all responses in the window.

use crate::histogram::Histogram;
use crate::interval::Interval;
use crate::record::RunRecord;
use crate::scenario::Arrival;

#[cfg(test)]
mod tests;

/// Share of lost queries up to which no queue was full.
const LOST_MAX: f64 = 0.01;
/// Share of the responses at the beginning that are no slower than usual.
const USUAL: f64 = 0.99;

impl RunRecord {
    /// Responses that count for the achieved rate: those within the window and, in the open loop,
    /// those that come after its end no slower than responses usually were when the run began.
    pub fn responses_achieved(&self) -> u64 {
        self.responses_in_window.max(self.in_window_or_usual())
    }

    /// Of the responses that count for the achieved rate, those that came after the window.
    pub fn responses_after_window(&self) -> u64 {
        self.responses_achieved() - self.responses_in_window
    }

    /// Measured queries that were answered within the window, or as fast as usual after it.
    fn in_window_or_usual(&self) -> u64 {
        if !self.is_open_loop() {
            return 0;
        }
        let after = self.intervals.iter();
        let after = after.filter(|interval| interval.start_ns >= self.measured_ns);
        let mut after_window = Histogram::on_demand();
        after.for_each(|it| after_window.merge(&it.distributions.latency));
        let within = self.intervals_in_window().map(|it| it.counts.responses);
        let usual_ns = self.usual_latency_ns(&after_window);
        let buckets = after_window.buckets();
        let usual = buckets.filter(|(low, _, _)| usual_ns.is_some_and(|usual| *low <= usual));
        within.sum::<u64>() + usual.map(|(_, _, count)| count).sum::<u64>()
    }

    /// The latency limit, from the start of the run; `later` if all responses came after the
    /// window.
    fn usual_latency_ns(&self, later: &Histogram) -> Option<u64> {
        let latency = |interval: &'_ Interval| !interval.distributions.latency.is_empty();
        let first = self.intervals_in_window().find(|it| latency(it));
        let first = first.map(|interval| &interval.distributions.latency);
        match first {
            Some(first) if self.lost_share() <= LOST_MAX => first.percentile(USUAL),
            _ => first.unwrap_or(later).min_ns().map(|ns| ns + ns / 2),
        }
    }

    /// True if time alone made queries due, whatever became of those before.
    pub fn is_open_loop(&self) -> bool {
        match self.scenario.arrival {
            Arrival::Open { .. } => true,
            Arrival::Clients { rate_qps } => rate_qps.is_some(),
            Arrival::Closed { .. } => false,
        }
    }
}
