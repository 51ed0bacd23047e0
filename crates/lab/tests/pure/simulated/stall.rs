//! What a stall does to open and closed loop, against arithmetic; and latency against service.

use std::time::Duration;

use measure::Histogram;
use responder::Stall;

use crate::sim::{Run, Sim, TARGET, assert_near, ms, ns};

const RATE_QPS: f64 = 1_000.0;

/// Ten seconds, for one of which the target stalls.
fn stalled(sim: Sim) -> Run {
    let sim = sim.clients(10).one_way_delay_ms(1).duration_ms(10_000);
    let sim = sim.behaviour(|behaviour| {
        behaviour.stalls = vec![Stall {
            at: ms(3_000),
            length: ms(1_000),
            every: None,
        }];
    });
    sim.run()
}

/// Number of values above `ns`, which must not lie within an occupied bucket.
fn above(histogram: &Histogram, ns: u64) -> u64 {
    let buckets = histogram.buckets();
    buckets
        .filter(|(low, _, _)| *low > ns)
        .map(|(_, _, count)| count)
        .sum()
}

#[test]
fn stall_shows_in_the_percentiles_of_an_open_loop_as_arithmetic_says() {
    let run = stalled(Sim::seed(1).rate(RATE_QPS));
    assert_eq!((run.offered(), run.responses()), (10_000, 10_000));
    // A query that arrives t after the stall began is answered 1 s - t later. So of 10,000
    // queries, 1,000 x (1 - x) take longer than x s, and the way there and back adds 2 ms.
    for x_ms in [100, 250, 500, 750, 900] {
        let expected = 1_000 - x_ms;
        let counted = above(run.latency(), ns(x_ms + 2));
        // One bucket is up to 1/128 wide, and queries are 1 ms apart.
        let allowed = x_ms / 128 + 2;
        assert!(
            counted.abs_diff(expected) <= allowed,
            "above {x_ms} ms: {counted}"
        );
    }
    // 5 % of the queries take longer than 0.5 s and 1 % longer than 0.9 s.
    assert_near(run.latency().percentile(0.95), ns(500 + 2), ns(1));
    assert_near(run.latency().percentile(0.99), ns(900 + 2), ns(1));
    assert_near(run.latency().max_ns(), ns(1_000 + 2), ns(1));
    assert_near(run.latency().percentile(0.5), ns(2), 0);
    // The queries left on time, so that here service time shows the same.
    assert_eq!(run.service(), run.latency());
    assert_eq!(
        run.record.total.distributions.send_lateness.max_ns(),
        Some(0)
    );
}

#[test]
fn stall_hides_from_the_percentiles_of_a_closed_loop() {
    let run = stalled(Sim::seed(1).outstanding(10));
    // 9 s of 10 places at 2 ms each. Ten queries alone meet the stall: the others were never
    // asked, which is what coordinated omission means.
    assert!(run.offered().abs_diff(45_000) <= 20, "{}", run.offered());
    assert_eq!(above(run.latency(), ns(500)), 10);
    assert_near(run.latency().percentile(0.99), ns(2), 0);
    assert_near(run.latency().max_ns(), ns(1_000), ns(3));
}

/// One client whose connection is used up 3 s into the run, and whose next SYN the target's host
/// leaves lying for a second.
fn held_up() -> Run {
    let sim = Sim::seed(1)
        .tcp()
        .one_way_delay_ms(1)
        .rate(RATE_QPS)
        .duration_ms(10_000);
    let sim = sim.plan(|plan| plan.connections.queries_max = Some(3_000));
    // Without a hold-up: connecting, and then the last response of the first connection, are
    // where the phases say.
    let connect = Duration::from_nanos(sim.clone().run().record.phases.connect_ns);
    let used_up = connect + ms(2_999 + 2);
    let syn_arrives = proto::Instant::ZERO + used_up + ms(1);
    sim.held_at(TARGET, syn_arrives, 1_000).run()
}

#[test]
fn queries_that_wait_for_their_connection_have_long_latency_and_short_service() {
    let run = held_up();
    assert_eq!((run.offered(), run.responses()), (10_000, 10_000));
    // Queries are due from 3.000 s on, every 1 ms, and the connection is back at 3.001 + 1.002 s:
    // 1,004 of them wait, the first for 1.003 s.
    let lateness = &run.record.total.distributions.send_lateness;
    assert_near(lateness.max_ns(), ns(1_003), 0);
    let waited = above(lateness, 0);
    assert!((1_002..=1_010).contains(&waited), "{waited} waited");
    // As for a stall of a target that answers everybody late.
    assert_near(run.latency().percentile(0.95), ns(500 + 5), ns(3));
    assert_near(run.latency().percentile(0.99), ns(900 + 5), ns(3));
    // To the target each query took the way there and back.
    let service = (run.service().min_ns(), run.service().max_ns());
    assert_eq!(service, (Some(ns(2)), Some(ns(2))));
}
