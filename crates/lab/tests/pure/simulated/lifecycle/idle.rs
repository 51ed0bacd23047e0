//! Connections that are closed when they have had nothing to do for a while (RFC 7766, section
//! 6.2.3), and opened when there is a query again.

use std::time::Duration;

use proto::Transport;

use super::{STREAMS, assert_opened, over, set_up_round_trips};
use crate::sim::{Run, Sim, assert_near, ms, ns};

/// A client with a query every 3 s for 30 s, whose connection may be idle for a second.
fn rarely_asking(transport: Transport) -> Sim {
    let sim = over(transport).rate(1.0 / 3.0).duration_ms(30_000);
    sim.plan(|plan| plan.connections.idle_timeout = Some(ms(1_000)))
}

/// Asserts that each of the ten queries had a connection of its own, closed for idleness.
#[track_caller]
fn assert_one_each(run: &Run, transport: Transport) {
    assert_opened(run, transport, 10);
    let connections = run.record.connections();
    assert_eq!(connections.closed_by_client, 10, "{transport}");
    assert_eq!(connections.closed_by_client_for.idle, 10, "{transport}");
    assert_eq!((run.offered(), run.responses()), (10, 10), "{transport}");
}

#[test]
fn idle_connection_is_closed_and_the_next_query_opens_another() {
    for transport in STREAMS {
        let run = rarely_asking(transport).run();
        assert_one_each(&run, transport);
        // The first query finds a connection, the others wait until theirs is set up.
        let waited = run.record.total.distributions.send_lateness.clone();
        let set_up = ns(2 * set_up_round_trips(transport));
        assert_eq!((waited.min_ns(), waited.max_ns()), (Some(0), Some(set_up)));
        assert_near(run.latency().percentile(0.5), set_up + ns(2), 0);
    }
}

#[test]
fn connection_with_a_query_in_flight_is_not_idle_and_has_its_whole_time_afterwards() {
    for transport in STREAMS {
        // The response comes when the connection would long have been idle without the query.
        let sim = rarely_asking(transport);
        let sim = sim.behaviour(|it| it.delay = responder::Delay::Constant(ms(1_500)));
        let run = sim.plan(|plan| plan.interval = ms(100)).run();
        assert_one_each(&run, transport);
        // A second after the response to the first query, which came after 1.502 s.
        assert_eq!(first_idle_close(&run), 25, "{transport}");
    }
}

#[test]
fn connection_whose_query_timed_out_has_its_whole_time_afterwards() {
    for transport in STREAMS {
        let sim = rarely_asking(transport).timeout_ms(500);
        let sim = sim.behaviour(|it| it.faults.loss = 1.0);
        let run = sim.plan(|plan| plan.interval = ms(100)).run();
        assert_eq!((run.timeouts(), run.responses()), (10, 0), "{transport}");
        assert_opened(&run, transport, 10);
        assert_eq!(first_idle_close(&run), 15, "{transport}");
    }
}

/// The interval in which the first idle connection was closed.
fn first_idle_close(run: &Run) -> usize {
    let mut each = run.record.intervals.iter();
    let has_closed = |it: &measure::Interval| it.counts.connections.closed_by_client_for.idle > 0;
    each.position(has_closed).unwrap()
}

#[test]
fn connection_with_queries_often_enough_is_never_idle() {
    for transport in STREAMS {
        let sim = over(transport).rate(2.0).duration_ms(30_000);
        let run = sim
            .plan(|plan| plan.connections.idle_timeout = Some(ms(1_000)))
            .run();
        assert_opened(&run, transport, 1);
        assert_eq!((run.offered(), run.responses()), (60, 60), "{transport}");
    }
}

#[test]
fn connection_that_the_target_closes_is_opened_again_at_once_or_on_demand() {
    for transport in STREAMS {
        let closes_idle = |sim: Sim| sim.behaviour(|it| it.idle_timeout = Some(ms(500)));
        let run = closes_idle(rarely_asking(transport)).run();
        assert_opened(&run, transport, 10);
        let connections = run.record.connections();
        // A server of QUIC says nothing when its idle timeout is over.
        let ended = connections.ended_by_target() + connections.ended_by_silence();
        assert_eq!(ended, 10, "{transport}");

        // Without an idle timeout of its own the client stays connected.
        let sim = rarely_asking(transport).plan(|plan| plan.connections.idle_timeout = None);
        let run = closes_idle(sim).run();
        let connections = run.record.connections();
        let ended = connections.ended_by_target() + connections.ended_by_silence();
        assert!(ended > 20, "{connections:?}");
        assert_eq!(run.responses(), 10, "{transport}");
    }
}

#[test]
fn client_without_a_query_does_not_try_again_after_a_refusal() {
    for transport in STREAMS.into_iter().filter(|it| it.is_stream()) {
        let sim = rarely_asking(transport).duration_ms(12_000);
        let run = sim.timeout_ms(1_000).target_dead(1_500, 6_000).run();
        // The query at 3 s waits for a second: refused after 0, 12, 34, 76, 158, 320 and 642 ms.
        // That at 6 s is refused once, and the next pause is a second.
        let connections = run.record.connections();
        assert_eq!(connections.failed.refused, 8, "{transport}");
        assert_eq!(connections.attempted, 10, "{transport}");
        let counts = run.counts();
        assert_eq!((counts.offered, counts.responses), (4, 2), "{transport}");
        assert_eq!(counts.not_sent.timed_out_waiting, 2, "{transport}");
    }
}

#[test]
fn run_by_queries_does_not_take_idle_clients_for_a_target_that_is_gone() {
    for transport in STREAMS {
        let sim = over(transport).queries(4).outstanding_capped(1, 0.05);
        let run = sim
            .plan(|plan| plan.connections.idle_timeout = Some(Duration::from_secs(1)))
            .run();
        assert_eq!(run.record.ended_by, measure::EndedBy::Queries);
        assert_eq!((run.offered(), run.responses()), (4, 4), "{transport}");
        assert_opened(&run, transport, 4);
    }
}
