//! DNS over QUIC between our client and our server.

use super::*;
use crate::doq::{DOQ_NO_ERROR, DOQ_PROTOCOL_ERROR, DOQ_REQUEST_CANCELLED};

fn world() -> (World, Certificates) {
    world_of_streams(100, false)
}

#[test]
fn query_is_answered_on_its_own_stream() {
    let (mut world, certificates) = world();
    let client = world.connected(&client_tls(&certificates, false));
    let Seen::Established(established) = world.seen[client][0] else {
        panic!("established first");
    };
    assert_eq!(established.handshake.kind, HandshakeKind::Full);
    assert_eq!(established.handshake.early_data, EarlyData::NotSent);
    assert_eq!(established.negotiated.unwrap().version, "TLS 1.3");
    assert!(established.handshake.octets_sent >= 1_200);
    assert!(established.handshake.octets_received >= 1_200);
    for number in 0..5 {
        world.ask(client, &query(number), number + 100).unwrap();
    }
    world.run_until(|world| world.messages(client).len() == 5);
    for number in 0..5 {
        let mut expected = response_to(&query(number));
        expected[..2].fill(0);
        assert!(world.seen[client].contains(&Seen::Message(number + 100, expected)));
    }
    assert_eq!(world.client.exchanges_open(world.keys[client]), 0);
}

#[test]
fn nothing_is_lost_and_nothing_comes_twice_over_a_bad_network() {
    for seed in 1..6_u64 {
        let (mut world, certificates) = world();
        everything_comes_once_over_a_bad_network(&mut world, &certificates, seed);
    }
}

#[test]
fn rfc9250_4_3_1_cancelled_query_is_not_heard_of_again() {
    let (mut world, certificates) = world();
    let client = world.connected(&client_tls(&certificates, false));
    world.responds = false;
    world.ask(client, &query(1), 1).unwrap();
    world.ask(client, &query(2), 2).unwrap();
    world.run_for(Duration::from_millis(50));
    let key = world.keys[client];
    assert!(world.client.cancel(world.now, key, 1));
    assert!(!world.client.cancel(world.now, key, 1), "it is gone");
    world.run_for(Duration::from_millis(50));
    let Some(&Served::Cancelled(server_key, stream)) = world.served.last() else {
        panic!("{:?}", world.served);
    };
    assert!(!world.server.respond(server_key, stream, &query(1), None));
    assert!(
        world
            .server
            .respond(server_key, stream + 1, &answer(2), None)
    );
    world.run_for(Duration::from_millis(50));
    assert_eq!(world.messages(client), [2]);
    assert_eq!(world.lost(client), None);
}

#[test]
fn late_response_to_an_abandoned_query_is_seen() {
    let (mut world, certificates) = world();
    let client = world.connected(&client_tls(&certificates, false));
    world.responds = false;
    world.ask(client, &query(7), 7).unwrap();
    world.run_for(Duration::from_millis(50));
    let key = world.keys[client];
    assert!(world.client.abandon(world.now, key, 7));
    let Some(Served::Query { key, stream, .. }) = world.served.last().cloned() else {
        panic!("{:?}", world.served);
    };
    world.server.respond(key, stream, &answer(7), None);
    world.run_for(Duration::from_millis(50));
    assert_eq!(world.seen[client][1..], [Seen::Ended(7, ExchangeEnd::Late)]);
}

#[test]
fn abandoned_queries_beyond_the_limit_are_cancelled() {
    let (mut world, certificates) = world();
    let client = world.connected(&client_tls(&certificates, false));
    world.responds = false;
    let abandoned = QuicClient::ABANDONED_MAX as u32 + 3;
    for token in 0..abandoned {
        world.ask(client, &query(token), token).unwrap();
        assert!(world.client.abandon(world.now, world.keys[client], token));
    }
    world.run_for(Duration::from_millis(50));
    assert_eq!(
        world.client.exchanges_open(world.keys[client]),
        QuicClient::ABANDONED_MAX
    );
}

#[test]
fn query_beyond_the_streams_that_the_server_allows_is_blocked_until_one_ends() {
    let (mut world, certificates) = world();
    let client = world.connected(&client_tls(&certificates, false));
    for token in 0..100 {
        world.ask(client, &query(token), token).unwrap();
    }
    assert_eq!(world.ask(client, &query(100), 100), Err(Blocked::Streams));
    assert!(!world.client.can_request(world.keys[client]));
    world.run_until(|world| world.messages(client).len() == 100);
    world.run_for(Duration::from_millis(100));
    assert!(world.seen[client].contains(&Seen::StreamsAvailable));
    assert!(world.client.can_request(world.keys[client]));
    world.ask(client, &query(100), 100).unwrap();
    world.run_until(|world| world.messages(client).len() == 101);
}

