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
}

impl Control {
    /// For a run of `workers` workers.
    pub fn new(workers: u32) -> Self {
        Control {
            stop: AtomicBool::new(false),
            workers,
            workers_ready: AtomicU32::new(0),
            start_ns: AtomicU64::new(0),
        }
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
            let start = now + START_DELAY;
            self.start_ns
                .store(start.as_nanos().max(1), Ordering::Release);
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
