//! Generator and responder count the same queries, whatever the transport and the family.

use measure::EndedBy;
use proto::Transport;

use crate::bench::{FAMILIES, Load, Responder, ms};

#[test]
fn sent_queries_are_those_that_the_responder_received() {
    for address in FAMILIES {
        for transport in Transport::ALL {
            let target = Responder::start_at(address, |_| {});
            let load = Load::over(transport)
                .queries(5_000)
                .ca_pem(&target.certificate_pem);
            let ran = load.run_at(target.address(transport));
            let responder = target.serving.stop();
            ran.assert_all_answered(5_000);
            assert_eq!(
                responder.queries.get(transport),
                5_000,
                "{transport} {address}"
            );
            assert_eq!(responder.queries.total(), 5_000);
            assert_eq!(responder.responses.get(transport), 5_000);
            assert_eq!(ran.record.responses_in_window, 5_000);
            if !transport.has_tls() {
                let prefixes = if transport.is_stream() { 2 * 5_000 } else { 0 };
                let sent = ran.counts().sent_octets + prefixes;
                assert_eq!(
                    responder.octets_received.get(transport),
                    sent,
                    "{transport}"
                );
                let received = ran.counts().received_octets + prefixes;
                assert_eq!(
                    responder.octets_sent.get(transport),
                    received,
                    "{transport}"
                );
            }
            if transport.is_stream() {
                let connections = ran.record.connections();
                assert_eq!(connections.established, 10);
                assert_eq!(responder.connections_accepted.get(transport), 10);
            }
        }
    }
}

#[test]
fn offload_changes_how_datagrams_travel_and_no_count() {
    for offload in [true, false] {
        let load = Load::over(Transport::Udp)
            .clients(2)
            .outstanding(64)
            .queries(20_000);
        let load = load.plan(|plan| plan.sockets.offload = offload);
        let (ran, responder) = load.run_against(|_| {});
        ran.assert_all_answered(20_000);
        assert_eq!(responder.queries.get(Transport::Udp), 20_000);
        let network = &ran.record.network;
        assert_eq!(
            (network.datagrams_sent, network.datagrams_received),
            (20_000, 20_000)
        );
        if !offload {
            assert_eq!(
                (network.datagrams_offloaded, network.offload_bursts),
                (0, 0)
            );
        }
    }
}

#[test]
fn several_workers_share_clients_and_queries_exactly() {
    for transport in Transport::ALL {
        let load = Load::over(transport)
            .clients(7)
            .outstanding(21)
            .queries(5_003);
        let (ran, responder) = load.plan(|plan| plan.workers = 3).run_against(|_| {});
        ran.assert_all_answered(5_003);
        assert_eq!(responder.queries.get(transport), 5_003, "{transport}");
        let queries: Vec<u64> = ran.record.workers.iter().map(|it| it.queries).collect();
        assert_eq!(queries, [1_668, 1_668, 1_667], "{transport}");
    }
}

#[test]
fn warm_up_reaches_the_responder_and_not_the_figures() {
    let load = Load::over(Transport::Udp).rate(1_000.0);
    let load = load.plan(|plan| {
        plan.warmup = ms(200);
        plan.duration = Some(ms(500));
    });
    let (ran, responder) = load.run_against(|_| {});
    // A host that is busy at the end of the run keeps some from being sent.
    let counts = ran.counts();
    assert_eq!(counts.offered, 500);
    assert_eq!(counts.sent + counts.not_sent.total(), 500, "{counts:?}");
    assert_eq!(counts.responses, counts.sent, "{counts:?}");
    assert_eq!(ran.record.warmup.counts.offered, 200);
    assert_eq!(responder.queries.get(Transport::Udp), ran.sent());
}

#[test]
fn open_loop_offers_the_rate_asked_for_whatever_the_host_does() {
    let load = Load::over(Transport::Udp).rate(20_000.0);
    let load = load.plan(|plan| plan.timeout = ms(2_000));
    let (ran, responder) = load.run_against(|_| {});
    let counts = ran.counts();
    assert_eq!(counts.offered, 20_000, "{counts:?}");
    assert_eq!(ran.record.offered_qps(), 20_000.0);
    // A host that is busy at the end of the run keeps some from being sent, and drops datagrams if
    // the responder has no CPU.
    assert_eq!(counts.sent + counts.not_sent.total(), 20_000, "{counts:?}");
    assert!(responder.queries.get(Transport::Udp) <= counts.sent);
    assert!(counts.responses <= responder.queries.get(Transport::Udp));
}

#[test]
fn queries_per_connection_open_as_many_connections_as_division_says() {
    for transport in [Transport::Tcp, Transport::Dot] {
        let load = Load::over(transport)
            .clients(1)
            .outstanding(1)
            .queries(1_000);
        let load = load.plan(|plan| plan.connections.queries_max = Some(30));
        let (ran, responder) = load.run_against(|_| {});
        ran.assert_all_answered(1_000);
        assert_eq!(ran.record.connections().established, 34, "{transport}");
        assert_eq!(responder.connections_accepted.get(transport), 34);
        assert_eq!(ran.counts().connection_losses, 0);
    }
}

#[test]
fn truncated_responses_are_repeated_over_tcp() {
    let load = Load::over(Transport::Udp).queries(500);
    let (ran, responder) = load
        .plan(|plan| plan.tcp_fallback = true)
        .run_against(|config| config.behaviour.faults.truncated = 1.0);
    let counts = ran.counts();
    assert_eq!((counts.responses, counts.truncated), (500, 500));
    let fallback = &counts.tcp_fallback;
    assert_eq!((fallback.sent, fallback.responses), (500, 500));
    assert_eq!(responder.queries.get(Transport::Udp), 500);
    assert_eq!(responder.queries.get(Transport::Tcp), 500);
}

#[test]
fn looking_before_the_run_sends_no_query() {
    for transport in Transport::ALL {
        let load = Load::over(transport).queries(100).preflight();
        let (ran, responder) = load.run_against(|_| {});
        ran.assert_all_answered(100);
        assert_eq!(responder.queries.total(), 100, "{transport}");
    }
}

#[test]
fn interrupted_run_has_its_whole_record() {
    for transport in Transport::ALL {
        let target = Responder::start(|_| {});
        let load = Load::over(transport)
            .rate(1_000.0)
            .ca_pem(&target.certificate_pem);
        let load = load.plan(|plan| {
            plan.duration = Some(ms(60_000));
            plan.interval = ms(100);
        });
        let ran = load.run_watched(target.address(transport), |progress, control| {
            if progress.index == 2 {
                control.stop();
            }
        });
        let sent = ran.sent();
        assert_eq!(ran.record.ended_by, EndedBy::Interrupted);
        let offered = ran.counts().offered;
        assert!((300..60_000).contains(&offered), "{offered}");
        assert_eq!(
            target.serving.stop().queries.get(transport),
            sent,
            "{transport}"
        );
    }
}
