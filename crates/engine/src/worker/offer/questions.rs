//! Which question comes next, and how many queries are left.

use std::ops::Range;

use load::plan::share;
use load::question_source::Question;
use load::{Arrival, Plan, QuestionChooser};
use measure::counts::Counts;
use proto::Instant;

/// The questions of one worker.
#[derive(Debug)]
pub(crate) struct QuestionCursor {
    chooser: QuestionChooser,
    /// Queries of the measured run that are still to be offered.
    pub(crate) left: u64,
}

impl QuestionCursor {
    /// The questions of `worker`, which has these clients.
    pub(crate) fn new(plan: &Plan, worker: u32, clients: Range<u32>) -> Self {
        let left = match (&plan.arrival, plan.queries_max) {
            (Arrival::Replay(replay), _) => replay.queries_of(&clients),
            (_, Some(all)) => share(all, worker, plan.workers),
            (_, None) => u64::MAX,
        };
        QuestionCursor {
            chooser: QuestionChooser::new(plan, worker),
            left,
        }
    }

    /// Takes the question of a query that is due at `now`, and counts it as offered.
    #[inline(always)]
    pub(crate) fn take(&mut self, now: Instant, counts: &mut Counts) -> Question {
        let choice = self.chooser.next(now);
        if choice.is_repeat {
            counts.repeated += 1;
        }
        choice.question
    }

    /// Counts queries as offered; only those of the measured run count against the configured
    /// number.
    #[inline]
    pub(crate) fn count(&mut self, queries: u32, is_measured: bool, counts: &mut Counts) {
        if is_measured {
            self.left -= u64::from(queries);
        }
        counts.offered += u64::from(queries);
    }
}
