//! Connections that the target ends, refuses, spoils or does not serve: counted, recovered from,
//! and the run ends with its record.

use measure::EndedBy;
use measure::counts::{ConnectionFailures, Connections};
use proto::Transport;
use responder::ConnectionEnd;

use crate::sim::{Run, Sim, TARGET, at_ms, ms, ns};

const STREAMS: [Transport; 2] = [Transport::Tcp, Transport::Dot];

/// One client with one query in flight at a time, 2 ms each.
fn one_by_one(transport: Transport) -> Sim {
    Sim::seed(3)
        .over(transport)
        .one_way_delay_ms(1)
        .timeout_ms(100)
}

/// One client in open loop: a query a millisecond, 2 ms each.
fn steady(transport: Transport) -> Sim {
    one_by_one(transport).rate(1_000.0)
}

fn ends_after(sim: Sim, queries: u64, end: ConnectionEnd) -> Run {
    sim.behaviour(|behaviour| behaviour.end_after = Some((queries, end)))
        .run()
}

/// Connections that became usable and ended, each in the way that `of` counts.
fn assert_ended(run: &Run, of: fn(&Connections) -> u64) {
    let connections = run.record.connections();
    let ended = of(&connections);
    assert!(ended > 10, "{connections:?}");
    // The last one is open at the end, unless the next was just being opened.
    assert!(connections.closed_by_client <= 1, "{connections:?}");
    assert!(connections.attempted - ended <= 1, "{connections:?}");
    assert_eq!(connections.failed, ConnectionFailures::default());
}

#[test]
fn target_that_closes_after_ten_queries_is_reconnected_to() {
    for transport in STREAMS {
        for (end, of) in [
            (
                ConnectionEnd::Close,
                (|it: &Connections| it.closed_by_target) as fn(&_) -> _,
            ),
            (ConnectionEnd::Reset, |it| it.reset_by_target),
        ] {
            let run = ends_after(one_by_one(transport), 10, end);
            assert_ended(&run, of);
            let connections = of(&run.record.connections());
            // With the tenth response comes the end, and the eleventh query is lost on its way;
            // but a close_notify comes together with that response, before the next query.
            let is_announced = (transport, end) == (Transport::Dot, ConnectionEnd::Close);
            let lost = if is_announced { 0 } else { connections };
            assert_eq!(run.counts().connection_losses, lost, "{transport} {end:?}");
            assert_eq!(run.responses() / 10, connections, "{transport} {end:?}");
        }
    }
}

#[test]
fn open_loop_goes_on_over_ends_of_connections() {
    for transport in STREAMS {
        for end in [ConnectionEnd::Close, ConnectionEnd::Reset] {
            let run = ends_after(steady(transport), 20, end);
            let counts = run.counts();
            assert_eq!(run.offered(), 1_000);
            assert_eq!(
                counts.not_sent.total(),
                0,
                "{transport} {end:?}: {counts:?}"
            );
            // What was on its way when the end came is lost, no more.
            assert_eq!(run.responses() + counts.connection_losses, 1_000);
            assert!(run.responses() > 750, "{transport} {end:?}: {counts:?}");
        }
    }
}

#[test]
fn half_closed_connection_is_closed_and_opened_again() {
    for transport in STREAMS {
        let run = ends_after(one_by_one(transport), 10, ConnectionEnd::HalfClose);
        assert_ended(&run, |it| it.closed_by_target);
    }
}

#[test]
fn tls_alert_ends_a_connection_and_is_named() {
    let run = ends_after(one_by_one(Transport::Dot), 10, ConnectionEnd::TlsAlert);
    assert_ended(&run, |it| it.ended_by_tls);
    let warnings = run.record.warnings.join("\n");
    assert!(warnings.contains("TLS alert"), "{warnings}");
}

#[test]
fn certificate_that_is_not_trusted_ends_the_run_with_its_record() {
    let expired = |sim: Sim| sim.certificate(|certificate| certificate.expired = true);
    let run = expired(one_by_one(Transport::Dot)).clients(3).run();
    let failed = run.record.connections().failed;
    assert!(failed.tls_certificate >= 3, "{failed:?}");
    assert_eq!(failed.total(), failed.tls_certificate);
    assert_eq!(
        failed.tls_certificate_faults.expired,
        failed.tls_certificate
    );
    assert_eq!((run.offered(), run.record.ended_by), (0, EndedBy::Duration));
    let warnings = run.record.warnings.join("\n");
    assert!(warnings.contains("expired"), "{warnings}");
    let evidence = &run.record.verdict.evidence[0];
    assert!(evidence.contains("certificate"), "{evidence}");
    assert_eq!(run.responder.handshakes_completed, 0);

    let run = expired(one_by_one(Transport::Dot)).tls_insecure().run();
    assert_eq!(run.record.connections().failed.total(), 0);
    assert!(run.responses() > 400);
}

