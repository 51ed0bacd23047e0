//! The kernel's timestamps of datagrams, on loopback.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use driver::clock::Clock;
use driver::kernel::{DriverChoice, DriverKind, KernelDriver, Load};
use driver::{
    Driver, Event, Outgoing, Received, SendStamp, SocketId, SocketOptions, SocketSpec, StampSource,
};
use proto::Instant;

/// Nothing here takes that long, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client whose datagrams the kernel stamps.
struct Client {
    driver: KernelDriver,
    socket: SocketId,
}

/// A datagram that came back: its octet, when it arrived, and when it was read.
type Arrived = (u8, Instant, Instant);

impl Client {
    fn of(peer: SocketAddr) -> Client {
        let options = SocketOptions {
            timestamps: Some(StampSource::Kernel),
            offload: false,
            ..SocketOptions::default()
        };
        let choice = DriverChoice::Auto;
        let opened = KernelDriver::open(choice, Load::default(), Clock::start(), options);
        let (mut driver, chosen) = opened.unwrap();
        assert_eq!(chosen.kind, DriverKind::Epoll);
        let spec = SocketSpec {
            peer: Some(peer),
            ..SocketSpec::default()
        };
        let socket = driver.open_udp(&spec).unwrap();
        Client { driver, socket }
    }

    /// Sends datagrams of one octet each.
    fn send(&mut self, octets: &[u8]) {
        let mut outgoing = Outgoing::default();
        for octet in octets {
            let start = outgoing.octets.len();
            outgoing.octets.push(*octet);
            outgoing.finish(start, None);
        }
        let outcome = self.driver.send_datagrams(self.socket, &outgoing);
        assert_eq!(outcome.accepted, octets.len());
    }

    fn stamps(&mut self) -> Vec<SendStamp> {
        let mut stamps = Vec::new();
        self.driver.read_send_stamps(self.socket, &mut stamps);
        stamps
    }

    /// What comes back, once `count` datagrams have.
    fn collect(&mut self, count: usize) -> Vec<Arrived> {
        let mut arrived = Vec::new();
        let mut received = Received::new();
        let deadline = self.driver.now() + PATIENCE;
        while arrived.len() < count {
            assert!(self.driver.now() < deadline, "{arrived:?}");
            if !self.driver.receive(&mut received) {
                self.driver.wait(deadline);
            } else if received.event == Event::Datagrams {
                assert_eq!(received.arrived.len(), received.datagrams.len());
                for (datagram, at) in received.datagrams.iter().zip(&received.arrived) {
                    arrived.push((received.datagram(*datagram)[0], *at, received.at));
                }
            }
        }
        arrived
    }

    /// Has the kernel begin: it stamps what arrives only soon after the first socket asked for it.
    fn warm_up(&mut self, peer: &UdpSocket) -> u32 {
        let deadline = self.driver.now() + PATIENCE;
        for sent in 1.. {
            self.send(&[0]);
            echo(peer, 1);
            let (_, arrived_at, read_at) = self.collect(1)[0];
            assert!(read_at < deadline, "no datagram is stamped");
            assert_eq!(self.stamps().len(), 1);
            if arrived_at != Instant::ZERO {
                return sent;
            }
        }
        unreachable!()
    }
}

/// Echoes this number of datagrams.
fn echo(peer: &UdpSocket, count: usize) {
    let mut octet = [0; 1];
    for _ in 0..count {
        let (_, from) = peer.recv_from(&mut octet).unwrap();
        peer.send_to(&octet, from).unwrap();
    }
}

#[test]
fn stamps_lie_between_sending_and_reading_and_belong_to_their_datagrams() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let peer = UdpSocket::bind(address).unwrap();
        let mut client = Client::of(peer.local_addr().unwrap());
        let first = client.warm_up(&peer);
        for round in 0..20 {
            let before = client.driver.now();
            let octets: Vec<u8> = (0..150).collect();
            client.send(&octets);
            let left = client.stamps();
            echo(&peer, 150);
            let arrived = client.collect(150);
            assert_eq!(client.stamps(), []);
            let first = first + 150 * round;
            let numbers: Vec<u32> = left.iter().map(|stamp| stamp.number).collect();
            assert_eq!(numbers, (first..first + 150).collect::<Vec<u32>>());
            let mut previous = before;
            for (stamp, (octet, arrived_at, read_at)) in left.iter().zip(&arrived) {
                assert!(previous <= stamp.at && stamp.at <= *arrived_at, "{octet}");
                assert!(arrived_at <= read_at, "{octet}");
                previous = stamp.at;
            }
        }
    }
}

#[test]
fn stamps_belong_to_their_datagrams_after_a_send_that_failed() {
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = peer.local_addr().unwrap();
    let mut client = Client::of(address);
    drop(peer);
    // Refused by ICMP, which the next send reports.
    client.send(&[0]);
    let peer = UdpSocket::bind(address).unwrap();
    client.send(&[1, 2]);
    // Of those after the refusal the kernel's numbers are not sure.
    let numbers: Vec<u32> = client.stamps().iter().map(|stamp| stamp.number).collect();
    assert_eq!(numbers, [0]);
    let after = client.driver.now();
    client.send(&[3, 4, 5]);
    let left = client.stamps();
    let numbers: Vec<u32> = left.iter().map(|stamp| stamp.number).collect();
    assert_eq!(numbers, [3, 4, 5]);
    assert!(left.iter().all(|stamp| stamp.at >= after));
    echo(&peer, 5);
    assert_eq!(client.collect(5).len(), 5);
}

#[test]
fn io_uring_and_xdp_say_that_they_stamp_nothing() {
    let options = SocketOptions {
        timestamps: Some(StampSource::Kernel),
        offload: false,
        ..SocketOptions::default()
    };
    let uring = DriverChoice::Uring;
    let refused = KernelDriver::open(uring, Load::default(), Clock::start(), options);
    let reason = refused.err().unwrap().to_string();
    assert!(reason.contains("not with io_uring or AF_XDP"), "{reason}");
}
