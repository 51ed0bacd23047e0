//! What the workers of one run share: the stop flag and the common start.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use proto::Instant;

/// Time between the moment when the last worker is ready and the common start.
const START_DELAY: Duration = Duration::from_millis(1);

/// Shared by all workers of a run and by the code that controls it.
#[derive(Debug)]
pub struct Control {
    stop: AtomicBool,
    /// From this instant on workers send nothing unless the run is stopped; in nanoseconds.
    pauses_at_ns: AtomicU64,
    /// Set by [`Control::stop`] too, for code that has no `Control`.
    stop_flag: Arc<AtomicBool>,
    /// The user wants the run to end soon.
    interrupted: AtomicBool,
    workers: u32,
    workers_ready: AtomicU32,
    /// The common start in nanoseconds; 0 until all workers are ready.
    start_ns: AtomicU64,
    /// Usable connections: the current number of workers that are not ready, plus the number that
    /// each ready worker had when it became ready.
    usable: AtomicI64,
    /// An agent reports these to its lead, which decides.
    agent: Option<AgentEvents>,
    /// The workers of a whole run report checkpoints too, as those of an agent always do.
    tells_checkpoints: AtomicBool,
    /// The run ends early if the first queries of every worker have failed.
    gives_up: bool,
    has_given_up: AtomicBool,
    workers_in_vain: AtomicU32,
}

/// What an agent reports to its lead.
#[derive(Clone)]
pub struct AgentEvents {
    /// Called when its workers are ready; [`Control::start_at`] sets when all agents start.
    pub on_ready: Arc<dyn Fn() + Send + Sync>,
    /// Called when the first queries of all its workers have failed; [`Control::give_up`] ends all
    /// agents.
    pub on_vain: Arc<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for AgentEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentEvents").finish_non_exhaustive()
    }
}

impl Control {
    /// For a run of `workers` workers.
    pub fn new(workers: u32) -> Self {
        Control {
            stop: AtomicBool::new(false),
            pauses_at_ns: AtomicU64::new(u64::MAX),
            stop_flag: Arc::default(),
            interrupted: AtomicBool::new(false),
            workers,
            workers_ready: AtomicU32::new(0),
            start_ns: AtomicU64::new(0),
            usable: AtomicI64::new(0),
            agent: None,
            tells_checkpoints: AtomicBool::new(false),
            gives_up: false,
            has_given_up: AtomicBool::new(false),
            workers_in_vain: AtomicU32::new(0),
        }
    }

    /// For the `workers` workers of an agent, of those of a run.
    pub fn for_agent(workers: u32, events: AgentEvents) -> Self {
        Control {
            agent: Some(events),
            ..Control::new(workers)
        }
    }

    /// Lets the run end early if the first queries of all workers have failed.
    #[must_use]
    pub fn giving_up(self) -> Self {
        Control {
            gives_up: true,
            ..self
        }
    }

    /// Called once by each worker whose first queries have all failed.
    pub(crate) fn worker_is_in_vain(&self) {
        let in_vain = 1 + self.workers_in_vain.fetch_add(1, Ordering::Relaxed);
        if in_vain == self.workers {
            match &self.agent {
                Some(agent) => (agent.on_vain)(),
                None if self.gives_up => self.give_up(),
                None => {}
            }
        }
    }

    /// Ends the run because no query was answered.
    pub fn give_up(&self) {
        self.has_given_up.store(true, Ordering::Relaxed);
        self.stop();
    }

    /// True if the run may end early when the first queries of all workers have failed.
    pub fn gives_up(&self) -> bool {
        self.gives_up
    }

    /// True after [`Control::give_up`].
    pub(crate) fn has_given_up(&self) -> bool {
        self.has_given_up.load(Ordering::Relaxed)
    }

    /// From the next run on, workers regularly report what they have measured so far.
    pub fn tell_checkpoints(&self) {
        self.tells_checkpoints.store(true, Ordering::Relaxed);
    }

    /// True if workers report checkpoints; those of an agent always do.
    pub(crate) fn tells_checkpoints(&self) -> bool {
        self.is_agent() || self.tells_checkpoints.load(Ordering::Relaxed)
    }

    /// True if this process is one of several agents.
    pub(crate) fn is_agent(&self) -> bool {
        self.agent.is_some()
    }

    /// Fixes the common start of an agent.
    pub fn start_at(&self, start: Instant) {
        self.start_ns
            .store(start.as_nanos().max(1), Ordering::Release);
    }

    /// From `at` on workers do nothing until the next call, or until the run is stopped: the lead
    /// of this agent may consider it lost by then, and does not count what it would send.
    pub fn pause_at(&self, at: Instant) {
        self.pauses_at_ns.store(at.as_nanos(), Ordering::Relaxed);
    }

    /// The time, if it is that of a pause: see [`Control::pause_at`]. `now` is read only where
    /// there may be one.
    #[inline]
    pub(crate) fn paused(&self, now: impl FnOnce() -> Instant) -> Option<Instant> {
        let at_ns = self.pauses_at_ns.load(Ordering::Relaxed);
        if at_ns == u64::MAX {
            return None;
        }
        let now = now();
        (now.as_nanos() >= at_ns && !self.is_stopped()).then_some(now)
    }

    /// Ends the run early: workers offer no more queries and wait for those in flight.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.stop_flag.store(true, Ordering::Relaxed);
    }

    /// Ends the run early: workers wait for queries in flight for at most a second.
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
        self.stop();
    }

    /// True after [`Control::interrupt`].
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// The flag that [`Control::stop`] sets, for code that has no `Control`.
    pub(crate) fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop_flag)
    }

    /// True after [`Control::stop`].
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Called by each worker that is not ready yet when its usable connections have changed by
    /// `more`.
    pub(crate) fn change_usable(&self, more: i64) {
        self.usable.fetch_add(more, Ordering::Relaxed);
    }

    /// Usable connections during set-up, before the run.
    pub fn usable_connections(&self) -> u64 {
        u64::try_from(self.usable.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Called once by each worker when its clients are set up. The last one fixes the start.
    pub(crate) fn worker_is_ready(&self, now: Instant) {
        if self.workers_ready.fetch_add(1, Ordering::AcqRel) + 1 == self.workers {
            match &self.agent {
                Some(agent) => (agent.on_ready)(),
                None => self.start_at(now + START_DELAY),
            }
        }
    }

    /// The common start, once all workers are ready.
    pub fn start(&self) -> Option<Instant> {
        match self.start_ns.load(Ordering::Acquire) {
            0 => None,
            ns => Some(Instant::from_nanos(ns)),
        }
    }
}
