//! Tests particular to io_uring: registered files, and exhausted memory. Those common to all
//! drivers are in `crates/driver/tests/real/sockets.rs`.

use std::net::Ipv4Addr;

use super::*;
use crate::Event;

/// No delivery on loopback takes that long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A driver; none where the host forbids io_uring, which the tests of whole runs do not let pass.
fn driver() -> Option<UringDriver> {
    let opened = UringDriver::new(Clock::start(), SocketOptions::default());
    opened.inspect_err(|why| eprintln!("not tried: {why}")).ok()
}

fn next(driver: &mut UringDriver, received: &mut Received) -> Event {
    let deadline = driver.now() + PATIENCE;
    while !driver.receive(received) || received.event == Event::Writable {
        assert!(driver.now() < deadline, "nothing was delivered");
        driver.wait(deadline);
    }
    received.event
}

/// A listener and where it is.
fn listen(driver: &mut UringDriver) -> SocketAddr {
    let spec = SocketSpec {
        local: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        ..SocketSpec::default()
    };
    let listener = driver.listen_tcp(&spec).unwrap();
    driver.local_addr(listener).unwrap()
}

/// Both ends of a new stream, the client's first.
fn connect(driver: &mut UringDriver, to: SocketAddr) -> [SocketId; 2] {
    let spec = SocketSpec {
        peer: Some(to),
        ..SocketSpec::default()
    };
    let client = driver.connect_tcp(&spec).unwrap();
    let (mut accepted, mut is_connected) = (None, false);
    let mut received = Received::new();
    while accepted.is_none() || !is_connected {
        match next(driver, &mut received) {
            Event::Accepted { .. } => accepted = Some(received.socket),
            Event::Connected => is_connected = true,
            other => panic!("unexpected {other:?}"),
        }
    }
    [client, accepted.unwrap()]
}

/// Sends one octet after the other, each of which has to arrive before the next.
fn send_each(
    driver: &mut UringDriver,
    [from, to]: [SocketId; 2],
    octets: impl Iterator<Item = u8>,
) {
    let mut received = Received::new();
    for octet in octets {
        assert_eq!(driver.send_bytes(from, &[octet]), Ok(1));
        assert_eq!(next(driver, &mut received), Event::Bytes);
        assert_eq!((received.socket, received.bytes()), (to, &[octet][..]));
    }
}

fn is_registered(driver: &UringDriver, id: SocketId) -> bool {
    driver.sockets.get(id).unwrap().is_registered
}

#[test]
fn a_stream_that_sends_often_is_registered_and_its_place_is_free_when_it_closes() {
    let Some(mut driver) = driver() else { return };
    let has_files = driver.ring.files > 0;
    let to = listen(&mut driver);
    let mut received = Received::new();
    let mut places = Vec::new();
    for round in 0..3 {
        let ends = connect(&mut driver, to);
        send_each(&mut driver, ends, 1..SENDS_UNREGISTERED);
        assert!(!is_registered(&driver, ends[0]));
        send_each(&mut driver, ends, 1..SENDS_UNREGISTERED);
        assert_eq!(is_registered(&driver, ends[0]), has_files);
        assert!(!is_registered(&driver, ends[1]));
        // What is under way is sent, then the stream ends at once, though it was registered.
        assert_eq!(driver.send_bytes(ends[0], b"last words"), Ok(10));
        driver.close(ends[0], Close::Graceful);
        assert_eq!(next(&mut driver, &mut received), Event::Bytes);
        assert_eq!(received.bytes(), b"last words", "round {round}");
        assert_eq!(next(&mut driver, &mut received), Event::EndOfStream);
        assert_eq!(received.socket, ends[1]);
        driver.close(ends[1], Close::Graceful);
        places.push(ends[0].index);
    }
    assert!(places.contains(&places[2]) && places[1..].contains(&places[2]));
}

#[test]
fn a_new_stream_in_the_place_of_a_registered_one_gets_none_of_its_octets() {
    let Some(mut driver) = driver() else { return };
    let to = listen(&mut driver);
    let old = connect(&mut driver, to);
    send_each(&mut driver, old, 0..SENDS_UNREGISTERED);
    // The peer does not read: the old stream closes with data unsent.
    driver.pause_reading(old[1], true);
    let octets = vec![1; 1 << 20];
    while driver.send_bytes(old[0], &octets).unwrap() > 0 {
        let soon = driver.now();
        driver.wait(soon);
        let mut received = Received::new();
        while driver.receive(&mut received) {}
    }
    driver.close(old[0], Close::Graceful);
    let new = connect(&mut driver, to);
    assert_eq!(new[0].index, old[0].index);
    send_each(
        &mut driver,
        new,
        (0..3 * SENDS_UNREGISTERED).map(|it| it | 0x80),
    );
    driver.pause_reading(old[1], false);
    let mut received = Received::new();
    while next(&mut driver, &mut received) == Event::Bytes {
        assert_eq!(received.socket, old[1]);
        assert!(received.bytes().iter().all(|octet| *octet == 1));
    }
    assert_eq!(received.event, Event::EndOfStream);
}

#[test]
fn a_stream_that_cannot_be_registered_goes_on_by_its_descriptor() {
    let Some(mut driver) = driver() else { return };
    if driver.ring.files > 0 {
        driver.ring.inner().submitter().unregister_files().unwrap();
    }
    driver.ring.files = 1_024;
    let to = listen(&mut driver);
    let ends = connect(&mut driver, to);
    send_each(&mut driver, ends, 0..3 * SENDS_UNREGISTERED);
    assert!(!is_registered(&driver, ends[0]));
    driver.close(ends[0], Close::Graceful);
    let mut received = Received::new();
    assert_eq!(next(&mut driver, &mut received), Event::EndOfStream);
}

#[test]
fn streams_that_find_no_buffer_are_counted_and_lose_nothing() {
    const STREAMS: usize = 200;
    const OCTETS: usize = 60_000;
    let Some(mut driver) = driver() else { return };
    let to = listen(&mut driver);
    let ends: Vec<_> = (0..STREAMS).map(|_| connect(&mut driver, to)).collect();
    for [client, _] in &ends {
        assert_eq!(driver.send_bytes(*client, &[7; OCTETS]), Ok(OCTETS));
    }
    let (mut received, mut read) = (Received::new(), 0);
    while read < STREAMS * OCTETS {
        assert_eq!(next(&mut driver, &mut received), Event::Bytes);
        read += received.bytes().len();
    }
    assert!(driver.stats().buffer_shortages > 0);
    assert_eq!(driver.sends.in_flight().count(), 0);
}
