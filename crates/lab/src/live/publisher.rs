//! The publisher of one run.

use std::sync::Arc;
use std::time::Duration;

use engine::Progress;

use super::{Live, Phase, Shown};
use crate::run::RunRequest;

/// Publishes what a run shows, from before it begins until it is over.
#[derive(Debug)]
pub(crate) struct Publisher {
    live: Live,
    /// When the load ends, in nanoseconds since the start of the measured run; none if the time does
    /// not end it.
    run_ns: Option<u64>,
    shown: Shown,
}

impl Publisher {
    /// Of a run of these groups.
    pub(crate) fn begin(live: &Live, groups: &[RunRequest]) -> Publisher {
        let ends = groups.iter().map(|group| group.plan.duration);
        let ends: Option<Vec<Duration>> = ends.collect();
        let ends = ends.and_then(|all| all.into_iter().max());
        let publisher = Publisher {
            live: live.clone(),
            run_ns: ends.and_then(|end| u64::try_from(end.as_nanos()).ok()),
            shown: Shown {
                left: ends,
                ..Shown::default()
            },
        };
        publisher.publish();
        publisher
    }

    /// An interval has ended.
    pub(crate) fn show(&mut self, progress: &Progress) {
        let interval = &progress.interval;
        let is_load = self.run_ns.is_none_or(|end| interval.start_ns < end);
        self.shown.phase = match is_load {
            true => Phase::Load,
            false => Phase::Drain,
        };
        let left = self.run_ns.map(|end| end.saturating_sub(interval.end_ns));
        self.shown.left = left.map(Duration::from_nanos);
        self.shown.interval = Some(Arc::new(interval.clone()));
        self.publish();
    }

    fn publish(&self) {
        self.live.publish(self.shown.clone());
    }
}

impl Drop for Publisher {
    /// The run is over, however it ended.
    fn drop(&mut self) {
        self.shown.phase = Phase::Ended;
        (self.shown.left, self.shown.interval) = (None, None);
        self.publish();
    }
}
