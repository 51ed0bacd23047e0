//! Responses that are not what was asked for: each is counted as what it is, once.

use std::net::SocketAddr;

use driver::sim::Jitter;
use measure::counts::Unexpected;
use proto::Transport;
use responder::Delay;

use crate::sim::{GENERATOR, Run, Sim, TARGET, at_ms, ms};

/// Open loop of 1,000 queries over four clients, 10 ms there and back.
fn thousand(transport: Transport) -> Sim {
    let sim = Sim::seed(5).over(transport).clients(4).rate(1_000.0);
    sim.names(997).one_way_delay_ms(5).timeout_ms(200)
}

fn assert_unexpected(run: &Run, expected: Unexpected) {
    assert_eq!(run.counts().unexpected, expected);
}

/// True if each query has a request or stream of its own.
fn has_exchanges(transport: Transport) -> bool {
    transport.is_doh() || transport.is_quic()
}

/// Queries that what came for them did not answer: they go on waiting, unless what came ended their
/// own stream.
fn unanswered(run: &Run, transport: Transport) -> u64 {
    let counts = run.counts();
    match has_exchanges(transport) {
        true => counts.exchange_failures.malformed,
        false => counts.timeouts,
    }
}

#[test]
fn query_given_up_on_a_stream_of_its_own_is_cancelled_and_never_late() {
    for transport in [Transport::Doh2, Transport::Doh3, Transport::Doq] {
        let sim = Sim::seed(5).over(transport).clients(10);
        let sim = sim.rate(1_000.0).timeout_ms(200);
        let delay = Delay::Constant(ms(300));
        let run = sim.behaviour(|it| it.delay = delay).run();
        assert_eq!((run.timeouts(), run.responses()), (1_000, 0), "{transport}");
        assert_eq!(run.late(), 0, "{transport}");
        assert_unexpected(&run, Unexpected::default());
    }
}

#[test]
fn response_after_the_timeout_is_counted_late_and_not_answered() {
    // The second query keeps the run going until the late response to the first is there.
    let sim = Sim::seed(7).udp().one_way_delay_ms(600).timeout_ms(1_000);
    let run = sim.rate(1.0).names_text("late.example. A").queries(2).run();
    assert_eq!((run.timeouts(), run.responses(), run.late()), (2, 0, 1));
    assert_eq!(run.record.achieved_qps(), 0.0);
}

#[test]
fn late_response_is_known_as_late_although_many_queries_came_between() {
    // Every response takes 300 ms of a timeout of 200: at 1,000 a second, 100 to 300 queries
    // of the same client lie between a timeout and its late response.
    for transport in [Transport::Udp, Transport::Tcp, Transport::Dot] {
        let sim = Sim::seed(5)
            .over(transport)
            .rate(1_000.0)
            .timeout_ms(200)
            .names(997);
        let run = sim
            .behaviour(|it| it.delay = Delay::Constant(ms(300)))
            .run();
        assert_eq!((run.timeouts(), run.responses()), (1_000, 0));
        // Those whose response comes before the last query has timed out, 1.2 s after the start.
        assert!(run.late().abs_diff(900) <= 1, "{transport}: {}", run.late());
        assert_unexpected(&run, Unexpected::default());
    }
}

#[test]
fn late_responses_among_punctual_ones_are_known_as_late() {
    let sim = Sim::seed(5)
        .udp()
        .outstanding(8)
        .timeout_ms(50)
        .names(997)
        .duration_ms(3_000);
    let sim = sim.link_towards(TARGET, |link| {
        link.delay = ms(1);
        link.reorder_share = 0.01;
        link.reorder_delay = ms(150);
    });
    let run = sim.run();
    assert!(run.responses() > 10_000, "{}", run.responses());
    assert!(run.timeouts() > 100, "{}", run.timeouts());
    // All but those of the last 150 ms.
    let missed = run.timeouts() - run.late();
    assert!(missed < 20, "{} of {} late", run.late(), run.timeouts());
    assert_unexpected(&run, Unexpected::default());
}

