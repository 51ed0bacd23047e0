//! The drivers for the kernel's sockets on loopback, with the same expectations of each: datagrams
//! with and without offload, streams from connect to end. What is expected of datagrams is in
//! `datagrams`, and expected of AF_XDP too.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod datagrams;

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use driver::clock::Clock;
use driver::kernel::{DriverChoice, KernelDriver, Load};
use driver::{
    Close, Driver, Event, Outgoing, Received, SocketError, SocketId, SocketOptions, SocketSpec,
};

use datagrams::Ends;

/// No delivery on loopback takes that long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The drivers that this host has; io_uring may be forbidden, and says so then.
fn each(mut check: impl FnMut(DriverChoice)) {
    check(DriverChoice::Epoll);
    match open(DriverChoice::Uring, true) {
        Ok(_) => check(DriverChoice::Uring),
        Err(reason) => eprintln!("not tried with io_uring: {reason}"),
    }
}

fn open(choice: DriverChoice, offload: bool) -> std::io::Result<KernelDriver> {
    let options = SocketOptions {
        offload,
        ..SocketOptions::default()
    };
    KernelDriver::open(choice, Load::default(), Clock::start(), options).map(|it| it.0)
}

fn driver(choice: DriverChoice, offload: bool) -> KernelDriver {
    open(choice, offload).unwrap()
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
fn next(driver: &mut KernelDriver, received: &mut Received) {
    let deadline = driver.now() + PATIENCE;
    while !driver.receive(received) {
        assert!(driver.now() < deadline, "nothing was delivered");
        driver.wait(deadline);
    }
}

/// Waits for the next delivery that is not `Writable`.
fn next_event(driver: &mut KernelDriver, received: &mut Received) -> Event {
    loop {
        next(driver, received);
        if received.event != Event::Writable {
            return received.event;
        }
    }
}

/// Two drivers of a kind on loopback.
struct Loopback {
    near: KernelDriver,
    far: KernelDriver,
}

impl Loopback {
    fn of(choice: DriverChoice, offload: bool) -> Loopback {
        let [near, far] = [(); 2].map(|()| driver(choice, offload));
        Loopback { near, far }
    }
}

impl Ends for Loopback {
    type Driver = KernelDriver;

    fn near(&mut self) -> &mut KernelDriver {
        &mut self.near
    }

    fn far(&mut self) -> &mut KernelDriver {
        &mut self.far
    }

    fn far_address(&self) -> IpAddr {
        Ipv4Addr::LOCALHOST.into()
    }
}

/// Sends datagrams of these lengths from a client to a server and checks what arrives.
fn exchange(choice: DriverChoice, offload: bool, lengths: &[usize]) -> Loopback {
    let mut ends = Loopback::of(choice, offload);
    datagrams::arrive_in_order_and_whole(&mut ends, lengths);
    ends
}

#[test]
fn datagrams_arrive_in_order_and_whole_with_offload_and_without() {
    each(|choice| {
        let lengths = [44, 44, 44, 43, 60, 60, 12, 1_232, 1_232, 512];
        for offload in [false, true] {
            let ends = exchange(choice, offload, &lengths);
            for stats in [ends.near.stats(), ends.far.stats()] {
                assert_eq!((stats.datagrams_sent, stats.datagrams_received), (10, 10));
            }
        }
    });
}

#[test]
fn equal_datagrams_leave_as_one_burst_with_offload_only() {
    each(|choice| {
        let with = exchange(choice, true, &[44; 64]).near.stats();
        assert_eq!(
            (
                with.offload_bursts,
                with.datagrams_offloaded,
                with.send_calls
            ),
            (1, 64, 1)
        );
        let without = exchange(choice, false, &[44; 64]).near.stats();
        assert_eq!((without.offload_bursts, without.send_calls), (0, 1));
    });
}

#[test]
fn the_longest_datagram_arrives_whole() {
    each(|choice| {
        exchange(choice, true, &[65_507]);
        exchange(choice, false, &[65_507]);
    });
}

#[test]
fn a_port_that_nobody_listens_on_is_reported_as_refused() {
    each(|choice| datagrams::are_refused_where_nobody_listens(&mut Loopback::of(choice, true)));
}

/// A driver with a connected pair of streams: client end and server end.
fn connected(choice: DriverChoice) -> (KernelDriver, SocketId, SocketId, Received) {
    let mut driver = driver(choice, true);
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
    each(|choice| {
        let (mut driver, client, accepted, mut received) = connected(choice);
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
    });
}

/// Exchanges with a server that sends each response in two segments, and holds the second back
/// until the first is acknowledged (Nagle's algorithm), until one takes a time that is expected.
fn exchange_until(choice: DriverChoice, tcp_quickack: bool, is_expected: fn(Duration) -> bool) {
    /// While a connection is new, the kernel delays no acknowledgement.
    const FIRST: usize = 20;
    let options = SocketOptions {
        tcp_quickack,
        ..SocketOptions::default()
    };
    let opened = KernelDriver::open(choice, Load::default(), Clock::start(), options);
    let mut client = opened.unwrap().0;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // To the end of the connection.
        while stream.read_exact(&mut [0]).is_ok() {
            stream.write_all(b"1").unwrap();
            stream.write_all(b"2").unwrap();
        }
    });
    let mut received = Received::new();
    let stream = client.connect_tcp(&client_of(address)).unwrap();
    assert_eq!(next_event(&mut client, &mut received), Event::Connected);
    let deadline = client.now() + PATIENCE;
    for exchange in 0.. {
        let since = client.now();
        assert_eq!(client.send_bytes(stream, b"?"), Ok(1));
        let mut octets = 0;
        while octets < 2 {
            assert_eq!(next_event(&mut client, &mut received), Event::Bytes);
            octets += received.stream_octets;
        }
        let time = client.now().duration_since(since);
        if exchange >= FIRST && is_expected(time) {
            break;
        }
        assert!(
            client.now() < deadline,
            "{choice}: {tcp_quickack}: {time:?}"
        );
    }
    client.close(stream, Close::Graceful);
    drop(client);
    server.join().unwrap();
}