/// A server that allows `streams_max` streams at once, or altogether if they are final.
fn world_of_streams(streams_max: u32, streams_are_final: bool) -> (World, Certificates) {
    let certificates = certificates();
    let server = QuicServerOptions {
        streams_max,
        streams_are_final,
        ..server_options(ServerProtocol::Doq)
    };
    let world = World::new(&certificates, client_options(ClientProtocol::Doq), server);
    (world, certificates)
}

#[test]
fn client_that_lacks_streams_acknowledges_responses_at_once() {
    let (mut world, certificates) = world_of_streams(1, false);
    let client = world.connected(&client_tls(&certificates, false));
    world.run_for(Duration::from_millis(100));
    let begun = world.now;
    for token in 0..10 {
        let key = world.keys[client];
        while world.client.blocked(key) == Some(Blocked::Streams) {
            world.run_for(Duration::from_millis(1));
        }
        world.ask(client, &query(token), token).unwrap();
    }
    world.run_until(|world| world.messages(client).len() == 10);
    // A round trip for the query and one for the stream of the next, 10 ms each, to within the
    // millisecond in which it is looked for; max_ack_delay would be 25 ms more.
    let each = world.now.duration_since(begun) / 10;
    assert!(each <= Duration::from_millis(21), "{each:?}");
}

#[test]
fn connection_whose_streams_are_final_carries_no_more() {
    let (mut world, certificates) = world_of_streams(3, true);
    let client = world.connected(&client_tls(&certificates, false));
    let key = world.keys[client];
    for token in 0..3 {
        world.ask(client, &query(token), token).unwrap();
        world.run_for(Duration::from_millis(100));
    }
    assert_eq!(world.messages(client), [0, 1, 2]);
    assert_eq!(world.client.blocked(key), Some(Blocked::Streams));
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.client.blocked(key), Some(Blocked::Streams));
    assert_eq!(world.lost(client), None);
    let rtt = world.client.rtt(key);
    assert_eq!(rtt, Duration::from_millis(10));
}

#[test]
fn query_before_the_handshake_is_blocked() {
    let (mut world, certificates) = world();
    let client = world.connect(&client_tls(&certificates, false));
    assert_eq!(world.ask(client, &query(0), 0), Err(Blocked::Handshaking));
}

#[test]
fn second_connection_resumes_and_sends_queries_in_its_first_flight() {
    let (mut world, certificates) = world();
    let tls = client_tls(&certificates, true);
    let first = world.connected(&tls);
    world.run_for(Duration::from_millis(50));
    let second = world.reconnect(&tls, first);
    world.ask(second, &query(5), 5).unwrap();
    let begun = world.now;
    world.run_until(|world| world.messages(second) == [5]);
    assert_eq!(world.now - begun, DELAY * 2, "one round trip");
    let established = world.seen[second].iter().find_map(|seen| match seen {
        Seen::Established(established) => Some(*established),
        _ => None,
    });
    let handshake = established.unwrap().handshake;
    assert_eq!(handshake.kind, HandshakeKind::Resumed);
    assert_eq!(handshake.early_data, EarlyData::Accepted);
    assert!(
        world
            .served
            .iter()
            .any(|served| matches!(served, Served::Query { early: true, .. }))
    );
    assert_eq!(world.lost(first), None);
}

#[test]
fn queries_in_rejected_early_data_are_sent_again() {
    let (mut world, certificates) = world();
    let tls = client_tls(&certificates, true);
    let first = world.connected(&tls);
    world.run_for(Duration::from_millis(50));
    // The server is another one, which does not know the session.
    let other = server_tls(&certificates);
    world.server = QuicServer::new(&other, server_options(ServerProtocol::Doq)).unwrap();
    let second = world.reconnect(&tls, first);
    world.ask(second, &query(1), 1).unwrap();
    world.ask(second, &query(2), 2).unwrap();
    world.run_until(|world| world.messages(second).len() == 2);
    let Seen::Established(established) = world.seen[second][0] else {
        panic!("{:?}", world.seen[second]);
    };
    assert_eq!(established.handshake.kind, HandshakeKind::Full);
    assert_eq!(established.handshake.early_data, EarlyData::Rejected);
    assert_eq!(world.messages(second), [1, 2]);
    world.ask(second, &query(3), 3).unwrap();
    world.run_until(|world| world.messages(second) == [1, 2, 3]);
}

