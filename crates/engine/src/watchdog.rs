//! Threads that do not end with their run, such as one in a function of a script that does not
//! return: they are left behind, so that the run ends with what the others measured.
//!
//! A thread at work takes a turn every 20 ms, whatever happens, and counts it. One that has taken
//! none for [`PATIENCE`] once the run is over is stuck. Time counts only while this process was
//! scheduled, and not while the thread was ready to run and had no CPU: on a busy host no thread is
//! left behind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use driver::CpuTime;
use driver::clock::Clock;
use driver::cpu;
use measure::Interval;
use proto::Instant;

use crate::threads::WorkerOutcome;
use crate::worker::{EndedBy, RunInputs, Timeline, Window, WorkerSummary};
use crate::{Control, ThreadWorkers};

/// How long a thread may take no turn once its run is over.
pub const PATIENCE: Duration = Duration::from_millis(1_400);
/// How often the threads are checked.
pub const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The turns that a thread has taken; in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Beat {
    turns: AtomicU64,
    /// The kernel's number of the thread; 0 as long as it is not known.
    thread: AtomicI32,
}

impl Beat {
    /// The thread takes a turn. Only this thread writes, so no read-modify-write is needed.
    #[inline]
    pub fn count(&self) {
        let turns = self.turns.load(Ordering::Relaxed);
        self.turns.store(turns + 1, Ordering::Relaxed);
    }

    /// Records the calling thread as the one that takes the turns.
    pub(crate) fn belong_to_this_thread(&self) {
        self.thread.store(cpu::thread_id(), Ordering::Relaxed);
    }

    /// Time that the thread was ready to run and had no CPU, since it began; zero if unknown.
    fn run_queue_wait(&self) -> Duration {
        match self.thread.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            thread => cpu::run_queue_wait_of(thread),
        }
    }
}

/// A thread that has not ended.
#[derive(Debug)]
struct Watched {
    beat: Arc<Beat>,
    turns: u64,
    /// How long it has taken no turn.
    silent: Duration,
    /// Its run-queue wait when that was last read in this silence.
    waited: Option<Duration>,
}

impl Watched {
    /// Accounts for `passed`. `run_queue_wait` reads the thread's run-queue wait, and is called
    /// only if the thread has been silent for long.
    fn look(&mut self, passed: Duration, run_queue_wait: impl FnOnce(&Beat) -> Duration) {
        let turns = self.beat.turns.load(Ordering::Relaxed);
        if turns != self.turns {
            (self.turns, self.silent, self.waited) = (turns, Duration::ZERO, None);
            return;
        }
        self.silent += passed;
        if self.silent >= PATIENCE / 2 {
            let waited = run_queue_wait(&self.beat);
            let since = self.waited.replace(waited);
            let since = since.map_or(Duration::ZERO, |since| waited.saturating_sub(since));
            self.silent = self.silent.saturating_sub(since).max(PATIENCE / 2);
        }
    }
}

/// Watches the threads of a run.
#[derive(Debug)]
pub struct Watchdog {
    pub(crate) control: Arc<Control>,
    clock: Clock,
    looked_at: Instant,
    /// Duration of the warm-up, and of warm-up and measured run together; none if time does not end
    /// the run.
    warmup: Duration,
    whole: Option<Duration>,
    threads: BTreeMap<usize, Watched>,
}

impl Watchdog {
    pub(crate) fn new(
        groups: &[RunInputs],
        control: Arc<Control>,
        clock: Clock,
        beats: BTreeMap<usize, Arc<Beat>>,
    ) -> Self {
        let length = |inputs: &RunInputs| Some(inputs.plan.warmup + inputs.plan.duration?);
        let lengths: Option<Vec<Duration>> = groups.iter().map(length).collect();
        let watched = |(index, beat): (usize, Arc<Beat>)| {
            let watched = Watched {
                beat,
                turns: 0,
                silent: Duration::ZERO,
                waited: None,
            };
            (index, watched)
        };
        Watchdog {
            control,
            looked_at: clock.now(),
            clock,
            warmup: (groups.iter().map(|it| it.plan.warmup).max()).unwrap_or_default(),
            whole: lengths.and_then(|all| all.into_iter().max()),
            threads: beats.into_iter().map(watched).collect(),
        }
    }

