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
/// Runs until one must have met the bounds, unless the host was too busy in all of them.
const RUNS_MAX: usize = 10;
/// Runs on a quiet host that do not meet the bounds are the generator's fault from this many on.
const QUIET_RUNS_MAX: usize = 3;

/// A figure that is out of its bounds.
struct Failure {
    figure: String,
    host_was_quiet: bool,
}

/// Measures once.
fn measure_delay(transport: Transport) -> Result<(), Failure> {
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
    if p50 <= DELAY.mul_f64(1.0 + P50_SHARE_MAX) && p99 <= DELAY + P99_EXCESS_MAX {
        return Ok(());
    }
    Err(Failure {
        figure: format!("{transport}: p50 is {p50:?}, p99 {p99:?}"),
        host_was_quiet: ran.host_was_quiet(),
    })
}

/// What else runs on the machine takes the CPU away for milliseconds at a time, from the generator
/// and from the responder; an error of the generator would show in every run.
#[test]
fn delay_of_five_milliseconds_is_measured_as_such() {
    let _alone = alone();
    for transport in Transport::ALL {
        let (mut failures, mut on_quiet_host) = (Vec::new(), 0);
        while let Err(failure) = measure_delay(transport) {
            on_quiet_host += usize::from(failure.host_was_quiet);
            failures.push(failure.figure);
            assert!(on_quiet_host < QUIET_RUNS_MAX, "{failures:?}");
            if failures.len() == RUNS_MAX {
                eprintln!("no upper bound was tried, the host was busy: {failures:?}");
                break;
            }
        }
    }
}
