//! A worker's timeline: differences of its counters, taken where a tick of 10 ms ends.
//!
//! Nothing is added for a query. What was counted since the last tick belongs to the bin of that
//! tick: a tick ends before any later event is counted. There are two exceptions. Lost queries are
//! booked one by one at the instant in which they were due. Queries that became due by time while
//! the worker was busy are booked by [`Bins::due_at`], whose caller goes through them bin by bin.

use std::time::Duration;

use measure::Timeline;
use measure::timeline::{Bin, WIDTH_NS_MIN};
use proto::Instant;

const TICK: Duration = Duration::from_nanos(WIDTH_NS_MIN);
/// A worker takes a turn at least every 20 ms. One that is this late with a tick was not scheduled.
const FROZEN_AFTER: Duration = Duration::from_millis(50);

/// The timeline of one worker as it grows.
#[derive(Clone, Debug)]
pub(crate) struct Bins {
    timeline: Timeline,
    run_start: Instant,
    /// The tick in which the worker last had a turn.
    tick_start: Instant,
    tick_end: Instant,
    /// Counts of the measured run in finished intervals.
    finished: Bin,
    /// Counts booked so far, of finished intervals and the current one.
    booked: Bin,
    /// Whether queries are due by time, so that a worker may be late for them.
    is_due_by_time: bool,
    /// Start of the bin of the queries that are becoming due by time.
    due_start: Instant,
    due_end: Instant,
}

impl Bins {
    pub(crate) fn new() -> Self {
        Bins {
            timeline: Timeline::new(),
            run_start: Instant::FAR_FUTURE,
            tick_start: Instant::FAR_FUTURE,
            tick_end: Instant::FAR_FUTURE,
            finished: Bin::default(),
            booked: Bin::default(),
            is_due_by_time: false,
            due_start: Instant::ZERO,
            due_end: Instant::FAR_FUTURE,
        }
    }

    /// Fixes when the measured run starts; time makes queries due, or responses do.
    pub(crate) fn set_start(&mut self, run_start: Instant, is_due_by_time: bool) {
        self.timeline.reserve();
        self.run_start = run_start;
        self.tick_start = run_start;
        self.tick_end = run_start + TICK;
        self.is_due_by_time = is_due_by_time;
        self.due_end = match is_due_by_time {
            true => run_start,
            false => Instant::FAR_FUTURE,
        };
    }

    /// When [`Bins::tick`] is due.
    #[inline]
    pub(crate) fn tick_end(&self) -> Instant {
        self.tick_end
    }

    /// The current interval is over and has counted `counted`.
    pub(crate) fn finish_interval(&mut self, counted: &Bin) {
        self.finished.add(counted);
    }

    /// When usable responses began that no tick has booked yet: the start of the last tick, if
    /// `current`, the counts of the current interval, has any.
    pub(crate) fn usable_from(&self, current: &Bin) -> Option<u64> {
        let known = self.booked.usable();
        let is_new = self.finished.usable() + current.usable() > known && current.usable() > 0;
        is_new.then(|| self.since_start(self.tick_start))
    }

    /// The worker has a turn at `now`; `current` is what the current interval has counted.
    pub(crate) fn tick(&mut self, now: Instant, current: &Bin) {
        self.book(current);
        if now >= self.tick_end + FROZEN_AFTER {
            let (from, until) = (self.since_start(self.tick_end), self.since_start(now));
            self.timeline.freeze(from, until);
        }
        let ticks = self.since_start(now) / WIDTH_NS_MIN;
        self.tick_start = self.run_start + Duration::from_nanos(ticks * WIDTH_NS_MIN);
        self.tick_end = self.tick_start + TICK;
    }

    /// Books what has been counted since the last tick.
    fn book(&mut self, current: &Bin) {
        let mut counted = self.finished;
        counted.add(current);
        let mut new = counted.since(&self.booked);
        if self.is_due_by_time {
            // Left to `due_at`, which knows the bin.
            (new.due, counted.due) = (0, self.booked.due);
        }
        self.booked = counted;
        let at = self.since_start(self.tick_start);
        self.timeline.add(at, &new);
    }

