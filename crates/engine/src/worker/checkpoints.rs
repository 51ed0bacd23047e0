//! Checkpoints: at the ends of some intervals a worker reports all that it has measured so far. So
//! the loss of an agent does not lose its results, and a run can be judged while it is in progress.
//!
//! A checkpoint is taken when its interval ends, before anything that happened later is counted. It
//! is what the worker would report if the run ended there, but queries that are open then stay open
//! in it. Statistics of single clients are left out: with many clients, collecting them takes long
//! enough to delay queries.

use std::collections::VecDeque;

use driver::Driver;
use proto::Instant;

use super::{Window, Worker, WorkerSummary};

/// Intervals already taken from a worker, and checkpoints ready to be taken.
#[derive(Default)]
pub(super) struct Taken {
    /// Intervals that were taken.
    pub(super) intervals: u32,
    /// What was measured until the ends of some intervals, by their numbers from 1.
    checkpoints: VecDeque<(u32, WorkerSummary)>,
}

impl Worker {
    /// The worker's summary at the end of the interval that was taken last, if that is a
    /// checkpoint.
    pub(crate) fn poll_checkpoint(&mut self) -> Option<WorkerSummary> {
        let last = self.taken.intervals;
        let checkpoints = &mut self.taken.checkpoints;
        let (_, summary) = checkpoints.pop_front_if(|(number, _)| *number == last)?;
        Some(summary)
    }

    /// The summary that a finished worker contributes to later checkpoints.
    pub(crate) fn last_checkpoint(&self, driver: &impl Driver) -> WorkerSummary {
        WorkerSummary {
            bins: self.ledger.tally.timeline().clone(),
            ..self.common_summary(driver)
        }
    }

    /// Ends the intervals that are over at `now`. Nothing that happened later is counted yet.
    #[inline]
    pub(super) fn roll_intervals(&mut self, driver: &impl Driver, now: Instant) {
        if self.ledger.roll_intervals(driver, now) {
            self.take_checkpoints(driver);
        }
    }

    #[cold]
    fn take_checkpoints(&mut self, driver: &impl Driver) {
        while let Some((number, at)) = self.ledger.tally.next_checkpoint() {
            let mut timeline = self.course.timeline;
            (timeline.run_ended_at, timeline.drained_at) = (at, at);
            let window = Window {
                end: at,
                ..self.ledger.window
            };
            let summary = WorkerSummary {
                timeline,
                window,
                bins: self.ledger.tally.timeline_so_far(),
                ..self.common_summary(driver)
            };
            self.taken.checkpoints.push_back((number, summary));
        }
    }
}
