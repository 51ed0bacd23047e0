//! Datagram sockets: delay, faults, addresses.

use super::*;
use crate::sim::{Outage, Stall};
use crate::{Close, SocketError};

/// Sends `count` numbered datagrams 1 ms apart; their numbers in order of arrival.
fn arrivals(config: WorldConfig, count: u32) -> (Vec<u32>, Pair) {
    let (mut pair, client, _) = Pair::udp(config);
    let mut numbers = Vec::new();
    for number in 0..count + 1_000 {
        pair.world.advance_to(at_ms(number.into()));
        for payload in payloads(&mut pair.server) {
            numbers.push(u32::from_be_bytes(payload.try_into().unwrap()));
        }
        if number < count {
            send(&mut pair.client, client, &number.to_be_bytes());
        }
    }
    (numbers, pair)
}

#[test]
fn datagram_arrives_exactly_one_delay_later_and_its_response_another() {
    let (mut pair, client, server) = Pair::udp(five_ms());
    let from = pair.client.local_addr(client).unwrap();
    send(&mut pair.client, client, b"query");
    pair.world.advance_to(Instant::from_nanos(4_999_999));
    assert!(deliveries(&mut pair.server).is_empty());
    pair.world.advance_to(at_ms(5));
    let expected = Delivery {
        at: at_ms(5),
        socket: server,
        event: Event::Datagrams,
        datagrams: vec![(from, b"query".to_vec())],
        bytes: Vec::new(),
    };
    assert_eq!(deliveries(&mut pair.server), [expected]);

    let mut response = Outgoing::default();
    response.octets.extend_from_slice(b"response");
    response.finish(0, Some(from));
    assert_eq!(pair.server.send_datagrams(server, &response).accepted, 1);
    pair.world.advance_to(at_ms(60_000));
    let answered = deliveries(&mut pair.client);
    assert_eq!(
        answered[0].datagrams,
        [(server_at(53), b"response".to_vec())]
    );
    assert_eq!(answered.len(), 1);
}

#[test]
fn each_direction_has_its_own_link() {
    let config = WorldConfig {
        links_towards: vec![(SERVER, Link::constant(ms(30)))],
        ..five_ms()
    };
    let (mut pair, client, server) = Pair::udp(config);
    let to = pair.client.local_addr(client).unwrap();
    send(&mut pair.client, client, b"q");
    let mut response = outgoing([&b"r"[..]]);
    response.datagrams[0].to = Some(to);
    pair.server.send_datagrams(server, &response);
    pair.world.advance_to(at_ms(5));
    assert_eq!(
        (
            payloads(&mut pair.client).len(),
            payloads(&mut pair.server).len()
        ),
        (1, 0)
    );
    pair.world.advance_to(at_ms(30));
    assert_eq!(payloads(&mut pair.server).len(), 1);
}

#[test]
fn datagrams_of_one_instant_come_in_batches_of_64_in_order() {
    let (mut pair, client, _) = Pair::udp(five_ms());
    let numbers: Vec<u8> = (0..100).collect();
    let accepted = pair
        .client
        .send_datagrams(client, &outgoing(numbers.chunks(1)));
    assert_eq!(accepted.accepted, 100);
    pair.world.advance_to(at_ms(5));
    let batches = deliveries(&mut pair.server);
    let sizes: Vec<_> = batches.iter().map(|batch| batch.datagrams.len()).collect();
    assert_eq!(sizes, [64, 36]);
    let payloads: Vec<u8> = batches
        .iter()
        .flat_map(|batch| &batch.datagrams)
        .map(|(_, octets)| octets[0])
        .collect();
    assert_eq!(payloads, numbers);
    let (sent, received) = (pair.client.stats(), pair.server.stats());
    assert_eq!((sent.send_calls, sent.datagrams_sent), (1, 100));
    assert_eq!(
        (received.receive_calls, received.datagrams_received),
        (2, 100)
    );
}

#[test]
fn share_of_lost_datagrams_is_near_the_one_asked_for_and_counted() {
    let link = Link {
        loss_share: 0.2,
        ..Link::default()
    };
    let (numbers, pair) = arrivals(
        WorldConfig {
            seed: 3,
            link,
            ..five_ms()
        },
        20_000,
    );
    let lost = 20_000 - numbers.len() as u64;
    assert_eq!(lost, pair.world.network_stats().datagrams_lost);
    // Four standard deviations of the binomial distribution are 226.
    assert!(
        (3_774..=4_226).contains(&lost),
        "{lost} of 20000 lost with seed 3"
    );
}