#[test]
fn duplicates_of_the_target_are_counted_apart() {
    for transport in Transport::ALL {
        let sim = thousand(transport).behaviour(|behaviour| behaviour.duplicate_share = 1.0);
        let run = sim.run();
        assert_eq!(run.responses(), 1_000, "{transport}");
        // A stream of its own has room for one response.
        let duplicates = if has_exchanges(transport) { 0 } else { 1_000 };
        assert_eq!(run.counts().duplicate, duplicates, "{transport}");
        assert_unexpected(&run, Unexpected::default());
    }
}

#[test]
fn query_that_the_network_doubles_is_answered_once_and_duplicated_once() {
    let run = thousand(Transport::Udp)
        .link_towards(TARGET, |link| link.duplicate_share = 0.3)
        .run();
    let doubled = run.target_queries() - run.sent();
    assert!(doubled > 200, "{doubled}");
    assert_eq!((run.responses(), run.counts().duplicate), (1_000, doubled));
}

#[test]
fn overtaking_responses_find_their_queries() {
    let jitter = Jitter::Uniform { max: ms(50) };
    let run = thousand(Transport::Udp)
        .link(|link| link.jitter = jitter)
        .run();
    assert_eq!(run.responses(), 1_000);
    assert!(run.latency().max_ns() > run.latency().min_ns());
    assert_unexpected(&run, Unexpected::default());
}

#[test]
fn wrong_ids_answer_nothing() {
    for transport in Transport::ALL {
        if transport == Transport::Doq {
            continue;
        }
        let sim = thousand(transport).behaviour(|behaviour| behaviour.faults.wrong_id = 0.25);
        let run = sim.run();
        let spoilt = run.responder.spoilt;
        assert!((200..300).contains(&spoilt), "{transport}: {spoilt}");
        assert_eq!(run.responses(), 1_000 - spoilt, "{transport}");
        assert_eq!(unanswered(&run, transport), spoilt, "{transport}");
        // An ID may by chance be that of another question asked shortly before.
        let unexpected = run.counts().unexpected;
        assert_eq!(unexpected.wrong_id + unexpected.wrong_question, spoilt);
        assert!(unexpected.wrong_id > spoilt * 9 / 10, "{unexpected:?}");
    }
}

#[test]
fn wrong_id_ends_a_doq_connection_and_the_queries_on_it() {
    let sim = thousand(Transport::Doq).behaviour(|behaviour| behaviour.faults.wrong_id = 0.05);
    let run = sim.run();
    let spoilt = run.responder.spoilt;
    assert!((20..80).contains(&spoilt), "{spoilt}");
    let ended = &run.record.connections().closed_for_violation;
    let broken = ended.get("message ID is not 0 (RFC 9250, section 4.3.3)");
    assert!(broken > 10 && broken == ended.total(), "{ended:?}");
    assert!(run.counts().connection_losses >= ended.total());
    let malformed = run.counts().exchange_failures.malformed;
    let ends = run.responses() + run.counts().connection_losses + malformed;
    assert_eq!(ends, 1_000);
}

#[test]
fn wrong_questions_answer_nothing() {
    for transport in Transport::ALL {
        let sim = thousand(transport).behaviour(|behaviour| behaviour.faults.wrong_question = 0.25);
        let run = sim.run();
        let spoilt = run.responder.spoilt;
        assert!((200..300).contains(&spoilt), "{transport}: {spoilt}");
        assert_eq!(
            (run.responses(), unanswered(&run, transport)),
            (1_000 - spoilt, spoilt),
            "{transport}"
        );
        let wrong_question = spoilt;
        assert_unexpected(
            &run,
            Unexpected {
                wrong_question,
                ..Unexpected::default()
            },
        );
    }
}

/// All that the verdict of a run says.
fn verdict(run: &Run) -> String {
    serde_json::to_string(&run.record.verdict).unwrap()
}

