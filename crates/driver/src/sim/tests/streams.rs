//! Streams: opening, order, windows, ends.

use proptest::prelude::*;

use super::*;
use crate::sim::{Outage, Stall};
use crate::{Close, SocketError};

const RESET: Event = Event::Failed(SocketError::Reset);

fn stream_bytes(driver: &mut SimDriver) -> Vec<u8> {
    deliveries(driver)
        .into_iter()
        .flat_map(|delivery| delivery.bytes)
        .collect()
}

/// Octets that mostly identify their position.
fn pattern(octets: usize) -> Vec<u8> {
    (0..octets).map(|position| (position % 251) as u8).collect()
}

#[test]
fn server_accepts_after_one_delay_and_client_is_connected_after_two() {
    let mut pair = Pair::new(five_ms());
    let listener = pair.server.listen_tcp(&serving(53)).unwrap();
    let client = pair.client.connect_tcp(&towards(53)).unwrap();
    let peer = pair.client.local_addr(client).unwrap();
    assert_eq!(pair.client.send_bytes(client, b"early"), Ok(0));
    pair.world.advance_to(Instant::from_nanos(4_999_999));
    assert!(events(&mut pair.server).is_empty());
    pair.world.advance_to(at_ms(5));
    let accepted = events(&mut pair.server);
    assert_eq!(accepted.len(), 1);
    assert_eq!(accepted[0].1, Event::Accepted { listener, peer });
    assert_eq!(
        pair.server.local_addr(accepted[0].0).unwrap(),
        server_at(53)
    );
    pair.world.advance_to(Instant::from_nanos(9_999_999));
    assert!(events(&mut pair.client).is_empty());
    pair.world.advance_to(at_ms(10));
    let connected = [(client, Event::Connected), (client, Event::Writable)];
    assert_eq!(events(&mut pair.client), connected);
}

#[test]
fn octets_arrive_once_in_order_and_exactly_one_delay_later() {
    let (mut pair, client, server) = Pair::tcp(five_ms());
    let sent = pattern(100_000);
    assert_eq!(pair.client.send_bytes(client, &sent[..70_000]), Ok(70_000));
    assert_eq!(pair.client.send_bytes(client, &sent[70_000..]), Ok(30_000));
    pair.world.advance_to(at_ms(15));
    let received = deliveries(&mut pair.server);
    let sizes: Vec<_> = received
        .iter()
        .map(|delivery| delivery.bytes.len())
        .collect();
    assert_eq!(sizes, [65_536, 34_464]);
    assert!(
        received
            .iter()
            .all(|d| (d.socket, d.at) == (server, at_ms(15)))
    );
    assert_eq!(
        received
            .into_iter()
            .flat_map(|d| d.bytes)
            .collect::<Vec<_>>(),
        sent
    );
}

#[test]
fn lost_segment_arrives_a_timeout_later_and_holds_up_all_behind_it() {
    let outages = vec![Outage {
        start: at_ms(10),
        length: ms(250),
    }];
    let (mut pair, client, _) = Pair::tcp(WorldConfig {
        outages,
        ..five_ms()
    });
    pair.client.send_bytes(client, b"first").unwrap();
    pair.world.advance_to(at_ms(300));
    pair.client.send_bytes(client, b"second").unwrap();
    // Lost at 10 ms and 210 ms, received at 610 ms.
    pair.world.advance_to(Instant::from_nanos(614_999_999));
    assert!(events(&mut pair.server).is_empty());
    pair.world.advance_to(at_ms(615));
    assert_eq!(stream_bytes(&mut pair.server), b"firstsecond");
    assert_eq!(pair.world.network_stats().segments_lost, 2);
}

