//! Queries that were due within the run but never offered, because the worker could not keep up.
//!
//! They are counted at the end of the run, within one turn. No responses are read during a turn, so
//! it has to be short: where there may be a billion a second, they are counted in bulk.

use std::time::Duration;

use proto::Instant;

use crate::worker::ledger::tally::Tally;

/// Queries that are counted one by one where each has its own instant; the rest is counted in bulk.
pub(super) const COUNTED_MAX: u64 = 300_000;

/// Counts them as offered, and as not sent.
pub(super) struct Unoffered<'a> {
    /// Remaining queries of the measured run.
    pub(super) left: &'a mut u64,
    pub(super) tally: &'a mut Tally,
}

impl Unoffered<'_> {
    /// Counts queries that were due at `due` and belong to the same bin of the timeline; those of
    /// the measured run only while any are left.
    pub(super) fn count(&mut self, due: Instant, queries: u64) {
        let mut queries = queries;
        if self.tally.is_measured(due) {
            queries = queries.min(*self.left);
            *self.left -= queries;
        }
        self.tally.due_at(due);
        self.tally.count_unoffered(due, queries);
    }

    /// Counts `queries` that were due evenly between two instants, each in its bin of the timeline.
    pub(super) fn count_evenly(&mut self, queries: u64, (start, end): (Instant, Instant)) {
        let (mut from, mut counted) = (start, 0);
        let all_ns = end.nanos_since(start) as f64;
        while from < end {
            // The bin that `from` is in, or the warm-up.
            self.tally.due_at(from);
            let until = end.min(self.tally.due_last() + Duration::from_nanos(1));
            let due = match until < end {
                true => (until.nanos_since(start) as f64 / all_ns * queries as f64) as u64,
                false => queries,
            };
            self.count(from, due.saturating_sub(counted));
            (from, counted) = (until, due);
        }
    }
}