#[test]
fn queries_in_place_of_responses_answer_nothing_and_are_named() {
    for transport in Transport::ALL {
        let run = thousand(transport)
            .behaviour(|behaviour| behaviour.faults.wrong_qr = 0.25)
            .run();
        let queries = run.responder.spoilt;
        assert!((200..300).contains(&queries), "{transport}: {queries}");
        assert_eq!(
            (run.responses(), unanswered(&run, transport)),
            (1_000 - queries, queries),
            "{transport}"
        );
        let expected = Unexpected {
            queries,
            ..Unexpected::default()
        };
        assert_unexpected(&run, expected);
        let reason = format!("{queries} queries (QR=0), not responses (RFC 1035, section 4.1.1)");
        let verdict = verdict(&run);
        assert!(verdict.contains(&reason), "{transport}: {verdict}");
    }
}

#[test]
fn responses_of_the_media_type_application_dns_answer_nothing_and_are_named() {
    for transport in [Transport::Doh2, Transport::Doh3] {
        let run = thousand(transport)
            .behaviour(|behaviour| behaviour.faults.wrong_media_type = 0.25)
            .run();
        let spoilt = run.responder.spoilt;
        assert!((200..300).contains(&spoilt), "{transport}: {spoilt}");
        assert_eq!(run.responses(), 1_000 - spoilt, "{transport}");
        let failures = &run.counts().exchange_failures;
        let (all, short) = (failures.media_type, failures.media_type_dns);
        assert_eq!((all, short, failures.total()), (spoilt, spoilt, spoilt));
        assert_unexpected(&run, Unexpected::default());
        let cause = format!(
            "{spoilt} responses with the media type application/dns instead of \
             application/dns-message (RFC 8484, section 6)"
        );
        let verdict = verdict(&run);
        assert!(verdict.contains(&cause), "{transport}: {verdict}");
        assert!(verdict.contains("`content-type: application/dns-message`"));
    }
}

#[test]
fn plan_that_matches_by_id_alone_takes_queries_and_other_questions_and_media_types() {
    for transport in [
        Transport::Udp,
        Transport::Tcp,
        Transport::Dot,
        Transport::Doh2,
    ] {
        let sim = thousand(transport).behaviour(|behaviour| {
            behaviour.faults.wrong_qr = 0.2;
            behaviour.faults.wrong_question = 0.2;
            behaviour.faults.wrong_media_type = 0.2;
        });
        let sim = sim.plan(|plan| plan.matches_by_id_alone = true);
        let run = sim.clone().run();
        assert!(run.responder.spoilt > 350, "{transport}");
        assert_eq!(run.responses(), 1_000, "{transport}");
        assert_unexpected(&run, Unexpected::default());
        // An ID that is not the query's is still that of none.
        let run = sim.behaviour(|it| it.faults.wrong_id = 0.2).run();
        let unexpected = run.counts().unexpected;
        assert_eq!(run.responses() + unexpected.wrong_id, 1_000, "{transport}");
        assert!((150..250).contains(&unexpected.wrong_id), "{transport}");
    }
}

#[test]
fn garbage_is_counted_and_survived() {
    for transport in Transport::ALL {
        // Its ID is not 0, see above.
        if transport == Transport::Doq {
            continue;
        }
        let sim = thousand(transport).behaviour(|behaviour| behaviour.faults.garbage = 0.5);
        let run = sim.run();
        let spoilt = run.responder.spoilt;
        assert!((400..600).contains(&spoilt), "{transport}: {spoilt}");
        assert_eq!(
            (run.responses(), unanswered(&run, transport)),
            (1_000 - spoilt, spoilt),
            "{transport}"
        );
        let unexpected = run.counts().unexpected;
        assert_eq!(unexpected.total(), spoilt, "{transport}");
        // The QR bit is a coin.
        let queries = unexpected.queries;
        assert!(
            queries.abs_diff(spoilt / 2) < 60,
            "{transport}: {queries} of {spoilt}"
        );
    }
}

