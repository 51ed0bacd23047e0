//! What the workers of a run have reported so far, and the outcome computed from it, even if some
//! workers do not finish.
//!
//! Order of calls: [`Collected::add`], [`Collected::note_checkpoint`] after it, [`Collected::end`]
//! and [`Collected::finish`] as workers report, [`Collected::settle`] after them,
//! [`Collected::outcome`] when no worker will report again.

use std::collections::BTreeMap;
use std::ops::Range;

use measure::{Interval, Intervals};

use crate::gathering::{Gathering, Progress, WorkerId, worker_ids};
use crate::threads::{Outcome, WorkerOutcome};
use crate::watchdog::Watchdog;
use crate::worker::RunInputs;

/// Everything that workers have reported.
#[derive(Debug)]
pub struct Collected {
    gathering: Gathering,
    /// All intervals of each worker together, until it has finished.
    totals: BTreeMap<WorkerId, Option<Interval>>,
    workers: Vec<WorkerOutcome>,
    checkpoints: Checkpoints,
}

/// What workers had measured at the ends of intervals, by interval number from 1, kept until all
/// workers have reported it.
#[derive(Debug)]
struct Checkpoints {
    told: BTreeMap<usize, Vec<WorkerOutcome>>,
    /// Last checkpoints of workers that have ended.
    ended: Vec<WorkerOutcome>,
    workers: usize,
    groups: usize,
}

impl Collected {
    /// Expects reports from the workers that the groups have on these threads.
    pub fn of(groups: &[RunInputs], threads: &Range<u32>) -> Self {
        Collected {
            gathering: Gathering::of(groups, threads),
            totals: worker_ids(groups, threads).map(|it| (it, None)).collect(),
            workers: Vec::new(),
            checkpoints: Checkpoints {
                told: BTreeMap::new(),
                ended: Vec::new(),
                workers: worker_ids(groups, threads).count(),
                groups: groups.len(),
            },
        }
    }

    /// The worker of a thread and a group has ended an interval.
    pub fn add(&mut self, place: (usize, usize), interval: Interval) {
        interval.append_to(self.totals.entry(place).or_default());
        self.gathering.add(place, interval);
    }

    /// Takes what a worker had measured by the end of the interval that it reported last.
    pub fn note_checkpoint(&mut self, worker: WorkerOutcome) {
        let number = self.gathering.told(worker.place());
        let worker = self.with_total(worker);
        self.checkpoints
            .told
            .entry(number)
            .or_default()
            .push(worker);
    }

    /// Takes what a worker that has ended contributes to all later checkpoints.
    pub fn note_last_checkpoint(&mut self, worker: WorkerOutcome) {
        let worker = self.with_total(worker);
        self.checkpoints.ended.push(worker);
    }

    /// Fills in the total of its intervals so far, as if the run ended there.
    fn with_total(&self, mut worker: WorkerOutcome) -> WorkerOutcome {
        let total = self.totals.get(&worker.place()).cloned().flatten();
        worker.total = total.unwrap_or_default();
        worker.cut_off();
        worker
    }

    /// The worker will end no more intervals.
    pub fn end(&mut self, place: (usize, usize)) {
        self.gathering.end(place);
    }

    /// The worker has finished; its total is filled in here.
    pub fn finish(&mut self, mut worker: WorkerOutcome) {
        let total = self.totals.remove(&worker.place());
        worker.total = total.flatten().unwrap_or_default();
        self.workers.push(worker);
    }

    /// Shows the intervals that have become complete.
    pub fn settle(&mut self, mut on_progress: impl FnMut(&Progress)) {
        let checkpoints = &mut self.checkpoints;
        self.gathering.settle(|progress| {
            match checkpoints.take(progress.index + 1) {
                None => on_progress(progress),
                checkpoint => on_progress(&Progress {
                    checkpoint,
                    ..progress.clone()
                }),
            };
        });
    }

    /// The outcome once all workers have finished.
    pub fn whole(self) -> Outcome {
        Outcome::new(self.gathering, self.workers)
    }

    /// The outcome. Workers that have not finished are left behind; the interval of what they did
    /// not report goes to `on_progress` too, because its receiver adds intervals up.
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
        self.workers.sort_by_key(WorkerOutcome::place);
        Outcome {
            left_behind: watchdog.threads(),
            ..Outcome::new(self.gathering, self.workers)
        }
    }
}

impl Checkpoints {
    /// The outcome up to the end of this interval, once all workers have reported it.
    fn take(&mut self, number: usize) -> Option<Box<Outcome>> {
        let mut workers = self.told.remove(&number)?;
        let places: Vec<WorkerId> = workers.iter().map(WorkerOutcome::place).collect();
        let ended = self.ended.iter();
        workers.extend(ended.filter(|it| !places.contains(&it.place())).cloned());
        if workers.len() < self.workers {
            return None;
        }
        workers.sort_by_key(WorkerOutcome::place);
        let mut totals: Vec<Option<Interval>> = vec![None; self.groups];
        let mut all: Option<Interval> = None;
        for worker in &workers {
            for sum in [&mut totals[worker.group], &mut all] {
                match sum {
                    Some(sum) => sum.merge(&worker.total),
                    none => *none = Some(worker.total.clone()),
                }
            }
        }
        let mut intervals = Intervals::default();
        intervals.push(all.unwrap_or_default());
        Some(Box::new(Outcome {
            intervals,
            totals: totals.into_iter().map(Option::unwrap_or_default).collect(),
            workers,
            left_behind: Vec::new(),
            is_checkpoint: true,
        }))
    }
}
