//! What one worker has counted and timed so far: warm-up, the current interval, finished intervals.
//!
//! A query belongs to the phase in which it was scheduled: the end of a query that was scheduled
//! during warm-up is counted there, so that the accounting identity holds for the measured run
//! alone. Within the measured run, events are counted in the interval in which they happen.

use std::collections::VecDeque;
use std::time::Duration;

use driver::CpuTime;
use measure::timeline::Bin;
use measure::{Interval, Timeline};
use proto::Instant;

use super::bins::Bins;
use super::checkpoints::Checkpoints;
use super::open_connections::OpenConnections;

/// Counters and distributions of one worker.
pub(crate) struct Tally {
    pub(crate) warmup: Interval,
    pub(crate) current: Interval,
    pub(crate) finished: VecDeque<Interval>,
    interval: Duration,
    start: Instant,
    run_start: Instant,
    interval_end: Instant,
    /// The next end of an interval or of a tick of the timeline.
    roll_at: Instant,
    bins: Bins,
    /// Intervals of the measured run that are finished.
    intervals_finished: u32,
    checkpoints: Option<Checkpoints>,
    cpu: CpuSpans,
    in_flight: InFlight,
}

/// CPU time at the starts of the spans for which it is reported.
#[derive(Default)]
struct CpuSpans {
    at_interval_start: CpuTime,
    at_run_start: CpuTime,
    /// Used and waited for in the measured window.
    in_window: CpuTime,
}

/// Number of queries in flight, and since when.
struct InFlight {
    queries: u64,
    since: Instant,
}

impl Tally {
    pub(crate) fn new(interval: Duration) -> Self {
        Tally {
            warmup: Interval::default(),
            current: Interval::default(),
            finished: VecDeque::new(),
            interval,
            start: Instant::ZERO,
            run_start: Instant::FAR_FUTURE,
            interval_end: Instant::FAR_FUTURE,
            roll_at: Instant::FAR_FUTURE,
            bins: Bins::new(),
            intervals_finished: 0,
            checkpoints: None,
            cpu: CpuSpans::default(),
            in_flight: InFlight {
                queries: 0,
                since: Instant::ZERO,
            },
        }
    }

    /// Fixes when warm-up and the measured run start, and whether time makes queries due.
    pub(crate) fn set_start(&mut self, start: Instant, run_start: Instant, is_due_by_time: bool) {
        self.start = start;
        self.run_start = run_start;
        self.interval_end = run_start;
        self.bins.set_start(run_start, is_due_by_time);
        self.aim();
    }

    /// Records from now on which intervals end with a checkpoint.
    pub(crate) fn note_checkpoints(&mut self, checkpoints: Checkpoints) {
        self.checkpoints = Some(checkpoints);
    }

    /// The next interval whose end is a checkpoint, from 1, and when that was.
    pub(crate) fn next_checkpoint(&mut self) -> Option<(u32, Instant)> {
        let number = self.checkpoints.as_mut()?.take()?;
        // Earlier intervals have not been taken yet.
        let behind = (self.intervals_finished - number) as usize;
        let last = self.finished.len().checked_sub(1 + behind)?;
        let end = Duration::from_nanos(self.finished[last].end_ns);
        Some((number, self.run_start + end))
    }

    /// The timeline so far.
    pub(crate) fn timeline_so_far(&self) -> Timeline {
        let mut bins = self.bins.clone();
        bins.finish(&Bin::of(&self.current));
        bins.into_timeline()
    }

    fn aim(&mut self) {
        self.roll_at = self.interval_end.min(self.bins.tick_end());
    }

    /// Where a query scheduled at `scheduled_at` is counted.
    #[inline]
    pub(crate) fn of_query(&mut self, scheduled_at: Instant) -> &mut Interval {
        if scheduled_at < self.run_start {
            &mut self.warmup
        } else {
            &mut self.current
        }
    }

    /// Where to count `queries` that were due at `scheduled_at` and have ended without a response;
    /// books them as lost.
    pub(crate) fn of_lost(&mut self, scheduled_at: Instant, queries: u64) -> &mut Interval {
        if scheduled_at >= self.run_start {
            self.bins.lose(scheduled_at, queries);
        }
        self.of_query(scheduled_at)
    }

    /// True if a query scheduled at `scheduled_at` is of the measured run.
    #[inline]
    pub(crate) fn is_measured(&self, scheduled_at: Instant) -> bool {
        scheduled_at >= self.run_start
    }

    /// Queries that were due at `scheduled_at` will never be sent: the run is over.
    pub(crate) fn count_unoffered(&mut self, scheduled_at: Instant, queries: u64) {
        let counts = &mut self.of_lost(scheduled_at, queries).counts;
        counts.offered += queries;
        counts.not_sent.run_ended += queries;
    }

    /// Where an event that belongs to no query is counted.
    #[inline]
    pub(crate) fn of_event(&mut self, at: Instant) -> &mut Interval {
        self.of_query(at)
    }

    /// Counts a connection as active in the interval of `at`, once an interval; `active_in` is the
    /// last interval in which it was counted, at first 0.
    #[inline]
    pub(crate) fn connection_is_active(&mut self, at: Instant, active_in: &mut u32) {
        let interval = self.number_of_interval(at);
        if *active_in != interval {
            *active_in = interval;
            self.of_event(at).connections_active += 1;
        }
    }

    /// A number that identifies the interval of `at`; never 0.
    #[inline]
    pub(crate) fn number_of_interval(&self, at: Instant) -> u32 {
        match at < self.run_start {
            true => 1,
            false => 2 + self.intervals_finished,
        }
    }