#[test]
fn responses_of_64_kilobytes_are_received_whole() {
    for (transport, octets) in [
        (Transport::Udp, 65_507),
        (Transport::Tcp, 65_535),
        (Transport::Dot, 65_535),
    ] {
        let sim = Sim::seed(5)
            .over(transport)
            .names_text("long.lab.test A +edns=65535\n")
            .clients(2)
            .rate(100.0)
            .one_way_delay_ms(1);
        let run = sim
            .behaviour(|behaviour| behaviour.faults.oversized = 1.0)
            .run();
        assert_eq!(run.responses(), 100, "{transport}");
        assert_eq!(run.counts().received_octets, 100 * octets, "{transport}");
        assert_unexpected(&run, Unexpected::default());
    }
}

#[test]
fn truncated_responses_are_responses_and_counted_as_truncated() {
    for transport in Transport::ALL {
        let sim = thousand(transport).behaviour(|behaviour| behaviour.faults.truncated = 1.0);
        let run = sim.run();
        assert_eq!(
            (run.responses(), run.counts().truncated),
            (1_000, 1_000),
            "{transport}"
        );
        assert_eq!(run.counts().tcp_fallback, Default::default());
    }
}

#[test]
fn rcodes_are_counted_each_by_itself() {
    let sim = thousand(Transport::Udp).behaviour(|behaviour| {
        behaviour.faults.rcodes = vec![(2, 0.2), (3, 0.3), (5, 0.1)];
    });
    let run = sim.run();
    assert_eq!(run.responses(), 1_000);
    for rcode in [0, 2, 3, 5] {
        let counted = run.counts().rcodes.by_rcode[rcode];
        assert!(counted > 50);
        assert_eq!(counted, run.responder.rcodes[rcode], "RCODE {rcode}");
    }
    let good = run.responder.rcodes[0] + run.responder.rcodes[3];
    assert_eq!(run.record.goodput(), good);
}

/// A whole response that would fit any query but for its ID.
fn forged() -> Vec<u8> {
    let mut message = vec![0x12, 0x34, 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0];
    message.extend_from_slice(b"\x03www\x07example\0\0\x01\0\x01");
    message
}

#[test]
fn datagrams_from_elsewhere_are_counted_by_their_source_whatever_they_say() {
    let target = SocketAddr::new(TARGET, 53);
    let other_port = SocketAddr::new(TARGET, 5353);
    let other_host = SocketAddr::new("203.0.113.9".parse().unwrap(), 53);
    let sim = Sim::seed(5)
        .rate(100.0)
        .behaviour(|it| it.delay = Delay::Constant(ms(1)));
    let sim = sim
        .injected(other_port, forged(), at_ms(100))
        .injected(other_host, forged(), at_ms(200))
        .injected(other_host, Vec::new(), at_ms(300))
        .injected(target, forged(), at_ms(400))
        .injected(target, vec![0; 11], at_ms(500))
        .injected(target, Vec::new(), at_ms(600))
        .injected(
            SocketAddr::new(GENERATOR, 1),
            vec![0xff; 65_000],
            at_ms(700),
        );
    let run = sim.run();
    assert_eq!((run.offered(), run.responses()), (100, 100));
    let expected = Unexpected {
        wrong_source: 4,
        wrong_id: 1,
        malformed: 2,
        ..Unexpected::default()
    };
    assert_unexpected(&run, expected);
}