#[test]
fn what_is_acknowledged_at_once_lets_a_server_go_on_that_waits_for_it() {
    // Linux delays by 40 ms and more; a busy host makes some exchanges last as long, but not all.
    const DELAYED: Duration = Duration::from_millis(30);
    each(|choice| {
        exchange_until(choice, false, |time| time >= DELAYED);
        exchange_until(choice, true, |time| time < DELAYED);
    });
}

#[test]
fn a_reset_is_told_from_an_orderly_end() {
    each(|choice| {
        let (mut driver, client, accepted, mut received) = connected(choice);
        driver.close(accepted, Close::Reset);
        let event = next_event(&mut driver, &mut received);
        assert_eq!(event, Event::Failed(SocketError::Reset));
        assert_eq!(received.socket, client);
    });
}

#[test]
fn a_stream_nobody_reads_blocks_and_is_writable_when_it_is_read_again() {
    each(|choice| {
        let (mut driver, client, accepted, mut received) = connected(choice);
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
    });
}

#[test]
fn a_refused_connection_fails_once() {
    each(|choice| {
        let mut driver = driver(choice, true);
        let listener = driver.listen_tcp(&server()).unwrap();
        let address = driver.local_addr(listener).unwrap();
        driver.close(listener, Close::Graceful);
        let client = driver.connect_tcp(&client_of(address)).unwrap();
        let mut received = Received::new();
        let event = next_event(&mut driver, &mut received);
        assert_eq!(event, Event::Failed(SocketError::Refused));
        assert_eq!(received.socket, client);
    });
}

#[test]
fn a_closed_socket_delivers_nothing_and_its_place_gets_a_new_generation() {
    each(|choice| {
        let (mut driver, client, accepted, mut received) = connected(choice);
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
    });
}