    /// For workers in virtual time, which all take their turns on one thread: their run is over
    /// only when it is stopped.
    pub fn in_virtual_time(groups: &[RunInputs], control: Arc<Control>, beat: &Arc<Beat>) -> Self {
        let threads = 0..ThreadWorkers::threads(groups) as usize;
        let beats = threads.map(|thread| (thread, Arc::clone(beat))).collect();
        Watchdog {
            whole: None,
            ..Watchdog::new(groups, control, Clock::start(), beats)
        }
    }

    /// This thread has ended.
    pub(crate) fn forget(&mut self, thread: usize) {
        self.threads.remove(&thread);
    }

    /// True if the run is over and all threads that have not ended are stuck.
    pub fn all_are_stuck(&mut self) -> bool {
        let now = self.clock.now();
        let passed = Duration::from_nanos(now.nanos_since(self.looked_at));
        if passed < LOOK_EVERY {
            return false;
        }
        self.looked_at = now;
        if !self.is_over(now) {
            return false;
        }
        for thread in self.threads.values_mut() {
            thread.look(passed.min(2 * LOOK_EVERY), Beat::run_queue_wait);
        }
        let is_late = |thread: &Watched| thread.silent >= PATIENCE / 2;
        if self.threads.values().any(is_late) {
            // A client can be stopped within its turn unless it is in a C function.
            self.control.stop();
        }
        let is_stuck = |thread: &Watched| thread.silent >= PATIENCE;
        !self.threads.is_empty() && self.threads.values().all(is_stuck)
    }

    fn is_over(&self, now: Instant) -> bool {
        let end = self.control.start().zip(self.whole);
        let end = end.map(|(start, whole)| start + whole);
        self.control.is_stopped() || end.is_some_and(|end| now >= end)
    }

    /// Those that have not ended.
    pub(crate) fn threads(&self) -> Vec<usize> {
        self.threads.keys().copied().collect()
    }

    /// The total that a worker reported before its thread got stuck, and an interval for what it
    /// did not report: queries that were open then count as interrupted.
    pub(crate) fn left_behind(
        &self,
        (thread, group): (usize, usize),
        told: Option<Interval>,
    ) -> (WorkerOutcome, Option<Interval>) {
        let rest = told.as_ref();
        let rest = rest.and_then(|told| Interval::rest_of(&told.counts, told.end_ns));
        let mut total = told;
        if let Some(rest) = &rest {
            rest.append_to(&mut total);
        }
        let total = total.unwrap_or_default();
        let worker = self.worker_left_behind((thread, group), total);
        (worker, rest)
    }

