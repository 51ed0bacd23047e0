//! The life of connections as the plan states it, to the connection and to the millisecond: what
//! arithmetic says is what both ends count.

mod any_policy;
mod asked_for_nothing;
mod idle;
mod streams;

use proto::Transport;

use crate::sim::{Run, Sim, ms, ns};

/// Every transport with connections that the responder speaks.
const STREAMS: [Transport; 5] = [
    Transport::Tcp,
    Transport::Dot,
    Transport::Doh2,
    Transport::Doq,
    Transport::Doh3,
];

/// Round trips until a connection is usable: one each for TCP and TLS 1.3, and QUIC has both in
/// one.
fn set_up_round_trips(transport: Transport) -> u64 {
    match transport {
        Transport::Dot | Transport::Doh2 => 2,
        _ => 1,
    }
}

/// A round trip takes 2 ms; a run begins 1 ms after its connections are usable.
fn over(transport: Transport) -> Sim {
    Sim::seed(5).over(transport).one_way_delay_ms(1)
}

/// Asserts that `connections` connections were attempted, all became usable, and the target
/// accepted them all.
#[track_caller]
fn assert_opened(run: &Run, transport: Transport, connections: u64) {
    let counts = run.record.connections();
    let usable = run.record.scenario.usable(&counts);
    let seen = [
        counts.attempted,
        usable,
        run.responder.connections_accepted.total(),
    ];
    assert_eq!(seen, [connections; 3], "{transport}: {counts:?}");
}

fn attempts_in_each_interval(run: &Run) -> Vec<u64> {
    let within = run.record.intervals_in_window();
    within.map(|it| it.counts.connections.attempted).collect()
}

#[test]
fn connection_is_replaced_when_its_time_is_over() {
    for transport in STREAMS {
        let sim = over(transport).clients(3).outstanding(3);
        let sim = sim.duration_ms(10_000);
        let run = sim
            .plan(|plan| plan.connections.duration = Some(ms(1_000)))
            .run();
        // Each lives for a second, its last response and the set-up of the next: from 1.002 to
        // 1.006 s. So ten begin within 10 s, and the last is open at the end.
        assert_opened(&run, transport, 3 * 10);
        let connections = run.record.connections();
        assert_eq!(connections.closed_by_client_for.duration, 3 * 9);
        assert_eq!(connections.closed_by_client, 3 * 10);
        assert_eq!(run.counts().connection_losses, 0, "{transport}");
        assert_eq!(run.responses(), run.offered(), "{transport}");
    }
}

#[test]
fn connection_whose_time_is_over_is_closed_when_its_responses_are_in() {
    for transport in STREAMS {
        let sim = over(transport).rate(10.0).duration_ms(10_000);
        let sim = sim.behaviour(|it| it.delay = responder::Delay::Constant(ms(250)));
        let run = sim
            .plan(|plan| plan.connections.duration = Some(ms(1_000)))
            .run();
        assert_eq!((run.offered(), run.responses()), (100, 100), "{transport}");
        assert_eq!(run.counts().connection_losses, 0, "{transport}");
        // Queries that are due meanwhile wait for the next connection, at most as long as the
        // last response takes and the set-up.
        let waited = run.record.total.distributions.send_lateness.max_ns();
        let most = ns(252 + 2 * set_up_round_trips(transport));
        assert!(waited > Some(ns(150)), "{transport}: {waited:?}");
        assert!(waited <= Some(most + most / 128), "{transport}: {waited:?}");
    }
}

#[test]
fn reconnect_delay_is_kept_between_connections() {
    for transport in STREAMS {
        let sim = over(transport).duration_ms(10_000);
        let sim = sim.plan(|plan| {
            plan.connections.queries_max = Some(1);
            plan.connections.reconnect_delay = ms(500);
        });
        let run = sim.run();
        // A query, the delay and the set-up take 504 or 506 ms: 20 begin within 10 s.
        assert_opened(&run, transport, 20);
        assert_eq!((run.offered(), run.responses()), (20, 20), "{transport}");
    }
}

#[test]
fn reconnect_delay_is_the_least_pause_after_failures_too() {
    let sim = over(Transport::Tcp).duration_ms(10_000);
    let sim = sim.plan(|plan| plan.connections.reconnect_delay = ms(500));
    let run = sim.target_dead(0, 60_000).run();
    // A refusal takes 2 ms. The first six pauses would be 10 to 320 ms and are 500 ms; then come
    // 640 ms and, from then on, a second: the fourteenth attempt is made at 9.666 s.
    let connections = run.record.connections();
    let (attempted, refused) = (connections.attempted, connections.failed.refused);
    assert_eq!((attempted, refused), (14, 14));
}

