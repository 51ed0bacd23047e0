//! What one worker measured in one interval.

use crate::counts::Counts;
use crate::histogram::Histogram;

/// The latency distributions of an interval or a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distributions {
    /// Response latency from the scheduled instant (no coordinated omission).
    pub latency: Histogram,
    /// Response latency from the instant of sending (service time).
    pub service: Histogram,
    /// How long after its scheduled instant each query was sent.
    pub send_lateness: Histogram,
    /// TCP connection set-up: SYN to established.
    pub tcp_connect: Histogram,
    /// TLS handshake: established to usable.
    pub tls_handshake: Histogram,
    /// TCP fallback: latency from the scheduled instant of the truncated UDP query.
    pub tcp_fallback: Histogram,
}

/// One interval of one worker, and, merged, of all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Start in nanoseconds since the start of the measured run (negative values do not occur:
    /// warm-up is an interval of its own record section).
    pub start_ns: u64,
    /// End in nanoseconds since the start of the measured run.
    pub end_ns: u64,
    /// What was counted.
    pub counts: Counts,
    /// What was timed.
    pub distributions: Distributions,
    /// Integral of the number of queries in flight over time, in query-nanoseconds;
    /// mean in flight = this / (end - start).
    pub in_flight_ns: u128,
    /// CPU time of the worker, nanoseconds.
    pub cpu_ns: u64,
    /// Connections usable at the end of the interval.
    pub connections_open: u64,
}
