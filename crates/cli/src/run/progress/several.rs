//! The progress line of a command whose runs are processes: how far all of them are.

use std::sync::Arc;
use std::time::Duration;

use lab::live::{Follower, Live, Runs, Snapshot};

use super::line::{self, Extent, Piece};
use super::{Progressing, nanos};
use crate::{streams, terminal};

/// Shows the line until it is dropped.
pub(crate) struct Following(Option<Follower>);

impl Drop for Following {
    fn drop(&mut self) {
        super::end(self.0.take());
    }
}

/// Shows how far the runs are that are published from now on; none where standard error is no
/// terminal, or the system allows no further thread.
pub(crate) fn follow_runs(live: &Live) -> Option<Following> {
    streams::columns_of_error()?;
    let (mut runs, mut began) = (Runs::default(), None);
    let follower = live.follow(move |next| {
        for snapshot in &next.snapshots {
            runs.add(snapshot);
            let began = began.get_or_insert_with(|| Began::new(&runs, snapshot));
            let extent = began.extent(&runs, snapshot);
            let line = line::fitted(&extent, pieces(&runs, snapshot), terminal::columns());
            terminal::replace_line(&line);
        }
        if next.is_over {
            terminal::end_line();
        }
    });
    follower.ok().map(|it| Following(Some(it)))
}

fn pieces(runs: &Runs, snapshot: &Snapshot) -> Vec<Piece> {
    let mut pieces = Piece::position(&runs.place);
    let Some((newest, total)) = snapshot.shown.interval.as_ref().zip(runs.total()) else {
        pieces.push(Piece::first(runs.place.name.clone()));
        return pieces;
    };
    pieces.extend(Progressing::Queries.figures(newest));
    let verdict = snapshot.shown.judged.as_ref().map(|it| &it.verdict);
    let remark = report::text::so_far(&total.counts, newest, verdict);
    pieces.extend(remark.map(Piece::remark));
    pieces
}

/// How far the runs were when the line began: those of an earlier command took no time of this one.
#[derive(Clone, Copy)]
struct Began {
    at: Duration,
    of: Option<u64>,
    share: f64,
}

impl Began {
    fn new(runs: &Runs, snapshot: &Arc<Snapshot>) -> Began {
        Began {
            at: snapshot.at,
            of: runs.place.of,
            share: runs.share_of_all().unwrap_or(0.0),
        }
    }

    /// The time left is that of the mean so far, with what is between the runs.
    fn extent(&mut self, runs: &Runs, snapshot: &Arc<Snapshot>) -> Extent {
        let share = runs.share_of_all();
        if runs.place.of != self.of || share.is_some_and(|share| share < self.share) {
            *self = Began::new(runs, snapshot);
        }
        let elapsed_ns = nanos(snapshot.at.saturating_sub(self.at));
        let Some(share) = share else {
            return Extent::Endless { elapsed_ns };
        };
        let done = share - self.share;
        let left = elapsed_ns as f64 * (1.0 - share) / done;
        Extent::Known {
            share,
            left_ns: (done > 0.0).then_some(left as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use lab::live::{Phase, Place, Shown};

    use super::*;

    #[test]
    fn time_left_is_that_of_runs_of_this_command() {
        let mut runs = Runs::default();
        let mut began: Option<Began> = None;
        let mut extent = |seconds: u64, (run, of): (u64, u64), phase: Phase| {
            let snapshot = Arc::new(Snapshot {
                number: seconds,
                at: Duration::from_secs(seconds),
                place: Arc::new(Place::new("", run, Some(of))),
                shown: Shown {
                    phase,
                    ..Shown::default()
                },
            });
            runs.add(&snapshot);
            let began = began.get_or_insert_with(|| Began::new(&runs, &snapshot));
            began.extent(&runs, &snapshot)
        };
        let known = |share, left_s: Option<u64>| Extent::Known {
            share,
            left_ns: left_s.map(|it| it * 1_000_000_000),
        };
        // Half of them were made before.
        assert_eq!(extent(100, (5, 8), Phase::Before), known(0.5, None));
        assert_eq!(extent(110, (5, 8), Phase::Ended), known(0.625, Some(30)));
        assert_eq!(extent(120, (7, 8), Phase::Before), known(0.75, Some(20)));
        // Repetitions are counted anew.
        assert_eq!(extent(140, (1, 2), Phase::Before), known(0.0, None));
        assert_eq!(extent(150, (2, 2), Phase::Before), known(0.5, Some(10)));
    }
}