#[test]
fn connection_closed_by_the_server_says_with_which_code() {
    let (mut world, certificates) = world();
    let client = world.connected(&client_tls(&certificates, false));
    world.run_for(Duration::from_millis(20));
    let Some(Served::Established(key, _)) = world.served.first().cloned() else {
        panic!("{:?}", world.served);
    };
    world
        .server
        .close(world.now, key, crate::doq::DOQ_EXCESSIVE_LOAD);
    world.run_for(Duration::from_secs(5));
    let reason = LostReason::Application {
        code: 4,
        by: By::Peer,
    };
    assert_eq!(world.lost(client), Some(reason));
    assert_eq!(
        world.ask(client, &query(0), 0),
        Err(Blocked::Closed),
        "it is over"
    );
    assert_eq!(world.server.connections(), 0, "drained and removed");
}

#[test]
fn connection_closed_by_the_client_is_lost_at_the_server() {
    let (mut world, certificates) = world();
    let client = world.connected(&client_tls(&certificates, false));
    world.run_for(Duration::from_millis(20));
    let key = world.keys[client];
    world.client.close(world.now, key, DOQ_NO_ERROR);
    world.flush();
    world.client.forget(key);
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.lost(client), None, "the caller knows");
    let reason = LostReason::Application {
        code: DOQ_NO_ERROR,
        by: By::Peer,
    };
    assert!(
        matches!(world.served.last(), Some(Served::Lost(_, lost)) if *lost == reason),
        "{:?}",
        world.served
    );
    assert_eq!(
        (world.client.connections(), world.server.connections()),
        (0, 0)
    );
}

#[test]
fn rfc9250_4_3_3_response_with_an_id_aborts_the_connection() {
    let (mut world, certificates) = world();
    let client = world.connected(&client_tls(&certificates, false));
    world.responds = false;
    world.ask(client, &query(1), 1).unwrap();
    world.ask(client, &query(2), 2).unwrap();
    world.run_for(Duration::from_millis(50));
    let Some(Served::Query { key, stream, .. }) = world.served.last().cloned() else {
        panic!("{:?}", world.served);
    };
    let mut framed = Vec::new();
    crate::framing::write_message(&response_to(&query(2)), &mut framed);
    world.server.respond_raw(key, stream, &framed);
    world.run_for(Duration::from_millis(50));
    assert!(world.seen[client].contains(&Seen::Ended(2, ExchangeEnd::Malformed)));
    let reason = |by| LostReason::Application {
        code: DOQ_PROTOCOL_ERROR,
        by,
    };
    assert_eq!(world.lost(client), Some(reason(By::Us)));
    assert_eq!(
        world.served.last(),
        Some(&Served::Lost(key, reason(By::Peer)))
    );
}

#[test]
fn response_in_pieces_with_fin_behind_is_one_response() {
    let (mut world, certificates) = world();
    let client = world.connected(&client_tls(&certificates, false));
    world.responds = false;
    world.ask(client, &query(1), 1).unwrap();
    world.run_for(Duration::from_millis(50));
    let Some(Served::Query { key, stream, .. }) = world.served.last().cloned() else {
        panic!("{:?}", world.served);
    };
    let mut framed = Vec::new();
    let long = vec![0; 60_000];
    crate::doq::write_stream(&long, &mut framed);
    for piece in framed.chunks(7_001) {
        assert!(world.server.write_raw(key, stream, piece));
        world.run_for(Duration::from_millis(40));
    }
    assert_eq!(world.messages(client), [1], "before FIN");
    assert!(world.server.respond_raw(key, stream, &[]));
    world.run_for(Duration::from_millis(50));
    assert_eq!(world.seen[client][1..], [Seen::Message(1, long)]);
}

