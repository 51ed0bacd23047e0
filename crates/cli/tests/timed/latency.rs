//! A known delay is measured as what it is.

use std::time::Duration;

use proto::Transport;
use responder::Delay;
use testing::quiet::Quiet;
use testing::timed::{Attempt, on_quiet_host};

use crate::bench::{Load, ms};

/// What the responder waits before it answers.
const DELAY: Duration = Duration::from_millis(5);
/// How far p50 may be above the delay.
const P50_SHARE_MAX: f64 = 0.05;
/// How far p99 may be above the delay.
const P99_EXCESS_MAX: Duration = Duration::from_micros(1_500);

/// Measures once.
fn measure_delay(transport: Transport) -> Attempt {
    let load = Load::over(transport)
        .rate(500.0)
        .plan(|plan| plan.warmup = ms(100));
    let (ran, _) = load.run_against(|config| config.behaviour.delay = Delay::Constant(DELAY));
    let latency = &ran.record.total.distributions.latency;
    let of = |share| Duration::from_nanos(latency.percentile(share).unwrap());
    let (p50, p99) = (of(0.5), of(0.99));
    // However loaded the machine is, no response comes before the delay is over.
    assert!(
        latency.min_ns() >= Some(5_000_000),
        "{transport}: {:?}",
        latency.min_ns()
    );
    let counts = ran.counts();
    let is_right = (counts.offered, counts.responses) == (500, 500)
        && p50 <= DELAY.mul_f64(1.0 + P50_SHARE_MAX)
        && p99 <= DELAY + P99_EXCESS_MAX;
    let wrong = || format!("{transport}: p50 is {p50:?}, p99 {p99:?}: {counts:?}");
    Attempt {
        disturbance: ran.disturbance(),
        outcome: is_right.then_some(()).ok_or_else(wrong),
    }
}

#[test]
fn delay_of_five_milliseconds_is_measured_as_such() {
    for transport in Transport::ALL {
        on_quiet_host(Quiet::LATENCY, || measure_delay(transport));
    }
}
