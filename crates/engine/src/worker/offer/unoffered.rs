//! Queries that were due within the run and that a worker which could not keep up never offered.
//!
//! They are counted when the run is over, within one turn, in which the worker reads no responses
//! and may not stay for long: so they are not counted one by one where there may be a billion of
//! them a second.

use std::time::Duration;

use proto::Instant;

use crate::worker::ledger::tally::Tally;

/// Queries that are counted one by one where each has an instant of its own; those behind are
/// counted in bulk.
pub(super) const COUNTED_MAX: u64 = 300_000;

/// Counts them as offered, and as not sent.
pub(super) struct Unoffered<'a> {
    /// What is left of the queries of the measured run.
    pub(super) left: &'a mut u64,
    pub(super) tally: &'a mut Tally,
}

impl Unoffered<'_> {
    /// Counts queries that were due at `due` and belong to the same bin of the timeline; those of
    /// the measured run as far as there are any left.
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
