//! Ramps: a rate that grows from nothing, and how often it is looked at.

use std::time::Duration;

use load::ClientArrival;

/// Limits are looked at nearly as often, whatever the length of a point.
const LOOK: Duration = Duration::from_millis(100);

/// How many looks make a point: a power of two, so that the intervals of a long ramp, which are
/// merged in pairs, make whole points too.
fn looks(point: Duration) -> u32 {
    let looks = point.as_nanos().div_ceil(LOOK.as_nanos());
    let looks = u32::try_from(looks).unwrap_or(u32::MAX);
    1 << looks.max(1).ilog2()
}

/// Length of a point as it can be made of whole intervals: nanoseconds less than asked for.
pub fn point(point: Duration) -> Duration {
    interval(point) * looks(point)
}

/// Length of an interval of the run: a whole number of them make a point.
pub fn interval(point: Duration) -> Duration {
    point / looks(point)
}

/// The clients of a ramp to `rate_qps` that grows for the first of the times and stays for the
/// second: in turn, so that the n-th query is due when n of them are, as in resperf. One that is
/// due at the very end is asked after a ramp alone, and is not where the rate stays constant to the
/// end; the rate is changed by a thousandth of a query for that.
pub fn in_turns(
    rate_qps: f64,
    clients: u32,
    (over, sustain): (Duration, Duration),
) -> ClientArrival {
    let queries = rate_qps * (over.as_secs_f64() / 2.0 + sustain.as_secs_f64());
    let change = match sustain.is_zero() {
        true => 1e-3,
        false => -1e-3,
    };
    let clients = clients.max(1);
    ClientArrival::Turns {
        rate_qps: rate_qps * (1.0 + change / queries.max(1.0)) / f64::from(clients),
        clients,
    }
}

/// From nothing to the whole rate, in the notation of shapes; none where there is no time for it.
pub fn shape(over: Duration) -> Option<String> {
    (!over.is_zero()).then(|| format!("linear:0s=0,{}ns=1", over.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_a_power_of_two_of_intervals_near_a_tenth_of_a_second() {
        for (asked_ms, intervals) in [
            (50, 1),
            (100, 1),
            (250, 2),
            (500, 4),
            (1_000, 8),
            (60_000, 512),
        ] {
            let asked = Duration::from_millis(asked_ms);
            assert_eq!(interval(asked) * intervals, point(asked), "{asked_ms}");
            let lost = asked - point(asked);
            assert!(
                lost < Duration::from_nanos(u64::from(intervals)),
                "{asked_ms}"
            );
        }
    }

    #[test]
    fn a_query_that_is_due_at_the_very_end_is_asked_after_a_ramp_alone() {
        let seconds = Duration::from_secs;
        let due = |sustain: u64| match in_turns(100.0, 10, (seconds(10), seconds(sustain))) {
            ClientArrival::Turns { rate_qps, clients } => {
                rate_qps * f64::from(clients) * (5.0 + sustain as f64)
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(due(0).floor(), 500.0);
        assert_eq!(due(5).floor(), 999.0);
    }

    #[test]
    fn a_ramp_without_length_has_no_shape() {
        assert_eq!(shape(Duration::ZERO), None);
        let shape = shape(Duration::from_secs(1));
        assert_eq!(shape.as_deref(), Some("linear:0s=0,1000000000ns=1"));
    }
}
