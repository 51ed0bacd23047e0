//! Peers and networks that do anything at all.

use super::*;
use crate::doh::{DohRequest, Method};
use proptest::prelude::*;

/// Both protocols, as seen by both sides.
fn worlds() -> [(World, Certificates); 2] {
    let request = DohRequest::new(Method::Post, "https://dns.example/dns-query", &[]);
    let path = "/dns-query".into();
    let protocols = [
        (ClientProtocol::Doq, ServerProtocol::Doq),
        (
            ClientProtocol::Http3(Arc::new(request.unwrap())),
            ServerProtocol::Http3 { path },
        ),
    ];
    protocols.map(|(client, server)| {
        let certificates = certificates();
        let (client, server) = (client_options(client), server_options(server));
        (World::new(&certificates, client, server), certificates)
    })
}

#[test]
fn datagrams_that_are_harmed_under_way_are_as_good_as_lost() {
    for (mut world, certificates) in worlds() {
        world.weather.corruption = 60;
        let client = world.connected(&client_tls(&certificates, false));
        for token in 0..300 {
            while world.ask(client, &query(token), token) == Err(Blocked::Streams) {
                world.run_for(Duration::from_millis(10));
            }
        }
        world.run_until(|world| world.messages(client).len() >= 300);
        let mut tokens = world.messages(client);
        tokens.sort_unstable();
        assert_eq!(tokens, (0..300).collect::<Vec<u32>>());
    }
}

/// Random octets, with a preference for those that mean something.
fn octets() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        prop::collection::vec(0_u8..16, 0..60),
        prop::collection::vec(
            prop::sample::select(vec![0, 1, 2, 4, 0x40, 0xd9, 0xec]),
            0..60
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn random_datagrams_are_dropped_or_answered_and_harm_nothing(
        datagrams in prop::collection::vec(octets(), 1..20),
        firsts in prop::collection::vec(any::<u8>(), 20),
    ) {
        for (mut world, certificates) in worlds() {
            let client = world.connected(&client_tls(&certificates, false));
            for (datagram, first) in datagrams.iter().zip(&firsts) {
                let mut datagram = datagram.clone();
                // A long header, of every packet type, and version 1, which is looked into.
                datagram.splice(0..0, [0xc0 | first, 0, 0, 0, 1]);
                world.send(true, client, &datagram);
                world.send(false, client, &datagram);
                datagram.drain(1..5);
                datagram.resize(1_200, 0);
                world.send(true, client, &datagram);
                world.send(false, client, &datagram);
            }
            world.run_for(Duration::from_millis(100));
            world.ask(client, &query(1), 1).unwrap();
            world.run_until(|world| world.messages(client) == [1]);
        }
    }

    #[test]
    fn random_responses_end_each_exchange_once_or_the_connection(
        responses in prop::collection::vec(octets(), 1..8),
    ) {
        for (mut world, certificates) in worlds() {
            world.responds = false;
            let client = world.connected(&client_tls(&certificates, false));
            for token in 0..responses.len() as u32 {
                world.ask(client, &query(token), token).unwrap();
            }
            world.run_for(Duration::from_millis(50));
            let queries: Vec<_> = world.served.iter().filter_map(|served| match served {
                Served::Query { key, stream, .. } => Some((*key, *stream)),
                _ => None,
            }).collect();
            for ((key, stream), response) in queries.into_iter().zip(&responses) {
                world.server.respond_raw(key, stream, response);
            }
            world.run_for(Duration::from_secs(1));
            let mut ended: Vec<u32> = world.seen[client].iter().filter_map(|seen| match seen {
                Seen::Message(token, _) | Seen::Ended(token, _) => Some(*token),
                _ => None,
            }).collect();
            let ends = ended.len();
            ended.sort_unstable();
            ended.dedup();
            prop_assert_eq!(ended.len(), ends, "twice");
            prop_assert!(ends == responses.len() || world.lost(client).is_some());
        }
    }

    #[test]
    fn random_requests_are_answered_or_end_the_connection(request in octets()) {
        for (mut world, certificates) in worlds() {
            let client = world.connected(&client_tls(&certificates, false));
            let key = world.keys[client];
            world.client.request_raw(key, &request, 1);
            world.run_for(Duration::from_secs(1));
            let seen = &world.seen[client];
            prop_assert!(seen.len() > 1 || matches!(
                world.served.last(),
                Some(Served::Query { .. } | Served::Refused(..))
            ), "{:?}", world.served);
        }
    }
}