#[test]
fn a_share_of_datagrams_is_overtaken() {
    let link = Link {
        reorder_share: 0.1,
        reorder_delay: ms(7),
        ..Link::default()
    };
    let (numbers, pair) = arrivals(
        WorldConfig {
            seed: 4,
            link,
            ..five_ms()
        },
        1_000,
    );
    assert!(!numbers.is_sorted());
    let overtaken = pair.world.network_stats().datagrams_reordered;
    assert!(
        (60..=140).contains(&overtaken),
        "{overtaken} of 1000 overtaken with seed 4"
    );
    let mut all = numbers;
    all.sort_unstable();
    assert!(all.into_iter().eq(0..1_000), "none is lost or doubled");
}

#[test]
fn a_share_of_datagrams_arrives_twice() {
    let link = Link {
        duplicate_share: 0.1,
        ..Link::default()
    };
    let (numbers, pair) = arrivals(
        WorldConfig {
            seed: 5,
            link,
            ..five_ms()
        },
        1_000,
    );
    let doubled = pair.world.network_stats().datagrams_duplicated;
    assert_eq!(numbers.len() as u64, 1_000 + doubled);
    assert!(
        (60..=140).contains(&doubled),
        "{doubled} of 1000 doubled with seed 5"
    );
}

#[test]
fn jitter_has_the_mean_and_the_bounds_of_its_kind() {
    let cases = [
        (Jitter::Uniform { max: ms(10) }, 5.0, 10.0),
        (Jitter::Exponential { mean: ms(10) }, 10.0, 370.0),
    ];
    for (jitter, mean_ms, max_ms) in cases {
        let link = Link {
            jitter,
            ..Link::constant(ms(5))
        };
        let (mut pair, client, _) = Pair::udp(WorldConfig {
            link,
            ..WorldConfig::default()
        });
        let burst = vec![0; 10_000];
        pair.client
            .send_datagrams(client, &outgoing(burst.chunks(1)));
        let mut total_ms = 0.0;
        for tenths in 0..5_000 {
            pair.world.advance_to(Instant::from_nanos(tenths * 100_000));
            let added_ms = tenths as f64 / 10.0 - 5.0;
            let arrived = payloads(&mut pair.server).len() as f64;
            assert!(
                arrived == 0.0 || (0.0..=max_ms + 0.1).contains(&added_ms),
                "{jitter:?}"
            );
            total_ms += arrived * added_ms;
        }
        let mean = total_ms / 10_000.0;
        assert!(
            (mean - mean_ms).abs() < 0.05 * mean_ms,
            "{jitter:?} has the mean {mean} ms"
        );
    }
}

#[test]
fn outage_loses_what_is_sent_in_it_and_nothing_else() {
    let outages = vec![Outage {
        start: at_ms(100),
        length: ms(50),
    }];
    let (numbers, _) = arrivals(
        WorldConfig {
            outages,
            ..five_ms()
        },
        300,
    );
    assert!(numbers.into_iter().eq((0..100).chain(150..300)));
}

#[test]
fn stall_holds_what_arrives_and_releases_it_in_order_at_its_end() {
    let stalls = vec![Stall {
        address: SERVER,
        start: at_ms(100),
        length: ms(50),
    }];
    let (mut pair, client, _) = Pair::udp(WorldConfig {
        stalls,
        ..five_ms()
    });
    for at in [94, 95, 120, 145] {
        pair.world.advance_to(at_ms(at));
        send(&mut pair.client, client, &[at as u8]);
    }
    pair.world.advance_to(Instant::from_nanos(149_999_999));
    assert_eq!(payloads(&mut pair.server), [[94]]);
    pair.world.advance_to(at_ms(150));
    assert_eq!(payloads(&mut pair.server), [[95], [120], [145]]);
}

