//! The runs of a command that makes several, for readers that list them.

use std::collections::VecDeque;
use std::sync::Arc;

use measure::Interval;

use super::{Measured, Phase, Place, Snapshot, Sums};

/// Most finished runs that are listed: the newest.
pub const RUNS_MAX: usize = 100;

/// A run of a command that is over, such as a trial of a search.
#[derive(Clone, Debug)]
pub struct FinishedRun {
    /// Which run it was.
    pub place: Arc<Place>,
    /// What it has measured.
    pub figures: RunFigures,
}

/// What is listed of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunFigures {
    /// Queries sent a second.
    pub sent_qps: f64,
    /// Responses a second.
    pub responses_qps: f64,
    /// Queries lost.
    pub lost: u64,
    /// Queries offered; 0 if it has shown no interval.
    pub offered: u64,
    /// Percentile 99 of the latency in nanoseconds.
    pub p99_ns: Option<u64>,
    /// What limited it, once that is judged.
    pub limit: Option<&'static str>,
}

/// The run that goes on, and those before it.
#[derive(Debug, Default)]
pub struct Runs {
    /// Which run goes on, or ended last.
    pub place: Arc<Place>,
    /// What that run has shown.
    pub sums: Sums,
    /// The runs before it.
    pub finished: VecDeque<FinishedRun>,
    /// Finished runs that are not listed any more.
    pub unlisted: u64,
    /// What they have measured of the cells of an experiment.
    pub measured: Measured,
}

impl Runs {
    /// True if this snapshot is the first of another run than the one before it.
    pub fn is_next(&self, snapshot: &Snapshot) -> bool {
        self.place != snapshot.place
    }

    /// Adds one snapshot.
    pub fn add(&mut self, snapshot: &Arc<Snapshot>) {
        if self.is_next(snapshot) {
            self.begin(&snapshot.place);
        }
        self.sums.add(snapshot);
    }

    fn begin(&mut self, place: &Arc<Place>) {
        if self.newest().is_some() {
            let figures = self.figures();
            if let Some(of) = self.place.cell.as_ref().filter(|_| figures.offered > 0) {
                self.measured.add(of, figures.responses_qps);
            }
            if self.finished.len() >= RUNS_MAX {
                self.finished.pop_front();
                self.unlisted += 1;
            }
            self.finished.push_back(FinishedRun {
                place: Arc::clone(&self.place),
                figures,
            });
        }
        self.place = Arc::clone(place);
        self.sums = Sums::default();
    }

    /// True if the command makes, or has made, more than one run.
    pub fn are_several(&self) -> bool {
        !self.finished.is_empty() || self.place.run > 1 || self.place.of.is_some_and(|of| of > 1)
    }

    /// The newest snapshot of the run that goes on.
    pub fn newest(&self) -> Option<&Snapshot> {
        self.sums.newest.as_deref()
    }

    /// How far that run is.
    pub fn phase(&self) -> Phase {
        self.newest().map_or(Phase::Before, |it| it.shown.phase)
    }

    /// Everything that it has measured so far.
    pub fn total(&self) -> Option<&Interval> {
        self.sums.totals.values().next()
    }

    /// The share of it that is done, if its duration is known.
    pub fn share(&self) -> Option<f64> {
        let (left, total) = (self.newest()?.shown.left?, self.total()?);
        let done = total.end_ns as f64;
        Some(done / (done + left.as_nanos() as f64).max(1.0))
    }

    /// The share of all runs that is done, if it is known how many there will be.
    pub fn share_of_all(&self) -> Option<f64> {
        let of = self.place.of.filter(|of| *of > 0)?;
        let share = match self.phase() {
            Phase::Ended => 1.0,
            Phase::Before | Phase::Load | Phase::Drain => self.share().unwrap_or(0.0),
        };
        let done = self.place.run.saturating_sub(1) as f64 + share;
        Some((done / of as f64).min(1.0))
    }

    /// What is listed of the run that goes on.
    pub fn figures(&self) -> RunFigures {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{CellOf, Live, Shown};
    use super::*;

    fn shown(seconds: u64, phase: Phase) -> Shown {
        let mut interval = Interval {
            end_ns: seconds * 1_000_000_000,
            ..Interval::default()
        };
        interval.counts.responses = seconds;
        Shown {
            phase,
            interval: Some(Arc::new(interval)),
            left: Some(Duration::from_secs(10 - seconds)),
            ..Shown::default()
        }
    }

    fn place(run: u64) -> Place {
        Place::new("", run, Some(4))
    }

    #[test]
    fn share_of_all_runs_grows_with_each_interval() {
        let live = Live::default();
        let mut runs = Runs::default();
        let mut share = |run: u64, shown: Shown| {
            live.begin(place(run));
            let number = live.publish(shown);
            let next = live.after(number - 1, Duration::ZERO);
            next.snapshots.iter().for_each(|it| runs.add(it));
            runs.share_of_all()
        };
        assert_eq!(share(1, Shown::default()), Some(0.0));
        assert_eq!(share(1, shown(5, Phase::Load)), Some(0.125));
        assert_eq!(share(1, shown(10, Phase::Ended)), Some(0.25));
        assert_eq!(share(4, shown(5, Phase::Load)), Some(0.875));
        assert!(runs.are_several());
        assert_eq!(runs.finished.len(), 1);
        assert_eq!(runs.finished[0].place.run, 1);
    }

    #[test]
    fn runs_that_measured_something_are_in_their_cell() {
        let live = Live::default();
        let mut runs = Runs::default();
        let of = |cell, repetition| CellOf {
            matrix: Arc::default(),
            cell,
            repetition,
        };
        let all = [
            (0, 1, 2),
            (1, 1, 4),
            (0, 2, 0),
            (0, 3, 6),
            (0, 1, 5),
            (1, 2, 1),
        ];
        for (run, (cell, repetition, seconds)) in (1..).zip(all) {
            live.begin(Place {
                cell: Some(of(cell, repetition)),
                ..place(run)
            });
            let mut shown = shown(1, Phase::Ended);
            let interval = Arc::make_mut(shown.interval.as_mut().unwrap());
            interval.counts.offered = seconds;
            interval.counts.responses = seconds;
            let number = live.publish(shown);
            let next = live.after(number - 1, Duration::ZERO);
            next.snapshots.iter().for_each(|it| runs.add(it));
        }
        let rates = |cell| runs.measured.rates(cell).collect::<Vec<f64>>();
        // The third offered nothing, the fifth is the first once more, and the last one goes on.
        assert_eq!(rates(0), [5.0, 6.0]);
        assert_eq!(rates(1), [4.0]);
        assert!(rates(2).is_empty());
    }

    #[test]
    fn list_of_finished_runs_is_bounded() {
        let live = Live::default();
        let mut runs = Runs::default();
        for run in 1..=RUNS_MAX as u64 + 3 {
            live.begin(place(run));
            let number = live.publish(shown(1, Phase::Ended));
            let next = live.after(number - 1, Duration::ZERO);
            next.snapshots.iter().for_each(|it| runs.add(it));
        }
        assert_eq!((runs.finished.len(), runs.unlisted), (RUNS_MAX, 2));
    }
}