    /// Queries in flight now.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight.queries
    }

    /// Adds `change` to the number of queries in flight at `now`.
    #[inline]
    pub(crate) fn change_in_flight(&mut self, now: Instant, change: i64) {
        self.integrate(now);
        self.in_flight.queries = self.in_flight.queries.wrapping_add_signed(change);
    }

    /// When [`Tally::roll`] is due.
    pub(crate) fn interval_end(&self) -> Instant {
        self.interval_end
    }

    /// When [`Tally::roll`] or [`Tally::tick`] is due.
    #[inline]
    pub(crate) fn roll_at(&self) -> Instant {
        self.roll_at
    }

    /// Books what happened until `now` into the timeline, if one of its ticks is over.
    pub(crate) fn tick(&mut self, now: Instant) {
        if now >= self.bins.tick_end() {
            let current = Bin::of(&self.current);
            self.note_usable(now, &current);
            self.bins.tick(now, &current);
        }
        self.aim();
    }

    /// Records that usable responses came since the last tick, if any did; `current` is what the
    /// current interval has counted.
    fn note_usable(&mut self, now: Instant, current: &Bin) {
        if let Some(from_ns) = self.bins.usable_from(current) {
            let from_ns = from_ns.max(self.current.start_ns);
            self.current
                .note_usable(from_ns, now.nanos_since(self.run_start));
        }
    }

    /// The last instant of the timeline's bin in which queries are becoming due.
    #[inline]
    pub(crate) fn due_last(&self) -> Instant {
        self.bins.due_last()
    }

    /// The next query is due at `at`, which may be in another bin.
    pub(crate) fn due_at(&mut self, at: Instant) {
        self.bins.due_at(at, self.current.counts.offered);
    }

    /// The timeline; complete once the last interval is.
    pub(crate) fn timeline(&self) -> &Timeline {
        self.bins.timeline()
    }

    /// Closes the current interval (or the warm-up) at its end. The next ends one interval later,
    /// or at `run_end` if that is earlier.
    pub(crate) fn roll(
        &mut self,
        cpu_time: CpuTime,
        connections: &mut OpenConnections,
        run_end: Instant,
    ) {
        let end = self.interval_end;
        self.integrate(end);
        let next_end = (end + self.interval).min(if end < run_end { run_end } else { end });
        if end == self.run_start {
            self.warmup.end_ns = nanos(self.run_start - self.start);
            count_open(&mut self.warmup, connections);
            self.warmup.cpu_ns = nanos(cpu_time.used);
            self.cpu.at_run_start = cpu_time;
        } else {
            self.finish_current(end, cpu_time, connections);
            self.close_window(cpu_time);
        }
        self.cpu.at_interval_start = cpu_time;
        self.current.start_ns = end.nanos_since(self.run_start);
        self.interval_end = if next_end > end {
            next_end
        } else {
            Instant::FAR_FUTURE
        };
    }

    /// Ends the run at `now`, and with it the current interval, unless that has only just begun:
    /// since no interval has length zero, it becomes that of the drain.
    pub(crate) fn cut_off(&mut self, now: Instant) {
        let is_running = (now..Instant::FAR_FUTURE).contains(&self.interval_end);
        if is_running && self.interval_end > self.run_start {
            let has_begun = now > self.interval_start();
            self.interval_end = if has_begun { now } else { Instant::FAR_FUTURE };
            self.aim();
        }
    }

    fn interval_start(&self) -> Instant {
        self.run_start + Duration::from_nanos(self.current.start_ns)
    }

    /// CPU time used and waited for in the measured window.
    pub(crate) fn cpu_in_window(&self) -> CpuTime {
        self.cpu.in_window
    }

    /// Extends the measured window to now.
    pub(crate) fn close_window(&mut self, cpu_time: CpuTime) {
        self.cpu.in_window = cpu_time.since(self.cpu.at_run_start);
    }

    /// Closes the last interval.
    pub(crate) fn finish(
        &mut self,
        now: Instant,
        cpu_time: CpuTime,
        connections: &mut OpenConnections,
    ) {
        let now = now.max(self.interval_start() + Duration::from_nanos(1));
        self.integrate(now);
        self.bins.finish(&Bin::of(&self.current));
        self.aim();
        let nothing = measure::Counts::default();
        if self.current.counts != nothing || self.current.in_flight_ns > 0 {
            self.finish_current(now, cpu_time, connections);
        }
    }

    fn finish_current(
        &mut self,
        end: Instant,
        cpu_time: CpuTime,
        connections: &mut OpenConnections,
    ) {
        self.current.end_ns = end.nanos_since(self.run_start);
        self.current.cpu_ns = nanos(cpu_time.since(self.cpu.at_interval_start).used);
        count_open(&mut self.current, connections);
        let current = Bin::of(&self.current);
        self.note_usable(end, &current);
        self.bins.finish_interval(&current);
        let mut finished = self.current.clone();
        finished.shrink_to_fit();
        let end_ns = finished.end_ns;
        self.finished.push_back(finished);
        self.intervals_finished += 1;
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.look(self.intervals_finished, end_ns);
        }
        self.current.clear();
    }

    fn integrate(&mut self, now: Instant) {
        let elapsed = now.nanos_since(self.in_flight.since);
        if elapsed > 0 {
            let area = u128::from(self.in_flight.queries) * u128::from(elapsed);
            self.of_event(self.in_flight.since).in_flight_ns += area;
            self.in_flight.since = now;
        }
    }
}

/// Records in an ending interval how many connections are open, the maximum open, and how many have
/// carried a response.
fn count_open(interval: &mut Interval, connections: &mut OpenConnections) {
    interval.connections_open = connections.open();
    interval.connections_open_max = Some(connections.take_open_max());
    interval.connections_served = Some(connections.served());
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
