//! Which question comes next, and how many are left.

use load::plan::share;
use load::question_source::Question;
use load::{Plan, QuestionChooser};
use measure::counts::Counts;
use proto::Instant;

/// What one worker asks.
#[derive(Debug)]
pub(super) struct QuestionCursor {
    chooser: QuestionChooser,
    /// Queries of the measured run that are still to be offered.
    pub(super) left: u64,
}

impl QuestionCursor {
    pub(super) fn new(plan: &Plan, worker: u32) -> Self {
        QuestionCursor {
            chooser: QuestionChooser::new(plan, worker),
            left: plan
                .queries_max
                .map_or(u64::MAX, |all| share(all, worker, plan.workers)),
        }
    }

    /// The question of a query that is due at `now`, counted as offered; only those of the measured
    /// run count against the number asked for.
    #[inline]
    pub(super) fn take(
        &mut self,
        now: Instant,
        is_measured: bool,
        counts: &mut Counts,
    ) -> Question {
        let choice = self.chooser.next(now);
        self.left -= u64::from(is_measured);
        counts.offered += 1;
        if choice.is_repeat {
            counts.repeated += 1;
        }
        choice.question
    }
}
