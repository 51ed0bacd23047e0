//! A known delay is measured as what it is.

use std::time::Duration;

use proto::Transport;
use responder::Delay;

use crate::bench::{Load, alone, ms};

/// What the responder waits before it answers.
const DELAY: Duration = Duration::from_millis(5);
/// How far p50 may be off, in either direction.
const P50_SHARE_MAX: f64 = 0.05;
/// How far p99 may be above the delay.
const P99_EXCESS_MAX: Duration = Duration::from_micros(1_500);
/// Runs until one must have met the bounds. The machine may be shared with builds, which take the
/// CPU away for milliseconds at a time; an error of the generator would show in every run.
const RUNS_MAX: usize = 10;

/// Measures once; an error names the figure that is out of its bounds.
fn measure_delay(transport: Transport) -> Result<(), String> {
    let load = Load::over(transport)
        .rate(500.0)
        .plan(|plan| plan.warmup = ms(100));
    let (ran, _) = load.run_against(|config| config.behaviour.delay = Delay::Constant(DELAY));
    ran.assert_all_answered(500);
    let latency = &ran.record.total.distributions.latency;
    let of = |share| Duration::from_nanos(latency.percentile(share).unwrap());
    let (p50, p99) = (of(0.5), of(0.99));
    // However loaded the machine is, nothing is answered before the delay is over.
    assert!(
        latency.min_ns() >= Some(5_000_000),
        "{transport}: {:?}",
        latency.min_ns()
    );
    if p50 > DELAY.mul_f64(1.0 + P50_SHARE_MAX) {
        return Err(format!("{transport}: p50 is {p50:?}"));
    }
    match p99 > DELAY + P99_EXCESS_MAX {
        true => Err(format!("{transport}: p99 is {p99:?}")),
        false => Ok(()),
    }
}

#[test]
fn delay_of_five_milliseconds_is_measured_as_such() {
    let _alone = alone();
    for transport in Transport::ALL {
        let mut failures = Vec::new();
        while let Err(failure) = measure_delay(transport) {
            failures.push(failure);
            assert!(failures.len() < RUNS_MAX, "{failures:?}");
        }
    }
}
