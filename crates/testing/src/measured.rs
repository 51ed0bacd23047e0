//! Intervals and a verdict with figures that are known.

use measure::{Interval, Limit, Verdict};

/// Nanoseconds of a second.
pub const SECOND: u64 = 1_000_000_000;

/// The second of that number, from 0: queries with a response after 2 ms, and lost ones.
pub fn second(number: u64, responses: u64, lost: u64) -> Interval {
    let mut interval = Interval {
        start_ns: number * SECOND,
        end_ns: (number + 1) * SECOND,
        in_flight_ns: 1_500_000_000,
        ..Interval::default()
    };
    let counts = &mut interval.counts;
    (counts.offered, counts.sent) = (responses + lost, responses + lost);
    (counts.responses, counts.timeouts) = (responses, lost);
    counts.rcodes.record_many(0, responses);
    (interval.distributions.latency).record_many(2_000_000, responses);
    interval.shrink_to_fit();
    interval
}

/// A server that was busy.
pub fn busy_server() -> Verdict {
    Verdict {
        limit: Limit::Server,
        evidence: vec!["its 2 CPUs were busy for 99.0 % of the time".to_owned()],
        advice: vec!["give it more CPUs".to_owned()],
    }
}