#[test]
fn one_socket_that_never_runs_dry_does_not_starve_another() {
    each(|choice| {
        let mut driver = driver(choice, false);
        let server = driver.open_udp(&server()).unwrap();
        let address = driver.local_addr(server).unwrap();
        let busy = driver.open_udp(&client_of(address)).unwrap();
        let quiet = driver.open_udp(&client_of(address)).unwrap();
        driver.send_datagrams(busy, &datagrams::outgoing(&[44; 32]));
        driver.send_datagrams(quiet, &datagrams::outgoing(&[44]));
        let mut received = Received::new();
        let mut echoed = Outgoing::default();
        // Both ends echo for ever; the quiet client's one datagram must come back nevertheless.
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
    });
}

#[test]
fn a_stream_whose_sender_has_finished_goes_on_in_the_other_direction() {
    each(|choice| {
        let (mut driver, client, accepted, mut received) = connected(choice);
        driver.send_bytes(client, b"query").unwrap();
        driver.finish_sending(client);
        assert_eq!(next_event(&mut driver, &mut received), Event::Bytes);
        assert_eq!(received.bytes(), b"query");
        assert_eq!(next_event(&mut driver, &mut received), Event::EndOfStream);
        assert_eq!(received.socket, accepted);
        driver.send_bytes(accepted, b"response").unwrap();
        assert_eq!(next_event(&mut driver, &mut received), Event::Bytes);
        assert_eq!(
            (received.socket, received.bytes()),
            (client, &b"response"[..])
        );
    });
}

#[test]
fn octets_taken_before_an_orderly_close_all_arrive_though_the_stream_was_blocked() {
    each(|choice| {
        let (mut driver, client, accepted, mut received) = connected(choice);
        driver.pause_reading(accepted, true);
        let octets: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 251) as u8).collect();
        let (mut sent, deadline) = (0, driver.now() + PATIENCE);
        loop {
            assert!(driver.now() < deadline, "the stream never blocked");
            let start = sent % 251;
            let taken = driver.send_bytes(client, &octets[start..]).unwrap();
            sent += taken;
            if taken == 0 {
                break;
            }
            let soon = driver.now();
            driver.wait(soon);
            while driver.receive(&mut received) {}
        }
        driver.close(client, Close::Graceful);
        driver.pause_reading(accepted, false);
        let mut read = 0;
        while next_event(&mut driver, &mut received) == Event::Bytes {
            for octet in received.bytes() {
                assert_eq!(usize::from(*octet), read % 251, "out of order at {read}");
                read += 1;
            }
        }
        assert_eq!((received.event, read), (Event::EndOfStream, sent));
    });
}

#[test]
fn what_came_while_reading_was_paused_is_delivered_when_it_is_resumed() {
    each(|choice| {
        let (mut driver, client, accepted, mut received) = connected(choice);
        for is_told_before in [true, false] {
            driver.pause_reading(accepted, true);
            if is_told_before {
                let soon = driver.now();
                driver.wait(soon);
            }
            driver.send_bytes(client, b"query").unwrap();
            if !is_told_before {
                driver.close(client, Close::Graceful);
            }
            for _ in 0..10 {
                let soon = driver.now() + Duration::from_millis(1);
                driver.wait(soon);
                assert!(!driver.receive(&mut received), "{:?}", received.event);
            }
            driver.pause_reading(accepted, false);
            assert_eq!(next_event(&mut driver, &mut received), Event::Bytes);
            assert_eq!(
                (received.socket, received.bytes()),
                (accepted, &b"query"[..])
            );
        }
        assert_eq!(next_event(&mut driver, &mut received), Event::EndOfStream);
    });
}

