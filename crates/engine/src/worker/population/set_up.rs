//! Connection set-up before the run, and the pace of all attempts.

use std::collections::VecDeque;

use load::Plan;
use load::arrival::{Process, Schedule};
use proto::Instant;

/// Progress of connection set-up before the run, and the pace of all attempts.
#[derive(Debug, Default)]
pub(crate) struct SetUp {
    pub(crate) next_client: u32,
    pub(crate) connecting: u32,
    pub(crate) settled: u32,
    pub(crate) last_progress_at: Instant,
    /// When attempts may be made, if their rate is limited.
    pub(crate) pace: Option<Schedule>,
    /// Clients that wait for their turn.
    pub(crate) queue: VecDeque<u32>,
}

impl SetUp {
    pub(crate) fn new(plan: &Plan, worker: u32, now: Instant) -> Self {
        let share = (worker, plan.workers);
        SetUp {
            last_progress_at: now,
            pace: (plan.connections.rate_max)
                .map(|rate| Schedule::new(rate, Process::Constant, share, plan.seed, now)),
            ..SetUp::default()
        }
    }

    /// When the next attempt is due, if a client waits for it.
    pub(crate) fn next_due(&self) -> Instant {
        match (&self.pace, self.queue.is_empty()) {
            (Some(pace), false) => pace.next_due(),
            _ => Instant::FAR_FUTURE,
        }
    }
}
