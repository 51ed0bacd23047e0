//! What the snapshots of a command add up to.

use std::collections::VecDeque;
use std::sync::Arc;

use lab::live::{Next, Runs, Snapshot};
use measure::Interval;

/// Most intervals that charts have: wider terminals are rare.
const POINTS_MAX: usize = 512;

/// An interval in charts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// Responses a second.
    pub(crate) rate: f64,
    /// Queries lost in it.
    pub(crate) lost: u64,
    /// Percentile 99 of the latency in nanoseconds; none without responses.
    pub(crate) p99_ns: Option<u64>,
}

/// What was shown so far.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    pub(crate) runs: Runs,
    /// The newest intervals of the run that goes on, or that ended last.
    pub(crate) points: VecDeque<Point>,
    /// The newest interval of the run.
    pub(crate) interval: Option<Arc<Interval>>,
    /// Snapshots that were read, and those that had left the ring, in all runs.
    pub(crate) read: u64,
    pub(crate) missed: u64,
}

impl Watched {
    pub(crate) fn read(&mut self, next: &Next) {
        self.missed += next.missed.end.saturating_sub(next.missed.start);
        for snapshot in &next.snapshots {
            self.add(snapshot);
        }
    }

    fn add(&mut self, snapshot: &Arc<Snapshot>) {
        self.read += 1;
        if self.runs.is_next(snapshot) {
            self.points.clear();
            self.interval = None;
        }
        self.runs.add(snapshot);
        if let Some(interval) = &snapshot.shown.interval {
            if self.points.len() >= POINTS_MAX {
                self.points.pop_front();
            }
            self.points.push_back(Point::of(interval));
            self.interval = Some(Arc::clone(interval));
        }
    }

    /// The newest snapshot.
    pub(crate) fn newest(&self) -> Option<&Snapshot> {
        self.runs.newest()
    }

    /// Everything that the run has measured so far.
    pub(crate) fn total(&self) -> Option<&Interval> {
        self.runs.total()
    }
}

impl Point {
    fn of(interval: &Interval) -> Point {
        Point {
            rate: interval.per_second(interval.counts.responses),
            lost: interval.counts.lost(),
            p99_ns: interval.distributions.latency.percentile(0.99),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lab::live::{Live, Place, Shown};

    use super::*;

    fn shown(responses: u64) -> Shown {
        let mut interval = Interval {
            end_ns: 1_000_000_000,
            ..Interval::default()
        };
        interval.counts.responses = responses;
        Shown {
            interval: Some(Arc::new(interval)),
            ..Shown::default()
        }
    }

    #[test]
    fn each_run_of_a_command_begins_with_no_totals() {
        let live = Live::default();
        live.publish(shown(5));
        live.publish(shown(6));
        let mut watched = Watched::default();
        watched.read(&live.after(0, Duration::ZERO));
        assert_eq!(watched.total().unwrap().counts.responses, 11);
        assert_eq!(watched.points.len(), 2);
        live.begin(Place::new("", 2, None));
        live.publish(shown(7));
        watched.read(&live.after(2, Duration::ZERO));
        assert_eq!(watched.total().unwrap().counts.responses, 7);
        assert_eq!((watched.points.len(), watched.read), (1, 3));
    }

    #[test]
    fn missed_snapshots_are_counted_and_intervals_are_bounded() {
        let live = Live::default();
        for _ in 0..700 {
            live.publish(shown(1));
        }
        let mut watched = Watched::default();
        watched.read(&live.after(0, Duration::ZERO));
        assert_eq!((watched.read, watched.missed), (600, 100));
        assert_eq!(watched.points.len(), POINTS_MAX);
    }
}
