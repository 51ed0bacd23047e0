//! DNS over HTTPS with HTTP/3 between our client and our server.

use super::*;
use crate::doh::{DohRequest, Method};
use crate::http3::ErrorCode;

fn world_of(method: Method) -> (World, Certificates) {
    let certificates = certificates();
    let request = DohRequest::new(method, "https://dns.example/dns-query", &[]).unwrap();
    let world = World::new(
        &certificates,
        client_options(ClientProtocol::Http3(Arc::new(request))),
        server_options(ServerProtocol::Http3 {
            path: "/dns-query".into(),
        }),
    );
    (world, certificates)
}

fn world() -> (World, Certificates) {
    world_of(Method::Post)
}

/// The last query that the server has seen.
fn last_query(world: &World) -> (ConnectionKey, u64) {
    let query = world.served.iter().rev().find_map(|served| match served {
        Served::Query { key, stream, .. } => Some((*key, *stream)),
        _ => None,
    });
    query.unwrap()
}

#[test]
fn queries_are_answered_by_get_and_by_post() {
    for method in [Method::Get, Method::Post] {
        let (mut world, certificates) = world_of(method);
        let client = world.connected(&client_tls(&certificates, false));
        for number in 0..5 {
            world.ask(client, &query(number), number + 100).unwrap();
        }
        world.run_until(|world| world.messages(client).len() == 5);
        for number in 0..5 {
            let mut expected = response_to(&query(number));
            expected[..2].fill(0);
            assert!(world.seen[client].contains(&Seen::Message(number + 100, expected)));
        }
    }
}

#[test]
fn nothing_is_lost_and_nothing_comes_twice_over_a_bad_network() {
    for seed in 1..6_u64 {
        let (mut world, certificates) = world_of(match seed % 2 {
            0 => Method::Get,
            _ => Method::Post,
        });
        everything_comes_once_over_a_bad_network(&mut world, &certificates, seed);
    }
}

#[test]
fn requests_in_the_first_flight_are_answered_or_sent_again() {
    for is_rejected in [false, true] {
        let (mut world, certificates) = world();
        let tls = client_tls(&certificates, true);
        let first = world.connected(&tls);
        world.run_for(Duration::from_millis(50));
        if is_rejected {
            // The server is another one, which does not know the session.
            let protocol = ServerProtocol::Http3 {
                path: "/dns-query".into(),
            };
            world.server =
                QuicServer::new(&server_tls(&certificates), server_options(protocol)).unwrap();
        }
        let second = world.reconnect(&tls, first);
        world.ask(second, &query(1), 1).unwrap();
        world.run_until(|world| world.messages(second) == [1]);
        let expected = match is_rejected {
            true => EarlyData::Rejected,
            false => EarlyData::Accepted,
        };
        world.run_for(Duration::from_millis(50));
        assert!(world.seen[second].iter().any(|seen| matches!(
            seen,
            Seen::Established(established) if established.handshake.early_data == expected
        )));
        world.ask(second, &query(2), 2).unwrap();
        world.run_until(|world| world.messages(second) == [1, 2]);
    }
}

#[test]
fn rfc9114_5_2_goaway_lets_open_requests_end_and_takes_no_new_ones() {
    let (mut world, certificates) = world();
    let client = world.connected(&client_tls(&certificates, false));
    world.responds = false;
    world.ask(client, &query(1), 1).unwrap();
    world.run_for(Duration::from_millis(50));
    let (key, stream) = last_query(&world);
    world.server.go_away(key);
    // On its way while GOAWAY is.
    world.flush();
    world.ask(client, &query(2), 2).unwrap();
    world.run_for(Duration::from_millis(50));
    let seen = [Seen::GoingAway, Seen::Ended(2, ExchangeEnd::NotProcessed)];
    assert_eq!(world.seen[client][1..], seen);
    assert_eq!(world.ask(client, &query(3), 3), Err(Blocked::GoingAway));
    world
        .server
        .respond(key, stream, &response_to(&query(1)), None);
    world.run_for(Duration::from_millis(50));
    assert_eq!(world.messages(client), [1]);
    assert_eq!(world.lost(client), None);
}

#[test]
fn rfc8484_4_2_1_statuses_end_exchanges_and_not_connections() {
    let (mut world, certificates) = world();
    let client = world.connected(&client_tls(&certificates, false));
    world.responds = false;
    for status in [429, 503] {
        world.ask(client, &query(1), status).unwrap();
        world.run_for(Duration::from_millis(50));
        let (key, stream) = last_query(&world);
        assert!(world.server.respond_status(key, stream, status as u16));
        world.run_for(Duration::from_millis(50));
        let ended = Seen::Ended(status, ExchangeEnd::HttpStatus(status as u16));
        assert_eq!(world.seen[client].last(), Some(&ended));
    }
    assert_eq!(world.lost(client), None);
}

#[test]
fn request_for_another_path_is_refused() {
    let certificates = certificates();
    let request = DohRequest::new(Method::Get, "https://dns.example/other", &[]).unwrap();
    let mut world = World::new(
        &certificates,
        client_options(ClientProtocol::Http3(Arc::new(request))),
        server_options(ServerProtocol::Http3 {
            path: "/dns-query".into(),
        }),
    );
    let client = world.connected(&client_tls(&certificates, false));
    world.ask(client, &query(1), 1).unwrap();
    world.run_for(Duration::from_millis(50));
    let Some(&Served::Refused(key, stream, 404)) = world.served.last() else {
        panic!("{:?}", world.served);
    };
    world.server.respond_status(key, stream, 404);
    world.run_for(Duration::from_millis(50));
    assert!(world.seen[client].contains(&Seen::Ended(1, ExchangeEnd::HttpStatus(404))));
}