#[test]
fn certificate_that_is_not_trusted_ends_a_run_by_queries_too() {
    let sim = one_by_one(Transport::Dot).certificate(|certificate| certificate.expired = true);
    let run = sim.queries(100).run();
    assert_eq!(
        (run.offered(), run.record.ended_by),
        (0, EndedBy::TargetGone)
    );
    assert!(run.record.connections().failed.tls_certificate > 0);
}

#[test]
fn refused_connections_are_counted_and_tried_again_ever_more_rarely() {
    for transport in STREAMS {
        let run = one_by_one(transport)
            .duration_ms(10_000)
            .target_dead(0, 60_000)
            .run();
        let failed = run.record.connections().failed;
        assert_eq!(failed.total(), failed.refused, "{failed:?}");
        // Pauses of 10, 20, 40 ... ms up to 1 s.
        assert!((10..=20).contains(&failed.refused), "{failed:?}");
        assert_eq!(run.offered(), 0);
        assert_eq!(run.record.ended_by, EndedBy::Duration);

        let run = steady(transport).target_dead(0, 60_000).run();
        let not_sent = run.counts().not_sent;
        assert_eq!((run.offered(), run.sent()), (1_000, 0));
        assert_eq!(
            not_sent.timed_out_waiting + not_sent.run_ended,
            1_000,
            "{not_sent:?}"
        );
    }
}

#[test]
fn target_that_never_answers_a_syn_is_counted_as_timed_out() {
    let run = one_by_one(Transport::Tcp)
        .link_towards(TARGET, |link| link.loss_share = 1.0)
        .run();
    let failed = run.record.connections().failed;
    assert!(failed.timed_out > 0, "{failed:?}");
    assert_eq!(failed.total(), failed.timed_out, "{failed:?}");
}

#[test]
fn run_by_queries_ends_when_the_target_is_gone_for_good() {
    for transport in STREAMS {
        let run = one_by_one(transport)
            .clients(3)
            .outstanding(6)
            .queries(100_000);
        let run = run.target_dead(500, 1_000_000).run();
        assert_eq!(run.record.ended_by, EndedBy::TargetGone, "{transport}");
        assert!(run.responses() > 500, "{transport}: {}", run.responses());
        assert_eq!(run.counts().connection_losses, 6, "{transport}");
        assert!(run.record.phases.run_ns < 60_000_000_000);
    }
}

#[test]
fn target_that_dies_and_comes_back_is_used_again() {
    for transport in Transport::ALL {
        let sim = steady(transport).clients(4).duration_ms(3_000);
        let run = sim.target_dead(1_000, 700).run();
        let counts = run.counts();
        assert_eq!(run.offered(), 3_000);
        let lost = counts.lost();
        // 0.7 s without a target. With connections, the pauses between attempts add to it and
        // those queries that can still wait for the next one are sent.
        let most = match transport.has_connections() {
            true => 1_800,
            false => 702,
        };
        assert!((500..=most).contains(&lost), "{transport}: {counts:?}");
        assert_eq!(run.responses(), 3_000 - lost);
        let last = run
            .record
            .intervals
            .iter()
            .rev()
            .find(|it| it.counts.offered > 0)
            .unwrap();
        assert!(
            last.counts.responses > 700,
            "{transport}: {:?}",
            last.counts
        );
        if transport.is_stream() {
            assert!(run.record.connections().failed.refused >= 4);
        } else {
            // QUIC sends less and less while nothing comes back.
            let least = if transport.is_quic() { 4 } else { 690 };
            assert!(counts.port_unreachable >= least, "{counts:?}");
        }
    }
}

#[test]
fn closed_loop_survives_a_target_that_dies_and_comes_back() {
    for transport in Transport::ALL {
        let sim = one_by_one(transport)
            .clients(4)
            .outstanding(8)
            .duration_ms(3_000);
        let run = sim.target_dead(1_000, 700).run();
        let last = &run.record.intervals[2].counts;
        assert!(last.responses > 2_000, "{transport}: {last:?}");
        assert!(run.counts().lost() >= 8, "{transport}: {:?}", run.counts());
    }
}

/// A target that reads nothing after ten queries, behind windows of 2 KB.
fn stops_reading(sim: Sim) -> Run {
    let mut sim = sim;
    sim.simulation.world.stream_window_octets = 2_048;
    ends_after(sim, 10, ConnectionEnd::StopReading)
}

#[test]
fn stream_that_takes_no_octets_for_the_timeout_is_opened_again() {
    for transport in STREAMS {
        let run = stops_reading(steady(transport).duration_ms(3_000));
        let counts = run.counts();
        assert_eq!(run.offered(), 3_000);
        assert!(counts.timeouts > 100, "{transport}: {counts:?}");
        assert!(
            counts.not_sent.timed_out_waiting > 0,
            "{transport}: {counts:?}"
        );
        // Each connection answers ten, then fills its window, then is blocked for 0.1 s.
        assert!(run.responses() >= 80, "{transport}: {counts:?}");
        let connections = run.record.connections();
        assert!(
            connections.closed_by_client > 8,
            "{transport}: {connections:?}"
        );
    }
}