#[test]
fn right_response_from_the_wrong_source_answers_nothing() {
    // The first query of this seed, seen from outside: a response that is right in everything
    // but its source. Every ID is tried, so that the right one is among them.
    let stranger = SocketAddr::new("203.0.113.9".parse().unwrap(), 53);
    let mut sim = Sim::seed(5)
        .names_text("www.example. A")
        .queries(1)
        .timeout_ms(500);
    sim = sim.behaviour(|behaviour| behaviour.faults.loss = 1.0);
    for id in 0..=u16::MAX {
        let mut response = forged();
        response[..2].copy_from_slice(&id.to_be_bytes());
        sim = sim.injected(stranger, response, at_ms(100));
    }
    let run = sim.clone().run();
    assert_eq!((run.responses(), run.timeouts()), (0, 1));
    assert_eq!(run.counts().unexpected.wrong_source, 65_536);

    // From the target's own address one of them is the answer.
    for datagram in &mut sim.simulation.injected {
        datagram.from = SocketAddr::new(TARGET, 53);
    }
    let run = sim.run();
    assert_eq!((run.responses(), run.timeouts()), (1, 0));
    assert_eq!(run.counts().unexpected.wrong_id, 65_535);
}

#[test]
fn nobody_at_the_port_is_counted_and_the_queries_time_out() {
    let sim = Sim::seed(5).rate(100.0).one_way_delay_ms(1).timeout_ms(300);
    let run = sim.target_dead(0, 10_000).run();
    assert_eq!((run.sent(), run.timeouts()), (100, 100));
    assert_eq!(run.counts().port_unreachable, 100);
}

mod tcp_fallback {
    //! TC=1 over UDP is asked again over TCP and counted apart.

    use super::*;
    use measure::counts::TcpFallback;

    fn fallback() -> Sim {
        thousand(Transport::Udp).plan(|plan| plan.tcp_fallback = true)
    }

    #[test]
    fn truncated_responses_are_repeated_over_tcp_and_counted_apart() {
        // The TC bit is drawn for TCP as well, where it has no further consequence.
        let run = fallback().behaviour(|it| it.faults.truncated = 0.4).run();
        let counts = run.counts();
        assert_eq!((run.sent(), run.responses()), (1_000, 1_000));
        assert!((300..500).contains(&counts.truncated), "{counts:?}");
        let expected = TcpFallback {
            sent: counts.truncated,
            responses: counts.truncated,
            rcodes: counts.tcp_fallback.rcodes.clone(),
            ..TcpFallback::default()
        };
        assert_eq!(counts.tcp_fallback, expected);
        assert_eq!(run.responder.queries.get(Transport::Udp), 1_000);
        assert_eq!(run.responder.queries.get(Transport::Tcp), counts.truncated);
        let latency = &run.record.total.distributions.tcp_fallback;
        assert_eq!(latency.count(), counts.truncated);
        // UDP there and back, then TCP: with a connection there 10 ms, else 20 ms.
        assert_eq!(latency.min_ns(), Some(20_000_000));
        assert_eq!(latency.max_ns(), Some(30_000_000));
    }

    #[test]
    fn fallback_that_gets_no_answer_times_out_apart() {
        let sim = fallback().behaviour(|behaviour| behaviour.faults.truncated = 1.0);
        // Over UDP datagrams overtake the end of the run; TCP segments are lost for ever.
        let sim = sim.link_towards(TARGET, |link| link.loss_share = 0.0);
        let run = sim
            .behaviour(|behaviour| {
                behaviour.tcp_clients_max = Some(0);
            })
            .run();
        let fallback = &run.counts().tcp_fallback;
        assert_eq!((run.sent(), run.responses()), (1_000, 1_000));
        assert_eq!(fallback.sent, 1_000);
        assert_eq!(fallback.responses, 0);
        assert_eq!(fallback.timeouts + fallback.connection_losses, 1_000);
        assert!(run.counts().connections.attempted > 4);
    }

    #[test]
    fn fallback_connection_that_the_target_closes_is_opened_again() {
        let run = fallback()
            .behaviour(|behaviour| {
                behaviour.faults.truncated = 1.0;
                behaviour.end_after = Some((10, responder::ConnectionEnd::Close));
            })
            .run();
        let fallback = &run.counts().tcp_fallback;
        assert_eq!((run.responses(), fallback.sent), (1_000, 1_000));
        assert!(fallback.responses > 800, "{fallback:?}");
        let connections = &run.counts().connections;
        assert!(connections.closed_by_target > 80, "{connections:?}");
    }
}
