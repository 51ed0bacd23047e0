//! At the ends of which intervals a worker tells all that it has measured so far.

use std::collections::VecDeque;
use std::time::Duration;

use load::Plan;

/// Time between two checkpoints, of a run of 50 s or more, or of one agent.
const EVERY: Duration = Duration::from_secs(5);
/// Checkpoints of shorter runs of several agents.
const NUMBER: u32 = 10;

/// The intervals whose ends are checkpoints.
pub(crate) struct Checkpoints {
    /// Each of these, counted from 1,
    every: u32,
    /// and that which ends so long after the start of the measured run.
    last_end: Option<Duration>,
    /// Those that have ended and were not taken yet.
    due: VecDeque<u32>,
}

impl Checkpoints {
    /// Those of a plan: one every five seconds; in one of several agents, which may be lost at
    /// any time, also every tenth of it, and one at the end of its measured run.
    pub(crate) fn of(plan: &Plan, is_agent: bool) -> Self {
        let duration = plan.duration.filter(|_| is_agent);
        let tenth = duration.map(|duration| duration / NUMBER);
        let every = tenth.map_or(EVERY, |tenth| tenth.min(EVERY));
        let intervals = every.as_nanos().div_ceil(plan.interval.as_nanos().max(1));
        Checkpoints {
            every: u32::try_from(intervals.max(1)).unwrap_or(u32::MAX),
            last_end: duration,
            due: VecDeque::new(),
        }
    }

    /// This interval has ended so long after the start of the measured run.
    pub(crate) fn look(&mut self, number: u32, end_ns: u64) {
        let is_last = self.last_end == Some(Duration::from_nanos(end_ns));
        if number.is_multiple_of(self.every) || is_last {
            self.due.push_back(number);
        }
    }

    /// The next one to be taken.
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.due.pop_front()
    }
}