#[test]
fn stream_reset_by_the_server_ends_one_exchange() {
    let (mut world, certificates) = world();
    let client = world.connected(&client_tls(&certificates, false));
    world.responds = false;
    world.ask(client, &query(1), 1).unwrap();
    world.run_for(Duration::from_millis(50));
    let Some(Served::Query { key, stream, .. }) = world.served.last().cloned() else {
        panic!("{:?}", world.served);
    };
    assert!(world.server.reset_stream(key, stream, 5));
    world.responds = true;
    world.ask(client, &query(2), 2).unwrap();
    world.run_for(Duration::from_millis(50));
    assert!(world.seen[client].contains(&Seen::Ended(1, ExchangeEnd::Reset(5))));
    assert_eq!(world.messages(client), [2]);
    assert_eq!(DOQ_REQUEST_CANCELLED, 3);
}

#[test]
fn retry_costs_a_round_trip_and_nothing_else() {
    let (mut world, certificates) = world();
    world.admission = Admission::Retry;
    let client = world.connected(&client_tls(&certificates, false));
    assert_eq!(world.now.as_nanos() - 1_000, DELAY.as_nanos() as u64 * 4);
    assert_eq!(world.arrivals[0], Arrival::NotAccepted(Admission::Retry));
    world.ask(client, &query(1), 1).unwrap();
    world.run_until(|world| world.messages(client) == [1]);
}

#[test]
fn connections_that_are_not_accepted_say_why() {
    for (admission, reason) in [
        (
            Admission::Refuse,
            LostReason::Transport {
                code: 2,
                by: By::Peer,
            },
        ),
        (
            Admission::VersionNegotiation,
            LostReason::VersionNegotiation,
        ),
        (Admission::Ignore, LostReason::HandshakeTimeout),
    ] {
        let (mut world, certificates) = world();
        world.admission = admission;
        let client = world.connect(&client_tls(&certificates, false));
        world.run_until(|world| world.lost(client).is_some());
        assert_eq!(world.lost(client), Some(reason), "{admission:?}");
        assert_eq!(world.server.connections(), 0);
        let key = world.keys[client];
        world.client.forget(key);
        assert_eq!(world.client.connections(), 0);
    }
}

#[test]
fn server_that_has_forgotten_a_connection_resets_it() {
    let (mut world, certificates) = world();
    let client = world.connected(&client_tls(&certificates, false));
    world.run_for(Duration::from_millis(50));
    let Some(Served::Established(key, _)) = world.served.first().cloned() else {
        panic!("{:?}", world.served);
    };
    world.server.forget(key);
    world.ask(client, &query(1), 1).unwrap();
    world.run_for(Duration::from_millis(50));
    assert_eq!(world.lost(client), Some(LostReason::StatelessReset));
}

#[test]
fn idle_connection_times_out_unless_it_is_kept_alive() {
    for keep_alive in [None, Some(Duration::from_secs(3))] {
        let certificates = certificates();
        let options = QuicClientOptions {
            keep_alive,
            ..client_options(ClientProtocol::Doq)
        };
        let server = server_options(ServerProtocol::Doq);
        let mut world = World::new(&certificates, options, server);
        let client = world.connected(&client_tls(&certificates, false));
        world.run_for(Duration::from_secs(25));
        let expected = keep_alive.is_none().then_some(LostReason::IdleTimeout);
        assert_eq!(world.lost(client), expected);
    }
}

#[test]
fn certificate_that_is_not_trusted_is_named() {
    let (mut world, _) = world();
    let client = world.connect(&client_tls(&certificates(), false));
    world.run_until(|world| world.lost(client).is_some());
    let Some(LostReason::Tls(crate::tls::TlsFailure::Certificate(fault, reason))) =
        world.lost(client)
    else {
        panic!("{:?}", world.lost(client));
    };
    assert_eq!(fault, crate::tls::CertificateFault::UnknownIssuer);
    assert!(!reason.is_empty());
    world.run_for(Duration::from_secs(5));
    assert!(
        world
            .served
            .iter()
            .any(|served| matches!(served, Served::Lost(_, LostReason::Tls(_)))),
        "{:?}",
        world.served
    );
}

#[test]
fn same_seeds_give_the_same_instants() {
    let run = || {
        let (mut world, certificates) = world();
        world.weather = Weather {
            loss: 20,
            duplication: 0,
            jitter_us: 3_000,
            corruption: 0,
        };
        let client = world.connected(&client_tls(&certificates, false));
        for token in 0..50 {
            world.ask(client, &query(token), token).unwrap();
            world.run_for(Duration::from_millis(3));
        }
        world.run_until(|world| world.messages(client).len() == 50);
        (world.now, world.sequence)
    };
    assert_eq!(run(), run());
}
