//! Memory of an idle client, and of a server, estimated and actual.

use super::*;
use crate::doh::{DohRequest, Method};

/// Bytes of heap that a client holds after a few queries, when all is acknowledged; `at_once` of
/// them were open at the same time. Its ticket is among them.
fn idle_bytes(client: ClientProtocol, server: ServerProtocol, at_once: u32) -> u64 {
    let certificates = certificates();
    let (client, server) = (client_options(client), server_options(server));
    let mut world = World::new(&certificates, client, server);
    let client = world.connected(&client_tls(&certificates, true));
    for number in 0..16 {
        world.ask(client, &query(number), number).unwrap();
        if (number + 1) % at_once == 0 {
            world.run_until(|world| world.messages(client).len() == 1 + number as usize);
        }
    }
    world.run_for(Duration::from_secs(1));
    let key = world.keys[client];
    let freed = allocation_counter::measure(|| world.client.forget(key));
    u64::try_from(-freed.bytes_current).unwrap()
}

/// The limit that the design sets; most of it is quinn-proto's. It keeps about 0.6 KB for each
/// stream that was ever open at the same time as others.
const IDLE_BYTES_MAX: u64 = 30_000;

#[test]
fn idle_doq_client_holds_at_most_30_kb() {
    for at_once in [1, 16] {
        let bytes = idle_bytes(ClientProtocol::Doq, ServerProtocol::Doq, at_once);
        println!("{bytes} bytes, {at_once} at once");
        assert!(bytes <= IDLE_BYTES_MAX, "{bytes} bytes, {at_once} at once");
    }
}

#[test]
fn idle_http3_client_holds_at_most_30_kb() {
    for at_once in [1, 16] {
        let request = DohRequest::new(Method::Post, "https://dns.example/dns-query", &[]);
        let client = ClientProtocol::Http3(Arc::new(request.unwrap()));
        let path = "/dns-query".into();
        let bytes = idle_bytes(client, ServerProtocol::Http3 { path }, at_once);
        println!("{bytes} bytes, {at_once} at once");
        assert!(bytes <= IDLE_BYTES_MAX, "{bytes} bytes, {at_once} at once");
    }
}

/// A world of one client, of DoQ or DoH/3.
fn world_of(protocol: &ServerProtocol) -> (World, Certificates) {
    let certificates = certificates();
    let client = match protocol {
        ServerProtocol::Doq => ClientProtocol::Doq,
        ServerProtocol::Http3 { .. } => {
            let request = DohRequest::new(Method::Post, "https://dns.example/dns-query", &[]);
            ClientProtocol::Http3(Arc::new(request.unwrap()))
        }
    };
    let server = server_options(protocol.clone());
    let world = World::new(&certificates, client_options(client), server);
    (world, certificates)
}

fn protocols() -> [ServerProtocol; 2] {
    let path = "/dns-query".into();
    [ServerProtocol::Doq, ServerProtocol::Http3 { path }]
}

/// Memory of a connection by the server's estimate, and what is freed with it.
fn account_and_fact(world: &mut World) -> (usize, usize) {
    let (key, counted, _) = world.server.holdings().next().unwrap();
    assert_eq!(world.server.held_octets(), counted);
    let freed = allocation_counter::measure(|| world.server.forget(key));
    assert_eq!(world.server.held_octets(), 0);
    (counted, usize::try_from(-freed.bytes_current).unwrap())
}

#[test]
fn server_counts_at_least_what_a_connection_holds() {
    for protocol in protocols() {
        let (mut world, certificates) = world_of(&protocol);
        let client = world.connected(&client_tls(&certificates, true));
        for number in 0..16 {
            world.ask(client, &query(number), number).unwrap();
        }
        world.run_for(Duration::from_secs(1));
        let (counted, held) = account_and_fact(&mut world);
        println!("established: {counted} counted, {held} held");
        assert!(counted >= held, "{counted} counted, {held} held");

        let (mut world, certificates) = world_of(&protocol);
        world.connect(&client_tls(&certificates, true));
        world.run_until(|world| world.server.connections() == 1);
        assert_eq!(world.server.unvalidated(), 1);
        let (counted, held) = account_and_fact(&mut world);
        println!("handshaking: {counted} counted, {held} held");
        assert!(counted >= held, "{counted} counted, {held} held");
        assert_eq!(world.server.unvalidated(), 0);
    }
}

#[test]
fn queries_that_are_never_whole_are_refused_beyond_a_mebibyte() {
    for protocol in protocols() {
        let (mut world, certificates) = world_of(&protocol);
        let client = world.connected(&client_tls(&certificates, false));
        let key = world.keys[client];
        // The length of a message over DoQ, the type and length of an unknown frame over HTTP/3.
        let mut partial = vec![0x40; 60_000];
        partial[..5].copy_from_slice(match protocol {
            ServerProtocol::Doq => &[0xff, 0xff, 0, 0, 0],
            ServerProtocol::Http3 { .. } => &[0x21, 0x80, 1, 0, 0],
        });
        let mut streams = 0;
        // The client aborts when it is refused: it knows of no query on that stream.
        while let Some((stream, mut sent)) = world.client.write_raw(key, None, &partial) {
            streams += 1;
            while let Some((_, more)) = world.client.write_raw(key, Some(stream), &partial[sent..])
                && sent < partial.len()
                && world.lost(client).is_none()
            {
                sent += more;
                world.run_for(Duration::from_millis(50));
            }
            assert!(world.server.held_octets() < 2 << 20);
        }
        assert!(
            (12..=18).contains(&streams),
            "{streams} buffers of 60,000 octets or more"
        );
        let refused = |served: &Served| matches!(served, Served::Excessive(..));
        assert!(world.served.iter().any(refused), "{:?}", world.served);
        let honest = world.connected(&client_tls(&certificates, false));
        world.ask(honest, &query(7), 7).unwrap();
        world.run_for(Duration::from_secs(1));
        assert_eq!(world.messages(honest), [7]);
        world.run_for(Duration::from_secs(60));
        assert_eq!(world.server.held_octets(), 0, "both have gone");
    }
}

#[test]
fn handshakes_that_are_not_finished_are_given_up() {
    let certificates = certificates();
    let server = QuicServerOptions {
        handshake_timeout: Some(Duration::from_secs(10)),
        unvalidated_max: 2,
        ..server_options(ServerProtocol::Doq)
    };
    let mut world = World::new(&certificates, client_options(ClientProtocol::Doq), server);
    for _ in 0..2 {
        let spoofed = world.connect(&client_tls(&certificates, false));
        world.flush();
        world.client.forget(world.keys[spoofed]);
    }
    world.run_until(|world| world.server.connections() == 2);
    assert_eq!(
        (world.server.connections(), world.server.unvalidated()),
        (2, 2)
    );
    let honest = world.connected(&client_tls(&certificates, false));
    let retry = Arrival::NotAccepted(Admission::Retry);
    assert!(world.arrivals.contains(&retry), "{:?}", world.arrivals);
    world.ask(honest, &query(1), 1).unwrap();
    world.run_until(|world| world.messages(honest) == [1]);
    world.run_for(Duration::from_secs(10));
    assert_eq!(
        (world.server.connections(), world.server.unvalidated()),
        (1, 0)
    );
}