#[test]
fn run_by_queries_ends_though_no_stream_takes_octets() {
    for transport in STREAMS {
        let sim = one_by_one(transport)
            .clients(2)
            .outstanding(200)
            .queries(5_000);
        let run = stops_reading(sim);
        assert_eq!(
            (run.offered(), run.record.ended_by),
            (5_000, EndedBy::Queries)
        );
        assert!(run.timeouts() > 0);
    }
}

#[test]
fn connection_is_closed_after_its_queries_and_the_next_one_opened() {
    for transport in STREAMS {
        for (queries, each) in [(1_000, 10), (1_000, 7), (1_000, 1_000), (3, 1), (1, 5)] {
            let sim = one_by_one(transport).queries(queries);
            let run = sim
                .plan(|plan| plan.connections.queries_max = Some(each))
                .run();
            let opened = queries.div_ceil(u64::from(each));
            let connections = run.record.connections();
            assert_eq!(
                connections.established, opened,
                "{transport} {queries}/{each}"
            );
            assert_eq!(
                connections.closed_by_client, opened,
                "{transport} {queries}/{each}"
            );
            assert_eq!(run.responder.connections_accepted.total(), opened);
            assert_eq!((run.offered(), run.responses()), (queries, queries));
            assert_eq!(run.counts().connection_losses, 0);
        }
    }
}

#[test]
fn connection_that_both_ends_close_at_once_is_counted_once() {
    // With the tenth response comes the end, and the close_notify goes nowhere.
    for transport in STREAMS {
        for end in [
            ConnectionEnd::Close,
            ConnectionEnd::Reset,
            ConnectionEnd::HalfClose,
        ] {
            let sim = one_by_one(transport).queries(1_000);
            let sim = sim.plan(|plan| plan.connections.queries_max = Some(10));
            let run = ends_after(sim, 10, end);
            let connections = run.record.connections();
            let ended = connections.closed_by_client
                + connections.closed_by_target
                + connections.reset_by_target;
            assert_eq!(
                (connections.established, ended),
                (100, 100),
                "{transport} {end:?}"
            );
            assert_eq!(run.responses(), 1_000);
            assert!(run.record.total.connections_open <= 1);
        }
    }
}

#[test]
fn connections_that_are_reset_unanswered_are_tried_again_ever_more_rarely() {
    // All four queries of a connection are sent, and lost, before its reset comes: that it has
    // carried what it may is no reason to come back at once.
    let sim = one_by_one(Transport::Tcp).clients(4).outstanding(16);
    let sim = sim.plan(|plan| plan.connections.queries_max = Some(4));
    let run = sim
        .behaviour(|behaviour| behaviour.tcp_clients_max = Some(1))
        .run();
    let connections = run.record.connections();
    assert!(run.responses() > 300, "{:?}", run.counts());
    let reset = connections.reset_by_target + connections.failed.reset;
    assert!((10..120).contains(&reset), "{connections:?}");
}

#[test]
fn open_loop_waits_for_the_next_connection_and_loses_nothing() {
    for transport in STREAMS {
        let sim = steady(transport).clients(5);
        let run = sim
            .plan(|plan| plan.connections.queries_max = Some(8))
            .run();
        assert_eq!((run.offered(), run.responses()), (1_000, 1_000));
        let opened = run.record.connections().established;
        // 200 queries a client, and a last connection that may have been opened in advance.
        assert!((125..=130).contains(&opened), "{transport}: {opened}");
        run.assert_all_arrived();
    }
}

#[test]
fn query_that_waited_for_its_connection_has_its_whole_timeout_after_the_run_too() {
    // The last query, due at 0.99 s, finds its connection used up, and the SYN of the next one
    // lies at the target until 80 ms later. Its response takes 70 ms more, within 100 ms of its
    // sending, but not of the end of the run.
    let sim = one_by_one(Transport::Tcp).rate(100.0).duration_ms(1_000);
    let sim = sim.plan(|plan| plan.connections.queries_max = Some(99));
    let sim = sim.behaviour(|it| it.delay = responder::Delay::Constant(ms(70)));
    let sim = sim.held_at(TARGET, at_ms(985), 85);
    let run = sim.run();
    let latency = run.latency().max_ns();
    assert_eq!(
        (run.offered(), run.responses()),
        (100, 100),
        "{:?}",
        run.counts()
    );
    assert!(latency > Some(ns(140)), "{latency:?}");
    assert!(run.service().max_ns() < Some(ns(100)));
}

#[test]
fn losses_on_the_way_delay_a_stream_and_lose_no_query() {
    for transport in STREAMS {
        let sim = steady(transport).clients(4).timeout_ms(30_000);
        let run = sim.link(|link| link.loss_share = 0.05).run();
        assert_eq!(
            (run.offered(), run.responses()),
            (1_000, 1_000),
            "{transport}"
        );
        assert!(run.latency().max_ns() > Some(200_000_000), "{transport}");
        run.assert_all_arrived();
    }
}
