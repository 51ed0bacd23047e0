//! The offer of a replay: each client repeats the queries of one client of a capture, at the
//! captured times.
//!
//! The list of queries is shared by all workers and read-only. A worker scans it once a round and
//! takes the queries of its own clients: no allocation, no heap.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use load::Replay;
use load::question_source::Question;
use load::replay::ReplayCursor;
use proto::Instant;

use super::submit::Due;
use super::unoffered::{COUNTED_MAX, Unoffered};

/// The queries of one worker's clients.
pub(crate) struct Replayed {
    replay: Arc<Replay>,
    cursor: ReplayCursor,
    /// The worker's clients, by their numbers in the population.
    clients: Range<u32>,
    /// When the first query of the list is due; far in the future until the run starts.
    start: Instant,
    /// When the worker's next query is due.
    next_due: Instant,
}

impl Replayed {
    /// The queries of these clients.
    pub(crate) fn new(replay: &Arc<Replay>, clients: Range<u32>) -> Self {
        Replayed {
            cursor: ReplayCursor::new(replay, clients.clone()),
            clients,
            replay: Arc::clone(replay),
            start: Instant::FAR_FUTURE,
            next_due: Instant::FAR_FUTURE,
        }
    }

    /// The first query of the list, of whatever client, is due at `start`.
    pub(crate) fn start(&mut self, start: Instant) {
        self.start = start;
        self.look();
    }

    /// When the next query of any client is due.
    #[inline]
    pub(crate) fn next_due(&self) -> Instant {
        self.next_due
    }

    #[inline]
    fn look(&mut self) {
        let next = self.cursor.peek(&self.replay);
        self.next_due = next.map_or(Instant::FAR_FUTURE, |query| {
            self.start + Duration::from_nanos(query.at_ns)
        });
    }

    /// Takes the query that is due first.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Due> {
        let query = self.cursor.peek(&self.replay)?;
        let due = Due {
            at: self.next_due,
            client: query.client - self.clients.start,
            question: Some(Question::plain(query.question)),
        };
        self.cursor.advance(&self.replay);
        self.look();
        Some(due)
    }

    /// Counts what was due before `end` and was never offered.
    pub(super) fn count_unoffered(&mut self, unoffered: &mut Unoffered<'_>, end: Instant) {
        for _ in 0..COUNTED_MAX {
            if self.next_due() >= end {
                return;
            }
            let Some(due) = self.take() else { return };
            unoffered.count(due.at, 1);
        }
        let own = self.replay.queries_of(&self.clients) as f64;
        let share = own / self.replay.queries_total() as f64;
        let rate_qps = share * self.replay.rate_qps().unwrap_or(0.0);
        let next_due = self.next_due().min(end);
        let left_s = end.nanos_since(next_due) as f64 / 1e9;
        unoffered.count_evenly((left_s * rate_qps) as u64, (next_due, end));
    }
}