#[test]
fn what_was_held_comes_before_what_arrives_as_the_stall_ends() {
    let stalls = vec![Stall {
        address: SERVER,
        start: at_ms(100),
        length: ms(50),
    }];
    let (mut pair, _, _) = Pair::udp(WorldConfig {
        stalls,
        ..five_ms()
    });
    let from = SocketAddr::new(CLIENT, 1_024);
    for at in [150, 140, 120] {
        pair.world
            .inject_datagram(from, server_at(53), &[at as u8], at_ms(at));
    }
    pair.world.advance_to(at_ms(150));
    assert_eq!(payloads(&mut pair.server), [[120], [140], [150]]);
}

#[test]
fn one_stall_may_end_within_another() {
    let stalls = vec![
        Stall {
            address: SERVER,
            start: at_ms(20),
            length: ms(20),
        },
        Stall {
            address: SERVER,
            start: at_ms(0),
            length: ms(30),
        },
    ];
    let (mut pair, client, _) = Pair::udp(WorldConfig {
        stalls,
        ..five_ms()
    });
    send(&mut pair.client, client, b"q");
    pair.world.advance_to(Instant::from_nanos(39_999_999));
    assert!(payloads(&mut pair.server).is_empty());
    pair.world.advance_to(at_ms(40));
    assert_eq!(payloads(&mut pair.server), [b"q"]);
}

#[test]
fn datagram_to_a_port_that_nobody_has_is_refused_after_a_round_trip() {
    let mut pair = Pair::new(five_ms());
    let connected = pair.client.open_udp(&towards(53)).unwrap();
    send(&mut pair.client, connected, b"q");
    pair.world.advance_to(Instant::from_nanos(9_999_999));
    assert!(events(&mut pair.client).is_empty());
    pair.world.advance_to(at_ms(10));
    let refused = (connected, Event::DatagramError(SocketError::Refused));
    assert_eq!(events(&mut pair.client), [refused]);
    assert_eq!(pair.world.network_stats().datagrams_unreachable, 1);

    pair.server.open_udp(&serving(53)).unwrap();
    send(&mut pair.client, connected, b"again");
    pair.world.advance_to(at_ms(15));
    assert_eq!(
        payloads(&mut pair.server),
        [b"again"],
        "the socket goes on working"
    );
}

#[test]
fn socket_without_a_peer_learns_nothing_of_an_unreachable_port() {
    let mut pair = Pair::new(five_ms());
    let open = SocketSpec {
        local: None,
        peer: None,
        shared_port: false,
        fast_open: false,
    };
    let socket = pair.client.open_udp(&open).unwrap();
    let mut query = outgoing([&b"q"[..]]);
    query.datagrams[0].to = Some(server_at(53));
    pair.client.send_datagrams(socket, &query);
    pair.world.advance_to(at_ms(1_000));
    assert!(events(&mut pair.client).is_empty());
}

#[test]
fn connected_socket_receives_from_any_source_and_shows_which() {
    let (mut pair, client, _) = Pair::udp(five_ms());
    let to = pair.client.local_addr(client).unwrap();
    let elsewhere: SocketAddr = "203.0.113.9:53".parse().unwrap();
    pair.world
        .inject_datagram(elsewhere, to, b"forged", at_ms(3));
    pair.world.advance_to(at_ms(3));
    let received = deliveries(&mut pair.client);
    assert_eq!(received[0].datagrams, [(elsewhere, b"forged".to_vec())]);
    assert_eq!((received[0].socket, received[0].at), (client, at_ms(3)));
}

#[test]
fn sending_stops_at_the_first_datagram_that_cannot_go() {
    let (mut pair, client, server) = Pair::udp(five_ms());
    let large = vec![0; 65_508];
    let accepted = pair
        .client
        .send_datagrams(client, &outgoing([b"q", &large[..], b"r"]));
    assert_eq!(accepted.accepted, 1);
    assert_eq!(accepted.error, Some(SocketError::Other(libc::EMSGSIZE)));
    let nowhere = pair.server.send_datagrams(server, &outgoing([&b"r"[..]]));
    assert_eq!(nowhere.error, Some(SocketError::Other(libc::EDESTADDRREQ)));
    let mut other_family = outgoing([&b"r"[..]]);
    other_family.datagrams[0].to = Some("[2001:db8::1]:53".parse().unwrap());
    let unreachable = pair.server.send_datagrams(server, &other_family);
    assert_eq!(unreachable.error, Some(SocketError::Unreachable));
}

