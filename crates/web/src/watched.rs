//! What the snapshots of a command add up to.

use std::collections::VecDeque;
use std::sync::Arc;

use lab::live::{Next, Phase, Place, Snapshot, Sums};
use measure::Interval;

use crate::bins::Bins;

/// Most finished runs of a command that are listed: the newest.
const RUNS_MAX: usize = 100;

/// A run of a command that is over, such as a trial of a search.
#[derive(Clone, Debug)]
pub(crate) struct FinishedRun {
    pub(crate) place: Arc<Place>,
    pub(crate) figures: RunFigures,
}

/// What is listed of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunFigures {
    pub(crate) sent_qps: f64,
    pub(crate) responses_qps: f64,
    pub(crate) lost: u64,
    pub(crate) offered: u64,
    pub(crate) p99_ns: Option<u64>,
    /// What limited it, once that is judged.
    pub(crate) limit: Option<&'static str>,
}

/// What was shown so far.
#[derive(Debug, Default)]
pub struct Watched {
    /// The command, such as `run`.
    pub(crate) command: String,
    pub(crate) place: Arc<Place>,
    /// Of the run that goes on, or that ended last.
    pub(crate) sums: Sums,
    pub(crate) bins: Bins,
    /// The newest interval of that run.
    pub(crate) interval: Option<Arc<Interval>>,
    /// The runs before it.
    pub(crate) finished: VecDeque<FinishedRun>,
    /// Finished runs that are not listed any more.
    pub(crate) unlisted: u64,
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
        if self.place != snapshot.place {
            self.begin(&snapshot.place);
        }
        self.sums.add(snapshot);
        if let Some(interval) = &snapshot.shown.interval {
            self.bins.push(interval);
            self.interval = Some(Arc::clone(interval));
        }
    }

    fn begin(&mut self, place: &Arc<Place>) {
        if self.newest().is_some() {
            if self.finished.len() >= RUNS_MAX {
                self.finished.pop_front();
                self.unlisted += 1;
            }
            self.finished.push_back(FinishedRun {
                place: Arc::clone(&self.place),
                figures: self.figures(),
            });
        }
        self.place = Arc::clone(place);
        self.sums = Sums::default();
        self.bins = Bins::default();
        self.interval = None;
    }

    /// The newest snapshot.
    pub(crate) fn newest(&self) -> Option<&Snapshot> {
        self.sums.newest.as_deref()
    }

    /// How far the run is.
    pub(crate) fn phase(&self) -> Phase {
        self.newest().map_or(Phase::Before, |it| it.shown.phase)
    }

    /// Everything that the run has measured so far.
    pub(crate) fn total(&self) -> Option<&Interval> {
        self.sums.totals.values().next()
    }

    /// What is listed of the run that goes on.
    pub(crate) fn figures(&self) -> RunFigures {
        let judged = self.newest().and_then(|it| it.shown.judged.as_ref());
        let limit = judged.map(|it| it.verdict.limit.name());
        let Some(total) = self.total() else {
            return RunFigures::default();
        };
        RunFigures {
            sent_qps: total.per_second(total.counts.sent),
            responses_qps: total.per_second(total.counts.responses),
            lost: total.counts.lost(),
            offered: total.counts.offered,
            p99_ns: total.distributions.latency.percentile(0.99),
            limit,
        }
    }
}
