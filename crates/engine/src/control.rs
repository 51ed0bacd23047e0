//! What the workers of one run share: the stop flag and the common start.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use proto::Instant;

/// Time between the moment when the last worker is ready and the common start.
const START_DELAY: Duration = Duration::from_millis(1);

/// Shared by all workers of a run and by whoever watches it.
#[derive(Debug)]
pub struct Control {
    stop: AtomicBool,
    workers: u32,
    workers_ready: AtomicU32,
    /// The common start in nanoseconds; 0 until all workers are ready.
    start_ns: AtomicU64,
    /// Called when the last worker is ready, where somebody else fixes the start.
    on_ready: Option<fn()>,
    /// The run ends when nothing but failures has come back to any of its workers.
    gives_up: bool,
    workers_in_vain: AtomicU32,
}

impl Control {
    /// For a run of `workers` workers.
    pub fn new(workers: u32) -> Self {
        Control {
            stop: AtomicBool::new(false),
            workers,
            workers_ready: AtomicU32::new(0),
            start_ns: AtomicU64::new(0),
            on_ready: None,
            gives_up: false,
            workers_in_vain: AtomicU32::new(0),
        }
    }

    /// For `workers` workers that are a part of those of a run: `on_ready` is called when they are
    /// ready, and [`Control::start_at`] says when all parts start.
    pub fn of_part(workers: u32, on_ready: fn()) -> Self {
        Control {
            on_ready: Some(on_ready),
            ..Control::new(workers)
        }
    }

    /// Lets the run end early where the first queries of all workers have failed.
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
        if self.gives_up && in_vain == self.workers {
            self.stop();
        }
    }

    /// True if the run was stopped because nothing was answered.
    pub(crate) fn has_given_up(&self) -> bool {
        self.gives_up && self.workers_in_vain.load(Ordering::Relaxed) >= self.workers
    }

    /// Fixes the common start, of [`Control::of_part`].
    pub fn start_at(&self, start: Instant) {
        self.start_ns
            .store(start.as_nanos().max(1), Ordering::Release);
    }

    /// Ends the run early: no more queries are offered, those in flight are waited for.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// True after [`Control::stop`].
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Called once by each worker when its clients are set up. The last one fixes the start.
    pub(crate) fn worker_is_ready(&self, now: Instant) {
        if self.workers_ready.fetch_add(1, Ordering::AcqRel) + 1 == self.workers {
            match self.on_ready {
                Some(on_ready) => on_ready(),
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
