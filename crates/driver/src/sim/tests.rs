//! How the simulated network behaves.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod datagrams;
mod runs;
mod streams;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use proto::Instant;

use super::{Jitter, Link, SimDriver, World, WorldConfig};
use crate::{Driver, Event, Outgoing, Received, SocketId, SocketSpec};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 53));

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn at_ms(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

fn server_at(port: u16) -> SocketAddr {
    SocketAddr::new(SERVER, port)
}

fn serving(port: u16) -> SocketSpec {
    SocketSpec {
        local: Some(server_at(port)),
        peer: None,
        shared_port: false,
        fast_open: false,
    }
}

fn towards(port: u16) -> SocketSpec {
    SocketSpec {
        local: None,
        peer: Some(server_at(port)),
        shared_port: false,
        fast_open: false,
    }
}

/// A faultless network with 5 ms each way.
fn five_ms() -> WorldConfig {
    WorldConfig {
        link: Link::constant(ms(5)),
        ..WorldConfig::default()
    }
}

/// A network with every fault.
fn rough(seed: u64) -> WorldConfig {
    let link = Link {
        jitter: Jitter::Exponential { mean: ms(2) },
        loss_share: 0.1,
        duplicate_share: 0.05,
        reorder_share: 0.05,
        reorder_delay: ms(10),
        ..Link::constant(ms(5))
    };
    WorldConfig {
        seed,
        link,
        ..WorldConfig::default()
    }
}

/// A world with one client and one server.
struct Pair {
    world: World,
    client: SimDriver,
    server: SimDriver,
}

impl Pair {
    fn new(config: WorldConfig) -> Self {
        let world = World::new(config);
        let client = world.endpoint(CLIENT);
        let server = world.endpoint(SERVER);
        Pair {
            world,
            client,
            server,
        }
    }

    /// A pair with a server socket on port 53 and a client socket connected to it.
    fn udp(config: WorldConfig) -> (Self, SocketId, SocketId) {
        let mut pair = Pair::new(config);
        let server = pair.server.open_udp(&serving(53)).unwrap();
        let client = pair.client.open_udp(&towards(53)).unwrap();
        (pair, client, server)
    }

    /// A pair with a stream that both ends know to be open; two one-way delays have passed.
    fn tcp(config: WorldConfig) -> (Self, SocketId, SocketId) {
        let mut pair = Pair::new(config);
        pair.server.listen_tcp(&serving(53)).unwrap();
        let client = pair.client.connect_tcp(&towards(53)).unwrap();
        pair.world.advance_to(at_ms(10));
        assert_eq!(events(&mut pair.client), [(client, Event::Connected)]);
        let accepted = events(&mut pair.server);
        assert!(
            matches!(accepted[..], [(_, Event::Accepted { .. })]),
            "{accepted:?}"
        );
        (pair, client, accepted[0].0)
    }
}

/// One delivery, copied.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Delivery {
    at: Instant,
    socket: SocketId,
    event: Event,
    datagrams: Vec<(SocketAddr, Vec<u8>)>,
    bytes: Vec<u8>,
}

/// All that is ready now.
fn deliveries(driver: &mut SimDriver) -> Vec<Delivery> {
    let mut received = Received::new();
    let mut all = Vec::new();
    while driver.receive(&mut received) {
        let datagrams = received.datagrams.iter();
        all.push(Delivery {
            at: received.at,
            socket: received.socket,
            event: received.event,
            datagrams: datagrams
                .map(|d| (d.from, received.datagram(*d).to_vec()))
                .collect(),
            bytes: received.bytes().to_vec(),
        });
    }
    all
}

fn events(driver: &mut SimDriver) -> Vec<(SocketId, Event)> {
    deliveries(driver)
        .into_iter()
        .map(|delivery| (delivery.socket, delivery.event))
        .collect()
}

/// The payloads of all datagrams that are ready now.
fn payloads(driver: &mut SimDriver) -> Vec<Vec<u8>> {
    let datagrams = deliveries(driver)
        .into_iter()
        .flat_map(|delivery| delivery.datagrams);
    datagrams.map(|(_, octets)| octets).collect()
}

/// Datagrams to the peer of a connected socket.
fn outgoing<'a>(datagrams: impl IntoIterator<Item = &'a [u8]>) -> Outgoing {
    let mut outgoing = Outgoing::default();
    for datagram in datagrams {
        let start = outgoing.octets.len();
        outgoing.octets.extend_from_slice(datagram);
        outgoing.finish(start, None);
    }
    outgoing
}

fn send(driver: &mut SimDriver, socket: SocketId, datagram: &[u8]) {
    let accepted = driver.send_datagrams(socket, &outgoing([datagram]));
    assert_eq!((accepted.accepted, accepted.error), (1, None));
}