#[test]
fn rfc9114_4_1_1_rejected_request_is_not_processed_and_another_reset_is_a_reset() {
    let (mut world, certificates) = world();
    let client = world.connected(&client_tls(&certificates, false));
    world.responds = false;
    let rejected = ErrorCode::REQUEST_REJECTED.0;
    let cancelled = ErrorCode::REQUEST_CANCELLED.0;
    for (code, end) in [
        (rejected, ExchangeEnd::NotProcessed),
        (cancelled, ExchangeEnd::Reset(cancelled)),
    ] {
        world.ask(client, &query(1), 1).unwrap();
        world.run_for(Duration::from_millis(50));
        let (key, stream) = last_query(&world);
        assert!(world.server.reset_stream(key, stream, code));
        world.run_for(Duration::from_millis(50));
        assert_eq!(world.seen[client].last(), Some(&Seen::Ended(1, end)));
    }
}

#[test]
fn rfc9114_4_1_1_cancelled_request_is_not_answered() {
    let (mut world, certificates) = world();
    let client = world.connected(&client_tls(&certificates, false));
    world.responds = false;
    world.ask(client, &query(1), 1).unwrap();
    world.run_for(Duration::from_millis(50));
    assert!(world.client.cancel(world.now, world.keys[client], 1));
    world.run_for(Duration::from_millis(50));
    let (key, stream) = last_query(&world);
    assert_eq!(world.served.last(), Some(&Served::Cancelled(key, stream)));
    assert!(!world.server.respond(key, stream, &query(1), None));
    assert!(world.messages(client).is_empty());
}

#[test]
fn late_response_to_an_abandoned_request_is_seen() {
    let (mut world, certificates) = world();
    let client = world.connected(&client_tls(&certificates, false));
    world.responds = false;
    world.ask(client, &query(7), 7).unwrap();
    world.run_for(Duration::from_millis(50));
    assert!(world.client.abandon(world.now, world.keys[client], 7));
    let (key, stream) = last_query(&world);
    world.server.respond(key, stream, &query(7), None);
    world.run_for(Duration::from_millis(50));
    assert_eq!(world.seen[client][1..], [Seen::Ended(7, ExchangeEnd::Late)]);
}

/// What a client sees of a server that sends `octets` on the stream of a request.
fn seen_after(octets: &[u8]) -> Vec<Seen> {
    let (mut world, certificates) = world();
    let client = world.connected(&client_tls(&certificates, false));
    world.responds = false;
    world.ask(client, &query(1), 1).unwrap();
    world.run_for(Duration::from_millis(50));
    let (key, stream) = last_query(&world);
    world.server.respond_raw(key, stream, octets);
    world.run_for(Duration::from_secs(1));
    world.seen[client][1..].to_vec()
}

#[test]
fn rfc9114_8_what_breaks_the_protocol_closes_the_connection() {
    for (octets, code) in [
        (&[0x00, 0x00][..], ErrorCode::FRAME_UNEXPECTED),
        (&[0x04, 0x00], ErrorCode::FRAME_UNEXPECTED),
        (&[0x01, 0x05, 0x00], ErrorCode::FRAME_ERROR),
        (&[0x05, 0x01, 0x00], ErrorCode::ID_ERROR),
        (
            &[0x01, 0x03, 0x01, 0x00, 0x80],
            ErrorCode::QPACK_DECOMPRESSION_FAILED,
        ),
    ] {
        let lost = LostReason::Application {
            code: code.0,
            by: By::Us,
        };
        let expected = [Seen::Ended(1, ExchangeEnd::Malformed), Seen::Lost(lost)];
        assert_eq!(seen_after(octets), expected, "{octets:?}");
    }
}

#[test]
fn rfc9114_4_1_2_malformed_response_ends_one_exchange() {
    for octets in [&[][..], &[0x01, 0x02, 0x00, 0x00]] {
        let expected = [Seen::Ended(1, ExchangeEnd::Malformed)];
        assert_eq!(seen_after(octets), expected);
    }
}

#[test]
fn response_without_end_is_given_up_with_its_status() {
    let (mut world, certificates) = world();
    let client = world.connected(&client_tls(&certificates, false));
    world.responds = false;
    world.ask(client, &query(1), 1).unwrap();
    world.run_for(Duration::from_millis(50));
    let (key, stream) = last_query(&world);
    // `:status: 500`, and a body of a gigabyte.
    let head = [
        0x01, 0x04, 0x00, 0x00, 0xff, 0x08, 0x00, 0xc0, 0, 0, 0, 0x40, 0, 0, 0,
    ];
    assert!(world.server.write_raw(key, stream, &head));
    while world.seen[client].len() < 2 {
        assert!(world.server.write_raw(key, stream, &[0; 10_000]));
        world.run_for(Duration::from_millis(100));
    }
    let ended = Seen::Ended(1, ExchangeEnd::HttpStatus(500));
    assert_eq!(world.seen[client][1..], [ended]);
    assert_eq!(
        world.served.last(),
        Some(&Served::Cancelled(key, stream)),
        "the server learns of it"
    );
}
