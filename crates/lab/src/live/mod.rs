//! What runs show while they go on: one publisher, many readers.
//!
//! The thread that gathers the intervals of a run publishes a [`Snapshot`] at the end of each.
//! Snapshots are immutable and numbered through all runs of a command. The newest of them stay in a
//! ring; a reader asks for those after a number ([`Live::after`]), or follows them on a thread of
//! its own ([`Live::follow`]). A slow reader misses snapshots and learns which; the publisher never
//! waits for one: the ring is locked only to add a snapshot, or to copy pointers.

mod events;
mod follower;
mod judge;
mod matrix;
mod publisher;
mod runs;
mod scrapes;
mod snapshot;
mod sums;
mod view;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use driver::clock::Clock;
use measure::RunRecord;

pub use events::{EventKind, ShownEvent};
pub use follower::Follower;
pub use judge::Judged;
pub use matrix::{Cell, CellOf, Matrix, Measured};
pub use observe::{LastValue, NewestSample, NewestScrape, SeriesName};
pub(crate) use publisher::Publisher;
pub use runs::{FinishedRun, RUNS_MAX, RunFigures, Runs};
pub use scrapes::{Scrape, Scrapes, ShownSeries};
pub use snapshot::{Phase, Place, Shown, ShownAgent, ShownGroup, Snapshot};
pub use sums::{GROUPS_MAX, Sums};
pub use view::{ListenError, yield_to_workers};

/// Most snapshots that are kept: ten minutes of intervals of 1 s.
pub const SNAPSHOTS_MAX: usize = 600;
/// Most buckets of their histograms together, and samples of observations counted as buckets:
/// 16 MiB.
pub const BUCKETS_MAX: usize = 1 << 21;

/// Where a command publishes, and its readers read; clones share one ring.
#[derive(Clone, Debug, Default)]
pub struct Live(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    ring: Mutex<Ring>,
    /// There is a new snapshot, or the end of them.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Ring {
    /// Each with its memory in buckets.
    snapshots: VecDeque<(usize, Arc<Snapshot>)>,
    buckets: usize,
    /// Number of the newest; 0 before the first.
    newest: u64,
    place: Arc<Place>,
    wants_verdicts: bool,
    wants_groups: bool,
    /// The newest only: a record may have as many octets as all snapshots together.
    checkpoint: Option<Arc<RunRecord>>,
    is_over: bool,
}

/// What a reader gets.
#[derive(Clone, Debug, Default)]
pub struct Next {
    /// Numbers of the snapshots that are not there any more.
    pub missed: Range<u64>,
    /// Those after them; none if none came in time.
    pub snapshots: Vec<Arc<Snapshot>>,
    /// These were the last ones.
    pub is_over: bool,
}

impl Live {
    /// What is published from now on is of this run.
    pub fn begin(&self, place: Place) {
        self.ring().place = Arc::new(place);
    }

    /// A reader shows verdicts: from the next run on they are in its snapshots. To judge takes so
    /// long that it is not done for nothing.
    pub fn want_verdicts(&self) {
        self.ring().wants_verdicts = true;
    }

    /// True if a reader shows verdicts.
    pub fn wants_verdicts(&self) -> bool {
        self.ring().wants_verdicts
    }

    /// A reader shows the groups of clients of runs of several agents: from the next run on they
    /// are in its snapshots. Agents do not send them for nothing.
    pub fn want_groups(&self) {
        self.ring().wants_groups = true;
    }

    /// True if a reader shows groups.
    pub fn wants_groups(&self) -> bool {
        self.ring().wants_groups
    }

    /// What the run that goes on has measured until its newest checkpoint, concluded; none before
    /// the first, without a run, and unless a reader wants verdicts.
    pub fn checkpoint(&self) -> Option<Arc<RunRecord>> {
        self.ring().checkpoint.clone()
    }

    fn keep(&self, checkpoint: Option<Arc<RunRecord>>) {
        // The former one is freed after the ring is.
        let _former = std::mem::replace(&mut self.ring().checkpoint, checkpoint);
    }

    /// Adds a snapshot, and drops the oldest ones that are too many; returns its number.
    pub fn publish(&self, shown: Shown) -> u64 {
        let at = Clock::unix_time();
        let (buckets, shown) = shown.compact();
        let mut ring = self.ring();
        ring.newest += 1;
        let snapshot = Snapshot {
            number: ring.newest,
            at,
            place: Arc::clone(&ring.place),
            shown,
        };
        ring.add(buckets, snapshot);
        self.0.changed.notify_all();
        ring.newest
    }

    /// Nothing more will be published.
    pub fn close(&self) {
        self.ring().is_over = true;
        self.0.changed.notify_all();
    }

    /// The number of the newest snapshot; 0 before the first.
    pub fn newest(&self) -> u64 {
        self.ring().newest
    }

    /// The snapshots after a number, once there is one; waits at most for `wait`. A number that was
    /// not published yet counts as the newest.
    pub fn after(&self, number: u64, wait: Duration) -> Next {
        self.after_unless(number, wait, || false)
    }

    /// As [`Live::after`]; does not wait any longer once `is_enough`, which is asked at each
    /// [`Live::wake`].
    fn after_unless(&self, number: u64, wait: Duration, is_enough: impl Fn() -> bool) -> Next {
        let ring = self.ring();
        let number = number.min(ring.newest);
        let lacks = |ring: &mut Ring| ring.newest == number && !ring.is_over && !is_enough();
        let waited = self.0.changed.wait_timeout_while(ring, wait, lacks);
        let (ring, _) = waited.unwrap_or_else(PoisonError::into_inner);
        ring.after(number)
    }

    fn wake(&self) {
        // Who decides to wait holds it.
        drop(self.ring());
        self.0.changed.notify_all();
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        // Nothing panics while it is held, and the ring is whole at any time.
        self.0.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    fn add(&mut self, buckets: usize, snapshot: Snapshot) {
        self.buckets += buckets;
        self.snapshots.push_back((buckets, Arc::new(snapshot)));
        let is_full = |ring: &Ring| {
            let count = ring.snapshots.len();
            count > SNAPSHOTS_MAX || (count > 1 && ring.buckets > BUCKETS_MAX)
        };
        while is_full(self)
            && let Some((buckets, _)) = self.snapshots.pop_front()
        {
            self.buckets -= buckets;
        }
    }

    fn after(&self, number: u64) -> Next {
        let first = self.newest + 1 - self.snapshots.len() as u64;
        let skipped = usize::try_from((number + 1).saturating_sub(first)).unwrap_or(usize::MAX);
        let snapshots = self.snapshots.iter().skip(skipped);
        Next {
            missed: number + 1..first.max(number + 1),
            snapshots: snapshots.map(|(_, it)| Arc::clone(it)).collect(),
            is_over: self.is_over,
        }
    }
}

#[cfg(test)]
mod tests;
