//! A generator that does not get its CPU: queries that were due leave late or never, and the
//! figures say so.
//!
//! In the simulator work takes no time, so the worker is kept from its turns instead.

use std::ops::Range;
use std::time::Duration;

use load::arrival::{Arrival, Process};
use load::{Plan, StampSource};
use measure::Interval;
use measure::counts::StampCounts;
use proto::{Instant, Transport};

use crate::echo::{self, Bench};

const fn at_us(microseconds: u64) -> Instant {
    Instant::from_nanos(microseconds * 1_000)
}

/// Runs `plan` in steps of 50 us, without any turn for the worker within `away`. Half a
/// millisecond each way. Returns the totals.
fn run(plan: Plan, away: Range<Instant>) -> Interval {
    run_to_end(plan, away).0
}

/// The same, with how late the first query left.
fn run_to_end(plan: Plan, away: Range<Instant>) -> (Interval, Option<u64>) {
    let Bench {
        world,
        mut echo,
        mut driver,
        mut workers,
    } = Bench::open(plan);
    let mut intervals = Vec::new();
    for step in 0..200_000 {
        let now = at_us(50 * step);
        world.advance_to(now);
        echo.step();
        if !away.contains(&now) {
            workers.step(&mut driver);
        }
        intervals.extend(std::iter::from_fn(|| workers.poll_interval()).map(|(_, it)| it));
        if workers.is_finished() {
            let total = Interval::total(&intervals);
            total.counts.check_identity().unwrap();
            // The run ends 2 s after its start, whatever the worker does.
            let (_, summary) = workers.summaries(&mut driver).remove(0);
            let timeline = summary.timeline;
            let end = timeline.run_started_at + Duration::from_secs(2);
            assert_eq!(timeline.run_ended_at, end);
            return (total, summary.first_late_ns);
        }
    }
    panic!("the run does not end");
}

/// Two seconds of open loop.
fn plan(rate_qps: f64) -> Plan {
    let process = Process::Constant;
    echo::plan(
        Transport::Udp,
        10,
        Arrival::Open {
            rate_qps,
            process,
            burst: 1,
        },
    )
}

/// Nothing keeps the worker away.
const NEVER: Range<Instant> = Instant::ZERO..Instant::ZERO;

#[test]
fn worker_that_has_its_turns_is_late_by_less_than_one() {
    let total = run(plan(1_000.0), NEVER);
    assert_eq!(
        (total.counts.offered, total.counts.responses),
        (2_000, 2_000)
    );
    assert!(total.distributions.send_lateness.max_ns() <= Some(50_000));
}

#[test]
fn first_query_is_late_by_what_the_worker_missed_of_the_start() {
    let closed = Arrival::Closed {
        outstanding: 10,
        rate_qps_max: None,
    };
    for plan in [plan(1_000.0), echo::plan(Transport::Udp, 10, closed)] {
        let late_ns = |away| run_to_end(plan.clone(), away).1.unwrap();
        assert!(late_ns(NEVER) <= 50_000);
        // It was awake to prepare the start, which is at once.
        let late_ns = late_ns(at_us(50)..at_us(30_000));
        assert!((25_000_000..=30_050_000).contains(&late_ns), "{late_ns}");
    }
}

#[test]
fn latency_shows_how_late_queries_left_and_service_time_does_not() {
    // 400 ms without a turn: of 2,000 queries 400 leave late, the first by 400 ms.
    let total = run(plan(1_000.0), at_us(500_000)..at_us(900_000));
    assert_eq!(
        (total.counts.offered, total.counts.responses),
        (2_000, 2_000)
    );
    let (latency, service) = (&total.distributions.latency, &total.distributions.service);
    // 5 % of the queries left more than 300 ms late, 1 % more than 380.
    for (share, expected_ms) in [(0.95, 300), (0.99, 380)] {
        let value_ms = latency.percentile(share).unwrap() as f64 / 1e6;
        let expected_ms = f64::from(expected_ms) + 1.0;
        assert!(
            (value_ms - expected_ms).abs() < 3.0,
            "{share}: {value_ms} ms"
        );
    }
    // But for the one or two responses that lay in the socket meanwhile.
    assert!(
        service.percentile(0.999) <= Some(1_060_000),
        "{:?}",
        service.percentile(0.999)
    );
    let lateness = total.distributions.send_lateness.max_ns();
    assert!(lateness > Some(395_000_000), "{lateness:?}");
}

#[test]
fn timestamps_tell_what_the_generator_added_from_what_the_network_did() {
    let mut plan = plan(1_000.0);
    plan.sockets.timestamps = Some(StampSource::Kernel);
    plan.sockets.offload = false;
    let total = run(plan, at_us(500_000)..at_us(900_000));
    let path = &total.distributions.path;
    assert_eq!(total.counts.stamps, StampCounts::default());
    assert_eq!(
        (total.counts.responses, path.network.count()),
        (2_000, 2_000)
    );
    let sum: u128 = path.parts().iter().map(|(_, part)| part.sum_ns()).sum();
    assert_eq!(sum, total.distributions.latency.sum_ns());
    // Half a millisecond each way, and up to a step of the target's, whatever the worker does.
    let (least, most) = (path.network.min_ns(), path.network.max_ns());
    assert!(
        least >= Some(1_000_000) && most <= Some(1_051_000),
        "{path:?}"
    );
    // Those that fell due meanwhile waited to be sent; those that came, to be read.
    assert!(path.generator.max_ns() > Some(395_000_000));
    assert!(path.generator.percentile(0.7) <= Some(51_000));
    assert!(path.reader.max_ns() > Some(395_000_000));
    assert!(path.reader.percentile(0.99) <= Some(51_000));
}

#[test]
fn queries_due_before_the_end_are_sent_though_the_worker_comes_back_after_it() {
    // More fall due within the last 10 ms than are offered in one turn.
    for rate_qps in [1_000.0, 1_000_000.0] {
        let total = run(plan(rate_qps), at_us(1_992_000)..at_us(2_010_000));
        let offered = 2 * rate_qps as u64;
        assert_eq!(
            (total.counts.offered, total.counts.sent),
            (offered, offered)
        );
    }
}

#[test]
fn queries_that_a_generator_cannot_make_up_for_count_as_not_sent() {
    // Some 100,000 have fallen due when the worker comes back, far too late.
    let total = run(plan(100_000.0), at_us(1_000_000)..at_us(4_000_000));
    let counts = &total.counts;
    assert_eq!(counts.offered, 200_000);
    assert_eq!(counts.sent + counts.not_sent.run_ended, 200_000);
    assert!(counts.not_sent.run_ended > 10_000, "{counts:?}");
}
