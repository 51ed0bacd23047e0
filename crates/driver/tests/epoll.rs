//! The epoll driver on loopback: datagrams with and without offload, streams from connect to end.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use driver::clock::Clock;
use driver::epoll::{EpollDriver, EpollOptions};
use driver::{Close, Driver, Event, Outgoing, Received, SocketError, SocketId, SocketSpec};

/// No delivery on loopback takes that long.
const PATIENCE: Duration = Duration::from_secs(10);

fn driver(offload: bool) -> EpollDriver {
    let options = EpollOptions {
        offload,
        socket_buffer_octets: None,
    };
    EpollDriver::new(Clock::start(), options).unwrap()
}

fn server() -> SocketSpec {
    let local = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    SocketSpec {
        local,
        peer: None,
        shared_port: false,
        fast_open: false,
    }
}

fn client_of(peer: SocketAddr) -> SocketSpec {
    SocketSpec {
        local: None,
        peer: Some(peer),
        shared_port: false,
        fast_open: false,
    }
}

/// Waits for the next delivery.
fn next(driver: &mut EpollDriver, received: &mut Received) {
    let deadline = driver.now() + PATIENCE;
    while !driver.receive(received) {
        assert!(driver.now() < deadline, "nothing was delivered");
        driver.wait(deadline);
    }
}

/// Waits for the next delivery that is not `Writable`.
fn next_event(driver: &mut EpollDriver, received: &mut Received) -> Event {
    loop {
        next(driver, received);
        if received.event != Event::Writable {
            return received.event;
        }
    }
}

fn datagrams(lengths: &[usize]) -> Outgoing {
    let mut outgoing = Outgoing::default();
    for (number, length) in lengths.iter().enumerate() {
        let start = outgoing.octets.len();
        outgoing.octets.extend(vec![number as u8; *length]);
        outgoing.finish(start, None);
    }
    outgoing
}

/// Sends datagrams of these lengths from a client to a server and checks what arrives.
fn exchange(offload: bool, lengths: &[usize]) -> EpollDriver {
    let mut driver = driver(offload);
    let server = driver.open_udp(&server()).unwrap();
    let address = driver.local_addr(server).unwrap();
    let client = driver.open_udp(&client_of(address)).unwrap();
    let outcome = driver.send_datagrams(client, &datagrams(lengths));
    assert_eq!((outcome.accepted, outcome.error), (lengths.len(), None));
    let mut received = Received::new();
    let mut seen = Vec::new();
    while seen.len() < lengths.len() {
        assert_eq!(next_event(&mut driver, &mut received), Event::Datagrams);
        assert_eq!(received.socket, server);
        for datagram in &received.datagrams {
            let octets = received.datagram(*datagram);
            assert!(
                octets.iter().all(|octet| *octet == octets[0]),
                "datagrams were mixed"
            );
            seen.push(octets.len());
            assert_eq!(
                datagram.from.port(),
                driver.local_addr(client).unwrap().port()
            );
        }
    }
    assert_eq!(seen, lengths, "in order and with their lengths");
    driver
}

#[test]
fn datagrams_arrive_in_order_and_whole_with_offload_and_without() {
    let lengths = [44, 44, 44, 43, 60, 60, 12, 1_232, 1_232, 512];
    for offload in [false, true] {
        let driver = exchange(offload, &lengths);
        assert_eq!(driver.stats().datagrams_sent, 10);
        assert_eq!(driver.stats().datagrams_received, 10);
    }
}

#[test]
fn equal_datagrams_leave_as_one_burst_with_offload_only() {
    let with = exchange(true, &[44; 64]).stats();
    assert_eq!(
        (
            with.offload_bursts,
            with.datagrams_offloaded,
            with.send_calls
        ),
        (1, 64, 1)
    );
    let without = exchange(false, &[44; 64]).stats();
    assert_eq!((without.offload_bursts, without.send_calls), (0, 1));
}

#[test]
fn the_longest_datagram_arrives_whole() {
    exchange(true, &[65_507]);
    exchange(false, &[65_507]);
}

#[test]
fn a_port_that_nobody_listens_on_is_reported_as_refused() {
    let mut driver = driver(true);
    let gone = driver.open_udp(&server()).unwrap();
    let address = driver.local_addr(gone).unwrap();
    driver.close(gone, Close::Graceful);
    let client = driver.open_udp(&client_of(address)).unwrap();
    driver.send_datagrams(client, &datagrams(&[44]));
    let mut received = Received::new();
    let event = next_event(&mut driver, &mut received);
    assert_eq!(event, Event::DatagramError(SocketError::Refused));
}

/// A driver with a connected pair of streams: client end and server end.
fn connected() -> (EpollDriver, SocketId, SocketId, Received) {
    let mut driver = driver(true);
    let listener = driver.listen_tcp(&server()).unwrap();
    let address = driver.local_addr(listener).unwrap();
    let client = driver.connect_tcp(&client_of(address)).unwrap();
    let mut received = Received::new();
    let (mut accepted, mut is_connected) = (None, false);
    while accepted.is_none() || !is_connected {
        match next_event(&mut driver, &mut received) {
            Event::Accepted { .. } => accepted = Some(received.socket),
            Event::Connected => is_connected = true,
            other => panic!("unexpected {other:?}"),
        }
    }
    (driver, client, accepted.unwrap(), received)
}