    /// The last instant in the bin of the queries that are becoming due; far in the future if time
    /// makes none due.
    #[inline]
    pub(crate) fn due_last(&self) -> Instant {
        Instant::from_nanos(self.due_end.as_nanos() - 1)
    }

    /// The next query is due at `at`: queries `offered` in the current interval and not booked yet
    /// were due in the bin before.
    pub(crate) fn due_at(&mut self, at: Instant, offered: u64) {
        if !self.is_due_by_time || at < self.due_end {
            return;
        }
        self.book_due(offered);
        let width_ns = self.timeline.width_ns();
        let bin = self.since_start(at) / width_ns;
        self.due_start = self.run_start + Duration::from_nanos(bin * width_ns);
        self.due_end = self.due_start + Duration::from_nanos(width_ns);
    }

    fn book_due(&mut self, offered: u64) {
        let due = self.finished.due + offered - self.booked.due;
        self.booked.due += due;
        let new = Bin {
            due,
            ..Bin::default()
        };
        let at = self.since_start(self.due_start);
        self.timeline.add(at, &new);
    }

    /// Queries of the measured run that were due at `scheduled_at` have ended without a response.
    pub(crate) fn lose(&mut self, scheduled_at: Instant, queries: u64) {
        let due = self.since_start(scheduled_at);
        self.timeline.lose(due, queries);
    }

    /// Books the final counts of the current interval.
    pub(crate) fn finish(&mut self, current: &Bin) {
        self.book(current);
        if self.is_due_by_time {
            self.book_due(current.due);
        }
        self.timeline.trim();
        self.tick_end = Instant::FAR_FUTURE;
    }

    /// What has been booked.
    pub(crate) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Consumes the bins and returns what has been booked.
    pub(crate) fn into_timeline(self) -> Timeline {
        self.timeline
    }

    fn since_start(&self, at: Instant) -> u64 {
        at.nanos_since(self.run_start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    fn counted(due: u64, responses: u64) -> Bin {
        Bin {
            due,
            responses,
            ..Bin::default()
        }
    }

    #[test]
    fn worker_that_was_not_let_run_has_been_frozen_and_one_that_idles_has_not() {
        let mut bins = Bins::new();
        bins.set_start(at_ms(1_000), false);
        for ms in [1_010, 1_030, 1_050, 1_070, 3_070, 3_080] {
            assert!(at_ms(ms) >= bins.tick_end());
            bins.tick(at_ms(ms), &Bin::default());
        }
        bins.finish(&Bin::default());
        // From the end of its last tick on.
        assert_eq!(bins.timeline().total().frozen_us, 1_990_000);
        assert_eq!(bins.timeline().bins()[7].frozen_us, 0);
        assert_eq!(bins.timeline().bins()[8].frozen_us, 10_000);
    }

    #[test]
    fn queries_that_a_worker_comes_to_late_are_booked_when_they_were_due() {
        let mut bins = Bins::new();
        bins.set_start(at_ms(0), true);
        bins.tick(at_ms(500), &Bin::default());
        // One query was due every 10 ms meanwhile; all are offered now.
        for offered in 0..50 {
            bins.due_at(at_ms(10 * offered), offered);
        }
        bins.tick(at_ms(510), &counted(50, 20));
        bins.finish_interval(&counted(50, 20));
        bins.finish(&counted(0, 30));
        let timeline = bins.timeline();
        let due: Vec<u64> = timeline.bins().iter().map(|bin| bin.due).collect();
        assert_eq!(due[..50], [1; 50]);
        assert_eq!(
            timeline.total(),
            Bin {
                frozen_us: 490_000,
                ..counted(50, 50)
            }
        );
        assert_eq!(timeline.bins()[50].responses, 20);
        assert_eq!(timeline.bins()[51].responses, 30);
    }
}