#[test]
fn run_by_queries_does_not_take_a_long_reconnect_delay_for_a_target_that_is_gone() {
    for transport in STREAMS {
        let sim = over(transport).queries(3).plan(|plan| {
            plan.connections.queries_max = Some(1);
            plan.connections.reconnect_delay = ms(30_000);
        });
        let run = sim.run();
        assert_eq!(run.record.ended_by, measure::EndedBy::Queries);
        assert_eq!((run.offered(), run.responses()), (3, 3), "{transport}");
    }
}

/// Two clients with connections that carry four queries at once, 102 ms each.
fn pipelined(transport: Transport) -> Sim {
    let sim = over(transport).clients(2);
    let sim = sim.behaviour(|it| it.delay = responder::Delay::Constant(ms(100)));
    sim.plan(|plan| plan.connections.in_flight_max = Some(4))
}

/// Asserts that no more than `most` queries were ever in flight, which intervals of 2 ms show.
#[track_caller]
fn assert_in_flight(run: &Run, most: f64) {
    let each = run.record.intervals_in_window();
    let each: Vec<f64> = each.map(|it| it.mean_in_flight()).collect();
    assert!(each.iter().all(|&mean| mean <= most), "{each:?}");
    assert!(each.iter().filter(|&&mean| mean == most).count() > 500);
}

#[test]
fn pipelining_depth_bounds_what_a_closed_loop_has_in_flight() {
    for transport in STREAMS {
        let sim = pipelined(transport).outstanding(100).duration_ms(2_000);
        let run = sim.plan(|plan| plan.interval = ms(2)).run();
        // Eight every 102 ms, the last of them at 1.938 s.
        assert_eq!((run.offered(), run.responses()), (160, 160), "{transport}");
        // A closed loop offers no queries that no stream can carry.
        assert_eq!(run.counts().waited_for_stream, 0, "{transport}");
        assert_in_flight(&run, 8.0);
    }
}

#[test]
fn pipelining_depth_keeps_queries_of_an_open_loop_waiting_and_counts_each_once() {
    for transport in STREAMS {
        let sim = pipelined(transport).rate(100.0).duration_ms(2_000);
        let run = sim.plan(|plan| plan.interval = ms(2)).run();
        // More are due than 8 every 102 ms: after the first four of each client all have to wait.
        assert_eq!((run.offered(), run.responses()), (200, 200), "{transport}");
        assert_eq!(run.counts().waited_for_stream, 200 - 8, "{transport}");
        assert_in_flight(&run, 8.0);
        let latency = run.latency().max_ns();
        assert!(latency > Some(ns(500)), "{transport}: {latency:?}");
        assert_eq!(run.service().max_ns(), Some(ns(102)), "{transport}");
    }
}

#[test]
fn queries_that_time_out_while_they_wait_for_a_place_are_counted_as_waiting_too() {
    for transport in STREAMS {
        let sim = pipelined(transport).rate(200.0).duration_ms(5_000);
        let run = sim.timeout_ms(300).run();
        let counts = run.counts();
        assert_eq!(counts.offered, 1_000);
        assert!(counts.not_sent.timed_out_waiting > 400, "{counts:?}");
        assert_eq!(counts.waited_for_stream, 1_000 - 8, "{transport}");
    }
}

#[test]
fn connect_rate_spreads_the_set_up_of_all_clients() {
    for transport in STREAMS {
        let sim = over(transport).clients(1_000).outstanding(1_000);
        let sim = sim.plan(|plan| plan.connections.rate_max = Some(100.0));
        let run = sim.duration_ms(100).run();
        assert_opened(&run, transport, 1_000);
        assert_eq!(run.record.warmup.counts.connections.attempted, 1_000);
        // One every 10 ms, the last after 9.99 s; 1 ms after the last one is usable it starts.
        let set_up = 2 * set_up_round_trips(transport);
        assert_eq!(run.record.phases.connect_ns, ns(9_990 + set_up + 1));
    }
}

#[test]
fn connect_rate_paces_reconnects_evenly() {
    for transport in STREAMS {
        for workers in [1, 3] {
            let sim = over(transport).clients(120).workers(workers);
            let sim = sim.outstanding(120).duration_ms(5_000);
            let sim = sim.plan(|plan| {
                plan.connections.queries_max = Some(1);
                plan.connections.rate_max = Some(100.0);
                plan.interval = ms(100);
            });
            let run = sim.run();
            // All have connected before; then the rate alone says how many queries can be asked.
            assert_eq!(attempts_in_each_interval(&run), [10; 50], "{transport}");
            assert_opened(&run, transport, 120 + 500);
            assert_eq!((run.offered(), run.responses()), (620, 620), "{transport}");
        }
    }
}