#[test]
fn end_of_a_stream_does_not_overtake_its_octets() {
    for how in [Close::Graceful, Close::Reset] {
        let outages = vec![Outage {
            start: at_ms(10),
            length: ms(10),
        }];
        let (mut pair, client, server) = Pair::tcp(WorldConfig {
            outages,
            ..five_ms()
        });
        pair.client.send_bytes(client, b"late").unwrap();
        pair.world.advance_to(at_ms(30));
        pair.client.close(client, how);
        pair.world.advance_to(at_ms(214));
        assert!(events(&mut pair.server).is_empty());
        pair.world.advance_to(at_ms(215));
        let end = if how == Close::Reset {
            RESET
        } else {
            Event::EndOfStream
        };
        assert_eq!(
            events(&mut pair.server),
            [(server, Event::Bytes), (server, end)]
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn stream_keeps_every_octet_and_their_order_under_every_fault(
        seed: u64,
        writes in prop::collection::vec(1usize..40_000, 1..12),
    ) {
        let mut pair = Pair::new(rough(seed));
        pair.server.listen_tcp(&serving(53)).unwrap();
        let client = pair.client.connect_tcp(&towards(53)).unwrap();
        let sent = pattern(writes.iter().sum());
        let mut received = Vec::new();
        let (mut start, mut ends) = (0, 0);
        let mut writes = writes.into_iter();
        for second in 1..200 {
            pair.world.advance_to(at_ms(second * 1_000));
            events(&mut pair.client);
            if let Some(octets) = writes.next() {
                start += pair.client.send_bytes(client, &sent[start..start + octets]).unwrap();
            } else if start < sent.len() {
                start += pair.client.send_bytes(client, &sent[start..]).unwrap();
            } else {
                pair.client.close(client, Close::Graceful);
            }
            for delivery in deliveries(&mut pair.server) {
                prop_assert_eq!(ends, 0, "nothing comes after the end");
                ends += u32::from(delivery.event == Event::EndOfStream);
                received.extend(delivery.bytes);
            }
        }
        prop_assert_eq!(ends, 1);
        prop_assert!(received == sent);
    }
}

#[test]
fn connecting_where_nobody_listens_is_refused_after_a_round_trip() {
    let mut pair = Pair::new(five_ms());
    let client = pair.client.connect_tcp(&towards(53)).unwrap();
    pair.world.advance_to(Instant::from_nanos(9_999_999));
    assert!(events(&mut pair.client).is_empty());
    pair.world.advance_to(at_ms(10));
    let refused = SocketError::Refused;
    assert_eq!(events(&mut pair.client), [(client, Event::Failed(refused))]);
    assert_eq!(pair.client.send_bytes(client, b"q"), Err(refused));
}

#[test]
fn connecting_gives_up_when_no_segment_gets_through() {
    let link = Link {
        loss_share: 1.0,
        ..Link::default()
    };
    let mut pair = Pair::new(WorldConfig {
        link,
        ..WorldConfig::default()
    });
    pair.server.listen_tcp(&serving(53)).unwrap();
    let client = pair.client.connect_tcp(&towards(53)).unwrap();
    // 1 + 2 + 4 + 8 + 16 + 32 + 64 s, as Linux.
    pair.world.advance_to(at_ms(126_999));
    assert!(events(&mut pair.client).is_empty());
    pair.world.advance_to(at_ms(127_000));
    let timed_out = Event::Failed(SocketError::TimedOut);
    assert_eq!(events(&mut pair.client), [(client, timed_out)]);
}

#[test]
fn open_stream_times_out_when_the_network_is_gone() {
    let outages = vec![Outage {
        start: at_ms(20),
        length: ms(10_000_000),
    }];
    let (mut pair, client, _) = Pair::tcp(WorldConfig {
        outages,
        ..five_ms()
    });
    pair.world.advance_to(at_ms(20));
    assert_eq!(pair.client.send_bytes(client, b"q"), Ok(1));
    assert_eq!(pair.client.send_bytes(client, b"r"), Ok(1));
    pair.world.advance_to(at_ms(900_000));
    assert!(events(&mut pair.client).is_empty());
    pair.world.advance_to(at_ms(1_000_000));
    let timed_out = Event::Failed(SocketError::TimedOut);
    assert_eq!(events(&mut pair.client), [(client, timed_out)]);
    assert!(events(&mut pair.server).is_empty());
}

#[test]
fn graceful_close_ends_the_stream_behind_its_octets() {
    let (mut pair, client, server) = Pair::tcp(five_ms());
    pair.client.send_bytes(client, b"last words").unwrap();
    pair.client.close(client, Close::Graceful);
    pair.world.advance_to(at_ms(15));
    let expected = [(server, Event::Bytes), (server, Event::EndOfStream)];
    assert_eq!(events(&mut pair.server), expected);
    assert_eq!(pair.server.send_bytes(server, b"too late"), Ok(8));
    pair.world.advance_to(at_ms(25));
    assert_eq!(
        events(&mut pair.server),
        [(server, RESET)],
        "the client no longer reads"
    );
    assert_eq!(
        pair.server.send_bytes(server, b"?"),
        Err(SocketError::Reset)
    );
}

#[test]
fn reset_breaks_the_stream_of_the_other_end() {
    let (mut pair, client, server) = Pair::tcp(five_ms());
    pair.server.close(server, Close::Reset);
    pair.world.advance_to(at_ms(15));
    assert_eq!(events(&mut pair.client), [(client, RESET)]);
    assert_eq!(
        pair.client.send_bytes(client, b"q"),
        Err(SocketError::Reset)
    );
    pair.client.close(client, Close::Graceful);
    pair.world.advance_to(at_ms(1_000));
    assert!(events(&mut pair.client).is_empty() && events(&mut pair.server).is_empty());
}

#[test]
fn closing_with_octets_unread_resets() {
    let (mut pair, client, server) = Pair::tcp(five_ms());
    pair.client.send_bytes(client, b"never read").unwrap();
    pair.world.advance_to(at_ms(15));
    pair.server.close(server, Close::Graceful);
    pair.world.advance_to(at_ms(20));
    assert_eq!(events(&mut pair.client), [(client, RESET)]);
}

#[test]
fn client_that_gives_up_connecting_leaves_the_server_with_a_reset() {
    let mut pair = Pair::new(five_ms());
    pair.server.listen_tcp(&serving(53)).unwrap();
    let client = pair.client.connect_tcp(&towards(53)).unwrap();
    pair.client.close(client, Close::Graceful);
    pair.world.advance_to(at_ms(15));
    let seen: Vec<_> = events(&mut pair.server)
        .into_iter()
        .map(|(_, event)| event)
        .collect();
    assert!(
        matches!(seen[..], [Event::Accepted { .. }, RESET]),
        "{seen:?}"
    );
    assert!(events(&mut pair.client).is_empty());
}

#[test]
fn closed_listener_resets_what_was_not_accepted_and_refuses_the_rest() {
    let mut pair = Pair::new(five_ms());
    let listener = pair.server.listen_tcp(&serving(53)).unwrap();
    let early = pair.client.connect_tcp(&towards(53)).unwrap();
    pair.world.advance_to(at_ms(5));
    pair.server.close(listener, Close::Graceful);
    let late = pair.client.connect_tcp(&towards(53)).unwrap();
    pair.world.advance_to(at_ms(15));
    let expected = [
        (early, Event::Connected),
        (early, RESET),
        (late, Event::Failed(SocketError::Refused)),
    ];
    let mut seen = events(&mut pair.client);
    seen.sort_by_key(|(socket, _)| socket.index);
    assert_eq!(seen, expected);
    assert!(events(&mut pair.server).is_empty());
}

#[test]
fn full_window_blocks_until_the_receiver_has_read() {
    let config = WorldConfig {
        stream_window_octets: 1_000,
        ..five_ms()
    };
    let (mut pair, client, server) = Pair::tcp(config);
    let sent = pattern(1_500);
    assert_eq!(pair.client.send_bytes(client, &sent), Ok(1_000));
    assert_eq!(pair.client.send_bytes(client, &sent[1_000..]), Ok(0));
    pair.world.advance_to(at_ms(100));
    assert!(events(&mut pair.client).is_empty(), "arrived is not read");
    assert_eq!(stream_bytes(&mut pair.server), sent[..1_000]);
    pair.world.advance_to(at_ms(105));
    assert_eq!(events(&mut pair.client), [(client, Event::Writable)]);
    assert_eq!(pair.client.send_bytes(client, &sent[1_000..]), Ok(500));
    pair.world.advance_to(at_ms(110));
    assert_eq!(stream_bytes(&mut pair.server), sent[1_000..]);
    assert_eq!(
        pair.server.send_bytes(server, &sent[..1_000]),
        Ok(1_000),
        "each its own window"
    );
    pair.world.advance_to(at_ms(200));
    let seen = events(&mut pair.client);
    assert_eq!(
        seen,
        [(client, Event::Bytes)],
        "writable only after having blocked"
    );
}

#[test]
fn receiver_that_stops_reading_fills_the_window_and_gets_all_when_it_resumes() {
    let config = WorldConfig {
        stream_window_octets: 1_000,
        ..five_ms()
    };
    let (mut pair, client, server) = Pair::tcp(config);
    pair.server.pause_reading(server, true);
    let sent = pattern(2_000);
    assert_eq!(pair.client.send_bytes(client, &sent), Ok(1_000));
    pair.world.advance_to(at_ms(5_000));
    assert!(events(&mut pair.server).is_empty() && events(&mut pair.client).is_empty());
    pair.server.pause_reading(server, false);
    assert_eq!(stream_bytes(&mut pair.server), sent[..1_000]);
    pair.world.advance_to(at_ms(5_005));
    assert_eq!(events(&mut pair.client), [(client, Event::Writable)]);
}

#[test]
fn stall_holds_a_stream_and_releases_it_in_order() {
    let stalls = vec![Stall {
        address: SERVER,
        start: at_ms(15),
        length: ms(1_000),
    }];
    let (mut pair, client, server) = Pair::tcp(WorldConfig {
        stalls,
        ..five_ms()
    });
    pair.client.send_bytes(client, b"one ").unwrap();
    pair.world.advance_to(at_ms(700));
    pair.client.send_bytes(client, b"two").unwrap();
    pair.world.advance_to(at_ms(1_010));
    pair.client.close(client, Close::Graceful);
    assert!(events(&mut pair.server).is_empty());
    pair.world.advance_to(at_ms(1_015));
    let seen = deliveries(&mut pair.server);
    assert_eq!(seen[0].bytes, b"one two");
    assert_eq!(
        (seen[1].socket, seen[1].event),
        (server, Event::EndOfStream)
    );
}

#[test]
fn one_local_port_serves_many_peers_but_each_only_once() {
    let mut pair = Pair::new(five_ms());
    let local = Some(SocketAddr::new(CLIENT, 40_000));
    let to = |port| SocketSpec {
        local,
        ..towards(port)
    };
    let first = pair.client.connect_tcp(&to(53)).unwrap();
    assert!(pair.client.connect_tcp(&to(54)).is_ok());
    assert_eq!(
        pair.client.connect_tcp(&to(53)),
        Err(SocketError::NoLocalPort)
    );
    pair.client.close(first, Close::Reset);
    assert!(pair.client.connect_tcp(&to(53)).is_ok());
}

#[test]
fn local_ports_run_out_for_one_peer() {
    let mut pair = Pair::new(five_ms());
    for _ in 0..28_232 {
        pair.client.connect_tcp(&towards(53)).unwrap();
    }
    assert_eq!(
        pair.client.connect_tcp(&towards(53)),
        Err(SocketError::NoLocalPort)
    );
    assert!(pair.client.connect_tcp(&towards(853)).is_ok());
}

#[test]
fn nothing_of_a_closed_stream_reaches_the_next_owner_of_its_place() {
    let (mut pair, client, server) = Pair::tcp(five_ms());
    pair.server.send_bytes(server, b"unread").unwrap();
    pair.world.advance_to(at_ms(12));
    pair.server.send_bytes(server, b"under way").unwrap();
    pair.world.advance_to(at_ms(15));
    pair.client.close(client, Close::Reset);
    let next = pair.client.connect_tcp(&towards(853)).unwrap();
    assert_eq!(next.index, client.index);
    assert_ne!(next.generation, client.generation);
    pair.world.advance_to(at_ms(24));
    assert!(events(&mut pair.client).is_empty());
    assert_eq!(
        pair.client.send_bytes(client, b"q"),
        Err(SocketError::Other(libc::EBADF))
    );
}

#[test]
fn dropped_driver_closes_its_sockets() {
    let (mut pair, client, _) = Pair::tcp(five_ms());
    pair.server = pair.world.endpoint(SERVER);
    pair.world.advance_to(at_ms(15));
    assert_eq!(events(&mut pair.client), [(client, Event::EndOfStream)]);
    assert!(
        pair.server.listen_tcp(&serving(53)).is_ok(),
        "the address is free again"
    );
}
