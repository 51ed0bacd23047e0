//! What the workers of a run have told so far, and the run that comes of it, also where some do
//! not finish.
//!
//! Order of calls: [`Collected::add`], [`Collected::end`] and [`Collected::finish`] as workers
//! tell, [`Collected::settle`] after them, [`Collected::outcome`] when nobody will tell more.

use std::collections::BTreeMap;
use std::ops::Range;

use measure::Interval;

use crate::gathering::{Gathering, Progress, WorkerId, worker_ids};
use crate::threads::{Outcome, WorkerOutcome};
use crate::watchdog::Watchdog;
use crate::worker::RunInputs;

/// Everything that workers have told.
#[derive(Debug)]
pub struct Collected {
    gathering: Gathering,
    /// All intervals of each worker together, until it has finished.
    totals: BTreeMap<WorkerId, Option<Interval>>,
    workers: Vec<WorkerOutcome>,
}

impl Collected {
    /// Of the workers that the groups have on some of the threads.
    pub fn of(groups: &[RunInputs], threads: &Range<u32>) -> Self {
        Collected {
            gathering: Gathering::of(groups, threads),
            totals: worker_ids(groups, threads).map(|it| (it, None)).collect(),
            workers: Vec::new(),
        }
    }

    /// The worker of a thread and a group has ended an interval.
    pub fn add(&mut self, place: (usize, usize), interval: Interval) {
        interval.append_to(self.totals.entry(place).or_default());
        self.gathering.add(place, interval);
    }

    /// It will end no more.
    pub fn end(&mut self, place: (usize, usize)) {
        self.gathering.end(place);
    }

    /// It has finished; its total is filled in here.
    pub fn finish(&mut self, mut worker: WorkerOutcome) {
        let total = self.totals.remove(&(worker.thread, worker.group));
        worker.total = total.flatten().unwrap_or_default();
        self.workers.push(worker);
    }

    /// Shows the intervals that have become complete.
    pub fn settle(&mut self, on_progress: impl FnMut(&Progress)) {
        self.gathering.settle(on_progress);
    }

    /// The run, all of whose workers have finished.
    pub fn whole(self) -> Outcome {
        Outcome::new(self.gathering, self.workers)
    }

    /// The run. Workers that have not finished are left behind; what they have not told is shown
    /// too, since whoever is told of intervals adds them up.
    pub fn outcome(mut self, watchdog: &Watchdog, on_progress: impl FnMut(&Progress)) -> Outcome {
        for (place, total) in std::mem::take(&mut self.totals) {
            let (worker, rest) = watchdog.left_behind(place, total);
            if let Some(rest) = rest {
                self.gathering.add(place, rest);
            }
            self.gathering.end(place);
            self.workers.push(worker);
        }
        self.gathering.settle(on_progress);
        let place = |worker: &WorkerOutcome| (worker.thread, worker.group);
        self.workers.sort_by_key(place);
        Outcome {
            left_behind: watchdog.threads(),
            ..Outcome::new(self.gathering, self.workers)
        }
    }
}