#[test]
fn a_reset_gives_up_what_was_to_be_sent() {
    each(|choice| {
        let (mut driver, client, accepted, mut received) = connected(choice);
        driver.pause_reading(accepted, true);
        let octets = vec![7; 1 << 20];
        while driver.send_bytes(client, &octets).unwrap() > 0 {
            let soon = driver.now();
            driver.wait(soon);
            while driver.receive(&mut received) {}
        }
        driver.close(client, Close::Reset);
        driver.pause_reading(accepted, false);
        while next_event(&mut driver, &mut received) == Event::Bytes {}
        assert_eq!(
            (received.socket, received.event),
            (accepted, Event::Failed(SocketError::Reset))
        );
    });
}

/// Connects `count` streams; returns both ends of each, clients first.
fn many(driver: &mut KernelDriver, count: usize) -> (Vec<SocketId>, Vec<SocketId>) {
    let listener = driver.listen_tcp(&server()).unwrap();
    let address = driver.local_addr(listener).unwrap();
    let clients: Vec<SocketId> = (0..count)
        .map(|_| driver.connect_tcp(&client_of(address)).unwrap())
        .collect();
    let mut received = Received::new();
    let (mut accepted, mut connected) = (Vec::new(), 0);
    while accepted.len() < count || connected < count {
        match next_event(driver, &mut received) {
            Event::Accepted { .. } => accepted.push(received.socket),
            Event::Connected => connected += 1,
            other => panic!("unexpected {other:?}"),
        }
    }
    (clients, accepted)
}

#[test]
fn more_streams_than_any_queue_holds_each_get_their_octets_in_order() {
    const STREAMS: usize = 300;
    const OCTETS: usize = 20_000;
    each(|choice| {
        let mut driver = driver(choice, true);
        let (clients, accepted) = many(&mut driver, STREAMS);
        // Together more octets than io_uring has buffers for.
        for (number, client) in clients.iter().enumerate() {
            let octets: Vec<u8> = (0..OCTETS).map(|at| ((at + number) % 251) as u8).collect();
            for part in octets.chunks(7_000) {
                assert_eq!(driver.send_bytes(*client, part), Ok(part.len()));
            }
        }
        let mut received = Received::new();
        let mut streams = std::collections::HashMap::new();
        let mut read = 0;
        while read < STREAMS * OCTETS {
            assert_eq!(next_event(&mut driver, &mut received), Event::Bytes);
            let first = received.bytes()[0];
            let expected = streams.entry(received.socket).or_insert(first);
            for octet in received.bytes() {
                assert_eq!(octet, expected, "out of order");
                *expected = ((u32::from(*expected) + 1) % 251) as u8;
            }
            read += received.bytes().len();
        }
        assert_eq!(streams.len(), accepted.len());
    });
}

#[test]
fn closing_while_connecting_leaves_nothing_to_deliver() {
    each(|choice| {
        let mut driver = driver(choice, true);
        let listener = driver.listen_tcp(&server()).unwrap();
        let address = driver.local_addr(listener).unwrap();
        for how in [Close::Graceful, Close::Reset] {
            let client = driver.connect_tcp(&client_of(address)).unwrap();
            driver.close(client, how);
            let mut received = Received::new();
            for _ in 0..10 {
                let soon = driver.now() + Duration::from_millis(1);
                driver.wait(soon);
                while driver.receive(&mut received) {
                    assert_ne!(received.socket, client, "{:?}", received.event);
                }
            }
        }
    });
}

#[test]
fn a_driver_that_ends_sends_what_it_took() {
    each(|choice| {
        let mut target = driver(DriverChoice::Epoll, true);
        let listener = target.listen_tcp(&server()).unwrap();
        let address = target.local_addr(listener).unwrap();
        let mut ending = driver(choice, true);
        let client = ending.connect_tcp(&client_of(address)).unwrap();
        let mut received = Received::new();
        assert_eq!(next_event(&mut ending, &mut received), Event::Connected);
        ending.send_bytes(client, b"last words").unwrap();
        drop(ending);
        next_event(&mut target, &mut received);
        assert_eq!(next_event(&mut target, &mut received), Event::Bytes);
        assert_eq!(received.bytes(), b"last words");
        assert_eq!(next_event(&mut target, &mut received), Event::EndOfStream);
    });
}