#[test]
fn local_ports_run_out_for_one_address_and_are_free_again_after_a_close() {
    let mut pair = Pair::new(five_ms());
    let mut sockets = Vec::new();
    for _ in 0..28_232 {
        sockets.push(pair.client.open_udp(&towards(53)).unwrap());
    }
    let error = pair.client.open_udp(&towards(53)).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    let elsewhere = Some("192.0.2.2:0".parse().unwrap());
    pair.client
        .open_udp(&SocketSpec {
            local: elsewhere,
            ..towards(53)
        })
        .unwrap();
    let freed = pair.client.local_addr(sockets[100]).unwrap();
    pair.client.close(sockets[100], Close::Graceful);
    let socket = pair.client.open_udp(&towards(53)).unwrap();
    assert_eq!(pair.client.local_addr(socket).unwrap(), freed);
}

#[test]
fn taken_address_cannot_be_bound_again_unless_both_share_it() {
    let mut pair = Pair::new(five_ms());
    pair.server.open_udp(&serving(53)).unwrap();
    let shared = SocketSpec {
        shared_port: true,
        fast_open: false,
        ..serving(53)
    };
    for spec in [serving(53), shared] {
        let error = pair.server.open_udp(&spec).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    }
}

#[test]
fn sockets_that_share_a_port_divide_the_flows_and_keep_to_the_division() {
    let mut pair = Pair::new(five_ms());
    let mut other = pair.world.endpoint(SERVER);
    let shared = SocketSpec {
        shared_port: true,
        fast_open: false,
        ..serving(53)
    };
    pair.server.open_udp(&shared).unwrap();
    other.open_udp(&shared).unwrap();
    let clients: Vec<_> = (0..200)
        .map(|_| pair.client.open_udp(&towards(53)).unwrap())
        .collect();
    let mut divisions = Vec::new();
    for round in 1..=2 {
        for (number, client) in clients.iter().enumerate() {
            send(&mut pair.client, *client, &[number as u8]);
        }
        pair.world.advance_to(at_ms(5 * round));
        divisions.push((payloads(&mut pair.server), payloads(&mut other)));
    }
    assert_eq!(divisions[0], divisions[1]);
    let (one, two) = &divisions[0];
    assert_eq!(one.len() + two.len(), 200);
    assert!(
        one.len() > 50 && two.len() > 50,
        "{} and {}",
        one.len(),
        two.len()
    );
}

#[test]
fn nothing_reaches_the_next_owner_of_a_sockets_place() {
    let (mut pair, client, _) = Pair::udp(five_ms());
    let to = pair.client.local_addr(client).unwrap();
    pair.world
        .inject_datagram(server_at(53), to, b"late", at_ms(1));
    pair.world
        .inject_datagram(server_at(53), to, b"later", at_ms(2));
    pair.world.advance_to(at_ms(1));
    pair.client.close(client, Close::Graceful);
    let next = pair.client.open_udp(&towards(53)).unwrap();
    assert_eq!(next.index, client.index);
    assert_ne!(next.generation, client.generation);
    pair.world.advance_to(at_ms(3));
    assert!(events(&mut pair.client).is_empty());
    let accepted = pair.client.send_datagrams(client, &outgoing([&b"q"[..]]));
    assert_eq!(accepted.error, Some(SocketError::Other(libc::EBADF)));
    assert!(pair.client.local_addr(client).is_err());
    pair.client.close(client, Close::Graceful);
    assert!(
        pair.client.local_addr(next).is_ok(),
        "closing twice closes nothing else"
    );
}

#[test]
fn socket_without_an_address_has_that_of_its_endpoint() {
    let mut pair = Pair::new(five_ms());
    let any = SocketSpec {
        local: Some("0.0.0.0:53".parse().unwrap()),
        ..serving(53)
    };
    let server = pair.server.open_udp(&any).unwrap();
    assert_eq!(pair.server.local_addr(server).unwrap(), server_at(53));
    let client = pair.client.open_udp(&towards(53)).unwrap();
    assert_eq!(
        pair.client.local_addr(client).unwrap(),
        SocketAddr::new(CLIENT, 32_768)
    );
    let six = SocketSpec {
        peer: Some("[2001:db8::1]:53".parse().unwrap()),
        ..towards(53)
    };
    let error = pair.client.open_udp(&six).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrNotAvailable);
    assert_eq!(pair.client.connect_tcp(&six), Err(SocketError::Unreachable));
}