#[test]
fn octets_travel_both_ways_and_the_end_of_the_stream_follows_them() {
    let (mut driver, client, accepted, mut received) = connected();
    assert_eq!(driver.send_bytes(client, b"query"), Ok(5));
    assert_eq!(next_event(&mut driver, &mut received), Event::Bytes);
    assert_eq!(
        (received.socket, received.bytes()),
        (accepted, &b"query"[..])
    );
    assert_eq!(driver.send_bytes(accepted, b"response"), Ok(8));
    driver.close(accepted, Close::Graceful);
    assert_eq!(next_event(&mut driver, &mut received), Event::Bytes);
    assert_eq!(
        (received.socket, received.bytes()),
        (client, &b"response"[..])
    );
    assert_eq!(next_event(&mut driver, &mut received), Event::EndOfStream);
    assert_eq!(received.socket, client);
}

#[test]
fn a_reset_is_told_from_an_orderly_end() {
    let (mut driver, client, accepted, mut received) = connected();
    driver.close(accepted, Close::Reset);
    let event = next_event(&mut driver, &mut received);
    assert_eq!(event, Event::Failed(SocketError::Reset));
    assert_eq!(received.socket, client);
}

#[test]
fn a_stream_nobody_reads_blocks_and_is_writable_when_it_is_read_again() {
    let (mut driver, client, accepted, mut received) = connected();
    driver.pause_reading(accepted, true);
    let octets = vec![7; 1 << 20];
    let mut sent = 0;
    // The kernel's buffers are finite: far below this bound the stream blocks.
    while sent < 1 << 30 {
        let taken = driver.send_bytes(client, &octets).unwrap();
        sent += taken;
        if taken < octets.len() {
            break;
        }
    }
    assert!(sent < 1 << 30, "the stream never blocked");
    driver.pause_reading(accepted, false);
    let (mut read, mut writable) = (0, false);
    while read < sent || !writable {
        next(&mut driver, &mut received);
        match received.event {
            Event::Bytes => read += received.bytes().len(),
            Event::Writable => writable = true,
            other => panic!("unexpected {other:?}"),
        }
    }
    assert_eq!(read, sent);
}

#[test]
fn a_refused_connection_fails_once() {
    let mut driver = driver(true);
    let listener = driver.listen_tcp(&server()).unwrap();
    let address = driver.local_addr(listener).unwrap();
    driver.close(listener, Close::Graceful);
    let client = driver.connect_tcp(&client_of(address)).unwrap();
    let mut received = Received::new();
    let event = next_event(&mut driver, &mut received);
    assert_eq!(event, Event::Failed(SocketError::Refused));
    assert_eq!(received.socket, client);
}

#[test]
fn a_closed_socket_delivers_nothing_and_its_place_gets_a_new_generation() {
    let (mut driver, client, accepted, mut received) = connected();
    driver.send_bytes(client, b"too late").unwrap();
    driver.close(accepted, Close::Graceful);
    let again = driver.open_udp(&server()).unwrap();
    assert_eq!(again.index, accepted.index);
    assert_ne!(again.generation, accepted.generation);
    assert!(driver.local_addr(accepted).is_err());
    assert!(driver.send_bytes(accepted, b"x").is_err());
    // Unread octets make the kernel answer the close with a reset.
    let event = next_event(&mut driver, &mut received);
    assert!(
        matches!(event, Event::Failed(_) | Event::EndOfStream),
        "{event:?}"
    );
    assert_eq!(received.socket, client);
}

#[test]
fn one_socket_that_never_runs_dry_does_not_starve_another() {
    let mut driver = driver(false);
    let server = driver.open_udp(&server()).unwrap();
    let address = driver.local_addr(server).unwrap();
    let busy = driver.open_udp(&client_of(address)).unwrap();
    let quiet = driver.open_udp(&client_of(address)).unwrap();
    driver.send_datagrams(busy, &datagrams(&[44; 32]));
    driver.send_datagrams(quiet, &datagrams(&[44]));
    let mut received = Received::new();
    let mut echoed = Outgoing::default();
    // Both ends echo for ever; the quiet client's one datagram must come back all the same.
    for _ in 0..100_000 {
        next(&mut driver, &mut received);
        if received.socket == quiet && received.event == Event::Datagrams {
            return;
        }
        echoed.clear();
        for datagram in &received.datagrams {
            let start = echoed.octets.len();
            echoed
                .octets
                .extend_from_slice(received.datagram(*datagram));
            let to = (received.socket == server).then_some(datagram.from);
            echoed.finish(start, to);
        }
        driver.send_datagrams(received.socket, &echoed);
    }
    panic!("the quiet client was starved");
}
