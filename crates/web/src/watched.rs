//! What the snapshots of a command add up to.

use std::collections::VecDeque;
use std::sync::Arc;

use lab::live::{Next, Phase, Runs, Snapshot};
use measure::Interval;

use crate::bins::Bins;
use crate::earlier::{EARLIER_MAX, EarlierRun};

/// What was shown so far.
#[derive(Debug, Default)]
pub struct Watched {
    /// The command, such as `run`.
    pub(crate) command: String,
    /// The run that goes on, or that ended last, and those before it.
    pub(crate) runs: Runs,
    pub(crate) bins: Bins,
    /// The newest interval of that run.
    pub(crate) interval: Option<Arc<Interval>>,
    /// The newest runs before it, with their charts.
    pub(crate) earlier: VecDeque<EarlierRun>,
    /// Runs that were ever in it.
    pub(crate) earlier_count: u64,
    /// Snapshots that are in the figures, and those that had left the ring, in all runs.
    pub(crate) read: u64,
    pub(crate) missed: u64,
}

impl Watched {
    /// Of a command that has shown nothing yet.
    pub fn new(command: &str) -> Watched {
        Watched {
            command: command.to_owned(),
            ..Watched::default()
        }
    }

    /// Notes snapshots that had left the ring before they were read.
    pub fn note_missed(&mut self, next: &Next) {
        self.missed += next.missed.end.saturating_sub(next.missed.start);
    }

    /// Adds one snapshot.
    pub fn add(&mut self, snapshot: &Arc<Snapshot>) {
        self.read += 1;
        if self.runs.is_next(snapshot) {
            self.end_run();
        }
        self.runs.add(snapshot);
        if let Some(interval) = &snapshot.shown.interval {
            self.bins.push(interval);
            self.interval = Some(Arc::clone(interval));
        }
    }

    /// Draws the charts of the run that is over, and forgets its points.
    fn end_run(&mut self) {
        let bins = std::mem::take(&mut self.bins);
        if self.interval.take().is_none() {
            return;
        }
        self.earlier_count += 1;
        if self.earlier.len() >= EARLIER_MAX {
            self.earlier.pop_front();
        }
        let run = EarlierRun::draw(self.earlier_count, &self.runs, &bins);
        self.earlier.push_back(run);
    }

    /// The newest snapshot.
    pub(crate) fn newest(&self) -> Option<&Snapshot> {
        self.runs.newest()
    }

    /// How far the run is.
    pub(crate) fn phase(&self) -> Phase {
        self.runs.phase()
    }

    /// Everything that the run has measured so far.
    pub(crate) fn total(&self) -> Option<&Interval> {
        self.runs.total()
    }
}
