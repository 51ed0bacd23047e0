//! Which intervals end with a checkpoint, in which a worker reports all that it has measured so
//! far.

use std::collections::VecDeque;
use std::time::Duration;

use load::Plan;

/// Time between two checkpoints of a run of 50 s or more, or without several agents.
const EVERY: Duration = Duration::from_secs(5);
/// Checkpoints of shorter runs of several agents.
const NUMBER: u32 = 10;

/// The intervals whose ends are checkpoints.
pub(crate) struct Checkpoints {
    /// Each of these, counted from 1,
    every: u32,
    /// and the one that ends this long after the start of the measured run.
    last_end: Option<Duration>,
    /// Checkpoints reached and not taken yet.
    due: VecDeque<u32>,
}

impl Checkpoints {
    /// The checkpoints of a plan: one every five seconds. An agent, which may be lost at any time,
    /// takes at least ten, and one at the end of its measured run.
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

    /// Interval `number` has ended `end_ns` after the start of the measured run.
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
