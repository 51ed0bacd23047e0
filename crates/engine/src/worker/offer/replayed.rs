//! The offer of a replay: each client asks what one of a capture did, when it did.
//!
//! The list of queries is shared by all workers and read-only. A worker looks at each of them once
//! a round and takes those of its own clients: no allocation, no heap.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use load::Replay;
use load::question_source::Question;
use load::replay::ReplayCursor;
use proto::Instant;

use super::submit::Due;
use crate::worker::ledger::tally::Tally;

/// When the clients of one worker ask what.
pub(crate) struct Replayed {
    replay: Arc<Replay>,
    cursor: ReplayCursor,
    /// Number of the worker's first client.
    first: u32,
    /// When the first query of the list is due; far in the future until the run starts.
    start: Instant,
    /// When the worker's next query is due.
    next_due: Instant,
}

impl Replayed {
    /// The queries of these clients.
    pub(crate) fn new(replay: &Arc<Replay>, clients: Range<u32>) -> Self {
        Replayed {
            first: clients.start,
            cursor: ReplayCursor::new(replay, clients),
            replay: Arc::clone(replay),
            start: Instant::FAR_FUTURE,
            next_due: Instant::FAR_FUTURE,
        }
    }

    /// The first query of the list, whoever asks it, is due at `start`.
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
            client: query.client - self.first,
            question: Some(Question::plain(query.question)),
        };
        self.cursor.advance(&self.replay);
        self.look();
        Some(due)
    }

    /// Counts what was due before `end` and was never offered, of what is `left`.
    pub(super) fn count_unoffered(&mut self, left: &mut u64, tally: &mut Tally, end: Instant) {
        while self.next_due() < end {
            let Some(due) = self.take() else { break };
            tally.due_at(due.at);
            *left -= 1;
            tally.count_unoffered(due.at, 1);
        }
    }
}
