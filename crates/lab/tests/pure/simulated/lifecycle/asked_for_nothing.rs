//! Connections that are opened and closed, and asked nothing.

use measure::Limit;
use proto::Transport;
use proto::tls::Tickets;

use super::{STREAMS, assert_opened, attempts_in_each_interval, over, set_up_round_trips};
use crate::sim::{Sim, ms, ns};

fn without_queries(transport: Transport) -> Sim {
    over(transport).plan(|plan| plan.connections.queries_max = Some(0))
}

#[test]
fn rate_of_connections_is_the_rate_asked_for() {
    for transport in STREAMS {
        for (workers, clients) in [(1, 20), (1, 1), (3, 20)] {
            let sim = without_queries(transport).clients(clients).workers(workers);
            let sim = sim.outstanding(workers).duration_ms(10_000).plan(|plan| {
                plan.connections.rate_max = Some(100.0);
                plan.interval = ms(100);
            });
            let run = sim.run();
            assert_opened(&run, transport, 1_000);
            assert_eq!(attempts_in_each_interval(&run), [10; 100], "{transport}");
            let closed = run.record.connections().closed_by_client_for;
            assert_eq!(closed.without_query, 1_000, "{transport}");
            assert_eq!((run.offered(), run.target_queries()), (0, 0));
            assert_eq!(run.record.verdict.limit, Limit::Rate, "{transport}");
        }
    }
}

#[test]
fn without_a_rate_each_client_opens_one_connection_after_the_other() {
    for transport in STREAMS {
        let sim = without_queries(transport).clients(5).duration_ms(1_000);
        let run = sim.run();
        let set_up_ms = 2 * set_up_round_trips(transport);
        assert_opened(&run, transport, 5 * 1_000 / set_up_ms);
        let verdict = &run.record.verdict;
        assert_eq!(verdict.limit, Limit::Outstanding, "{verdict:?}");
    }
}

#[test]
fn warm_up_is_kept_apart() {
    for transport in STREAMS {
        let sim = without_queries(transport).clients(5).warmup_ms(300);
        let sim = sim.plan(|plan| plan.connections.rate_max = Some(200.0));
        let run = sim.run();
        assert_opened(&run, transport, 60 + 200);
        let measured = run.counts().connections.attempted;
        assert_eq!(measured, 200, "{transport}");
    }
}

#[test]
fn reconnect_delay_is_kept() {
    for transport in STREAMS {
        let sim = without_queries(transport).duration_ms(10_000);
        let sim = sim.plan(|plan| plan.connections.reconnect_delay = ms(500));
        // 502 or 504 ms each.
        assert_opened(&sim.run(), transport, 20);
    }
}

#[test]
fn refused_connections_are_tried_ever_more_rarely_and_none_is_a_run_in_vain() {
    let sim = without_queries(Transport::Tcp).duration_ms(10_000);
    let run = sim.target_dead(0, 60_000).run();
    let connections = run.record.connections();
    // Pauses of 10, 20, 40 ... 640 ms, then a second each; a refusal takes 2 ms.
    assert_eq!(connections.failed.refused, 16);
    assert_eq!(connections.attempted, 16);
    let verdict = &run.record.verdict;
    assert_eq!(verdict.limit, Limit::Unknown, "{verdict:?}");
    assert!(verdict.evidence[0].contains("16 refused"), "{verdict:?}");
}

#[test]
fn pauses_begin_anew_after_a_connection_that_could_be_opened() {
    // Dead three times for 0.3 s. Each time the pauses grow to 160 ms: six refusals.
    let sim = without_queries(Transport::Tcp).duration_ms(3_000);
    let sim = sim.plan(|plan| plan.connections.reconnect_delay = ms(1));
    let run = sim
        .target_dead(500, 300)
        .target_dead(1_300, 300)
        .target_dead(2_100, 300)
        .run();
    let connections = run.record.connections();
    assert_eq!(connections.failed.refused, 3 * 5, "{connections:?}");
    assert!(connections.established > 600, "{connections:?}");
}

#[test]
fn set_up_times_are_those_of_the_path() {
    for transport in STREAMS {
        let run = without_queries(transport).clients(3).run();
        let times = run.record.connection_times();
        let opened = run.record.connections().attempted;
        if transport.is_stream() {
            assert_eq!(times.tcp_connect.count(), opened);
            assert_eq!(times.tcp_connect.max_ns(), Some(ns(2)), "{transport}");
        }
        assert_eq!(times.first_query.count(), 0);
    }
}

#[test]
fn connections_that_resume_are_kept_for_their_ticket_and_closed_with_it() {
    let transports = STREAMS.into_iter().filter(|transport| transport.has_tls());
    for transport in transports {
        let sim = without_queries(transport).clients(5);
        let run = sim.resuming(Tickets::Stateless { count: 2 }).run();
        // The ticket comes a round trip after the handshake.
        let each_ms = 2 * set_up_round_trips(transport) + 2;
        let connections = run.record.connections();
        let opened = 5 * 1_000_u64.div_ceil(each_ms);
        assert_eq!(
            connections.attempted, opened,
            "{transport}: {connections:?}"
        );
        let usable = connections.handshakes.total();
        assert_eq!(connections.handshakes.full, 5, "{transport}");
        assert_eq!(connections.handshakes.resumed, usable - 5, "{transport}");
        assert_eq!(run.responder.handshakes_resumed, usable - 5);
        assert_eq!(connections.tickets_missed, 0, "{transport}");
    }
}

#[test]
fn connections_whose_ticket_does_not_come_are_closed_after_a_while() {
    let transports = STREAMS.into_iter().filter(|transport| transport.has_tls());
    for transport in transports {
        let run = without_queries(transport).resuming(Tickets::None).run();
        let connections = run.record.connections();
        // 102 or 104 ms each.
        assert_eq!(connections.handshakes.full, 10, "{transport}");
        assert!(connections.tickets_missed >= 9, "{connections:?}");
        assert_eq!(connections.handshakes.resumed, 0, "{transport}");
    }
}