    fn worker_left_behind(
        &self,
        (thread, group): (usize, usize),
        total: Interval,
    ) -> WorkerOutcome {
        let started_at = self.control.start().unwrap_or(self.clock.now());
        let run_started_at = started_at + self.warmup;
        let ended_at = run_started_at + Duration::from_nanos(total.end_ns);
        let has_measured = total.end_ns > 0;
        WorkerOutcome {
            group,
            thread,
            cpu: None,
            driver: None,
            summary: WorkerSummary {
                timeline: Timeline {
                    opened_at: started_at,
                    started_at,
                    run_started_at,
                    run_ended_at: ended_at,
                    drained_at: ended_at,
                },
                bins: measure::Timeline::new(),
                window: Window {
                    end: ended_at,
                    responses: total.counts.responses,
                    last_response_at: if has_measured {
                        ended_at
                    } else {
                        Instant::ZERO
                    },
                },
                ended_by: match self.control.is_interrupted() {
                    true => EndedBy::Interrupted,
                    false => EndedBy::Duration,
                },
                cpu_in_window: CpuTime {
                    used: Duration::from_nanos(total.cpu_ns),
                    waited: Duration::ZERO,
                    passed: Duration::from_nanos(total.end_ns),
                },
                ..WorkerSummary::default()
            },
            total,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_stuck_only_once_the_run_is_over_and_it_has_long_taken_no_turn() {
        let control = Arc::new(Control::new(2));
        let beats: Vec<Arc<Beat>> = (0..2).map(|_| Arc::default()).collect();
        let each = beats.iter().cloned().enumerate().collect();
        let mut watchdog = Watchdog::new(&[], Arc::clone(&control), Clock::start(), each);
        let look = |watchdog: &mut Watchdog, beats: &[Arc<Beat>]| {
            // As if the time between two looks had passed.
            watchdog.looked_at = Instant::ZERO;
            beats.iter().for_each(|beat| beat.count());
            watchdog.all_are_stuck()
        };
        let looks = PATIENCE.as_millis() / (2 * LOOK_EVERY).as_millis();
        watchdog.clock = Clock::of_host();
        assert!((0..2 * looks).all(|_| !look(&mut watchdog, &[])));
        control.stop();
        // One thread still takes turns.
        assert!((0..2 * looks).all(|_| !look(&mut watchdog, &beats[..1])));
        watchdog.forget(0);
        assert!(look(&mut watchdog, &[]));
        assert_eq!(watchdog.threads(), [1]);
        assert!(!look(&mut watchdog, &beats));
        watchdog.forget(1);
        assert!(!look(&mut watchdog, &[]));
    }

    #[test]
    fn a_thread_that_waits_for_a_cpu_is_not_stuck() {
        let mut watched = Watched {
            beat: Arc::default(),
            turns: 0,
            silent: Duration::ZERO,
            waited: None,
        };
        let mut waited = Duration::ZERO;
        let mut reads = 0;
        // All of the time is run-queue wait.
        for _ in 0..1_000 {
            waited += LOOK_EVERY;
            watched.look(LOOK_EVERY, |_| {
                reads += 1;
                waited
            });
            assert!(watched.silent < PATIENCE, "{watched:?}");
        }
        assert!(watched.silent >= PATIENCE / 2, "{watched:?}");
        // It is not read before the thread has been silent for long.
        let unread = (PATIENCE / 2).as_millis() / LOOK_EVERY.as_millis();
        assert_eq!(reads, 1_001 - unread);
        // Then it runs, and takes no turn.
        for _ in 0..PATIENCE.as_millis() / LOOK_EVERY.as_millis() {
            watched.look(LOOK_EVERY, |_| waited);
        }
        assert!(watched.silent >= PATIENCE, "{watched:?}");
        watched.beat.count();
        watched.look(LOOK_EVERY, |_| panic!("it is at work"));
        assert_eq!((watched.silent, watched.waited), (Duration::ZERO, None));
    }

    #[test]
    fn run_queue_wait_of_a_thread_is_read_by_its_number() {
        let beat = Beat::default();
        assert_eq!(beat.run_queue_wait(), Duration::ZERO);
        beat.belong_to_this_thread();
        let before = cpu::run_queue_wait();
        assert!(beat.run_queue_wait() >= before);
        assert!(beat.run_queue_wait() <= cpu::run_queue_wait());
    }

    #[test]
    fn queries_of_a_worker_that_is_left_behind_are_all_accounted_for() {
        let control = Arc::new(Control::new(1));
        let watchdog = Watchdog::new(&[], control, Clock::start(), BTreeMap::new());
        let mut interval = Interval {
            end_ns: 1_000_000_000,
            ..Interval::default()
        };
        let counts = &mut interval.counts;
        (counts.offered, counts.sent, counts.timeouts) = (10, 8, 3);
        counts.tcp_fallback.sent = 1;
        let (worker, rest) = watchdog.left_behind((0, 0), Some(interval));
        let counts = &worker.total.counts;
        assert_eq!(counts.check_identity(), Ok(()));
        assert_eq!((counts.interrupted, counts.not_sent.run_ended), (5, 2));
        assert_eq!(rest.unwrap().counts.interrupted, 5);
        assert_eq!(watchdog.left_behind((0, 0), None).1, None);
    }
}
