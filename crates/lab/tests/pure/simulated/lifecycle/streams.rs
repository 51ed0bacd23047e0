//! What a target's limit of QUIC streams does to a run: it waits, and where no stream ever comes,
//! connections are replaced.

use proto::Transport;

use super::over;
use crate::sim::{Run, Sim, ms, ns};

const QUIC: [Transport; 2] = [Transport::Doq, Transport::Doh3];

/// One client and a target that allows `streams` streams at once, or in total if `are_final`.
fn allowed(transport: Transport, streams: u32, are_final: bool) -> Sim {
    over(transport).responder(|responder| {
        responder.quic_streams_max = streams;
        responder.quic_streams_are_final = are_final;
    })
}

fn assert_all_answered(run: &Run, queries: u64) {
    let seen = (run.offered(), run.sent(), run.responses());
    assert_eq!(seen, (queries, queries, queries), "{:?}", run.counts());
    assert_eq!(run.counts().lost(), 0);
}

#[test]
fn connection_that_gets_no_more_streams_is_replaced_and_nothing_is_lost() {
    for transport in QUIC {
        for outstanding in [1, 20, 75] {
            let sim = allowed(transport, 50, true).outstanding(outstanding);
            let run = sim.queries(500).run();
            assert_all_answered(&run, 500);
            let connections = run.record.connections();
            assert_eq!(connections.attempted, 10, "{transport}: {connections:?}");
            assert_eq!(connections.closed_by_client_for.no_streams, 9);
            assert_eq!(connections.closed_by_client, 10);
            assert_eq!(connections.quic_stream_limits_met, 10);
            assert_eq!(run.responder.connections_accepted.total(), 10);
        }
    }
}

#[test]
fn open_loop_waits_for_the_next_connection_when_streams_are_used_up() {
    for transport in QUIC {
        let sim = allowed(transport, 50, true).rate(100.0).duration_ms(5_000);
        let run = sim.run();
        assert_all_answered(&run, 500);
        let closed = run.record.connections().closed_by_client_for.no_streams;
        assert_eq!(closed, 9, "{transport}");
        // 100 ms and 4 round trips of 2 ms, then the set-up of the next and the query itself.
        let latency = run.latency().max_ns();
        assert!(latency <= Some(ns(115)), "{transport}: {latency:?}");
        assert!(latency >= Some(ns(90)), "{transport}: {latency:?}");
    }
}

#[test]
fn connection_whose_streams_come_back_is_kept_and_needs_no_delayed_acknowledgement() {
    for transport in QUIC {
        let run = allowed(transport, 4, false).outstanding(16).run();
        // Four in each round trip of 2 ms for the queries and another for their streams, and at the
        // end the twelve that wait.
        assert_all_answered(&run, 250 * 4 + 12);
        let connections = run.record.connections();
        assert_eq!(connections.attempted, 1, "{transport}: {connections:?}");
        assert_eq!(connections.closed_by_client_for.no_streams, 0);
        assert_eq!(connections.quic_stream_limits_met, 253, "{transport}");
    }
}

#[test]
fn connection_that_never_gets_a_stream_is_not_opened_again_and_again() {
    for transport in QUIC {
        let run = allowed(transport, 0, true).duration_ms(10_000).run();
        let connections = run.record.connections();
        assert_eq!(connections.attempted, 1, "{transport}: {connections:?}");
        assert_eq!((run.offered(), run.responses()), (0, 0), "{transport}");
    }
}

#[test]
fn query_that_is_never_answered_keeps_its_connection_until_it_times_out() {
    for transport in QUIC {
        let sim = allowed(transport, 1, true).timeout_ms(500).queries(3);
        let run = sim.behaviour(|it| it.faults.loss = 1.0).run();
        assert_eq!((run.sent(), run.timeouts()), (3, 3), "{transport}");
        let connections = run.record.connections();
        assert_eq!(connections.closed_by_client_for.no_streams, 2);
        let each = ms(500 + 100 + 8);
        let spent = std::time::Duration::from_nanos(run.record.measured_ns);
        assert!(spent >= each * 2, "{transport}: {spent:?}");
    }
}
