//! Several workers, each with queues of its own: which one a datagram comes to.

use super::*;
use crate::netlink::Generic;
use crate::xdp::rss::Rss;

fn wire(queues: u32) -> Wire {
    Wire {
        queues,
        ..Wire::default()
    }
}

#[test]
fn datagrams_in_the_queue_of_another_worker_are_passed_on() {
    let wire = Wire {
        queues: 2,
        ..Wire::default()
    };
    let Some([near, far]) = wire.lay() else {
        return;
    };
    far.enter();
    let server = UdpSocket::bind((far.addresses[0], 0)).unwrap();
    let target = server.local_addr().unwrap();
    let workers = [0, 1].map(|worker| near.worker(worker, 2).unwrap());
    let mut queries = 0;
    let mut clients = Vec::new();
    let mut workers = workers.map(|mut driver| {
        for _ in 0..16 {
            let client = driver.open_udp(&spec(None, Some(target))).unwrap();
            driver.send_datagrams(client, &outgoing(&[b"query"], None));
            queries += 1;
            clients.push(driver.local_addr(client).unwrap());
        }
        driver.flush();
        driver
    });
    let mut buffer = [0; 16];
    for _ in 0..queries {
        let (octets, from) = server.recv_from(&mut buffer).unwrap();
        assert!(clients.contains(&from));
        server.send_to(&buffer[..octets], from).unwrap();
    }
    let deadline = workers[0].now() + PATIENCE;
    let mut seen = [0, 0];
    while seen != [16, 16] {
        for (driver, seen) in workers.iter_mut().zip(&mut seen) {
            let mut received = Received::new();
            while driver.receive(&mut received) {
                *seen += received.datagrams.len();
                let datagrams = received.datagrams.iter();
                assert!(
                    datagrams
                        .clone()
                        .all(|it| received.datagram(*it) == b"query")
                );
            }
            assert!(driver.now() < deadline, "not all arrived");
            let soon = driver.now() + Duration::from_millis(1);
            driver.wait(soon);
        }
    }
    let stray: u64 = workers.iter().map(|it| it.stats().xdp.stray).sum();
    assert_eq!(stray, 0);
}

/// Answers what waits for a server with the same octets; how many datagrams.
fn echo(driver: &mut XdpDriver, server: SocketId) -> usize {
    let mut received = Received::new();
    let mut seen = 0;
    while driver.receive(&mut received) {
        assert_eq!(
            (received.socket, received.event),
            (server, Event::Datagrams)
        );
        for datagram in received.datagrams.clone() {
            let octets = received.datagram(datagram).to_vec();
            let back = outgoing(&[&octets], Some(datagram.from));
            assert_eq!(driver.send_datagrams(server, &back).accepted, 1);
            seen += 1;
        }
    }
    driver.flush();
    seen
}

#[test]
fn responses_of_a_responder_on_frames_come_to_the_worker_that_asked() {
    const QUERIES: usize = 40;
    let Some([near, far]) = wire(4).lay() else {
        return;
    };
    let mut servers = [0, 1].map(|worker| far.worker(worker, 2).unwrap());
    let mut local = Some((far.addresses[0], 0).into());
    let sockets = servers.each_mut().map(|driver| {
        let shared = SocketSpec {
            local,
            shared_port: true,
            ..SocketSpec::default()
        };
        let socket = driver.open_udp(&shared).unwrap();
        local = Some(driver.local_addr(socket).unwrap());
        socket
    });
    let mut workers = [0, 1].map(|worker| near.worker(worker, 2).unwrap());
    for driver in &mut workers {
        for _ in 0..QUERIES {
            let client = driver.open_udp(&spec(None, local)).unwrap();
            driver.send_datagrams(client, &outgoing(&[b"query"], None));
        }
        driver.flush();
    }
    let deadline = workers[0].now() + PATIENCE;
    let (mut asked, mut answered) = ([0, 0], [0, 0]);
    while answered != [QUERIES; 2] {
        for ((driver, socket), asked) in servers.iter_mut().zip(sockets).zip(&mut asked) {
            *asked += echo(driver, socket);
        }
        for (driver, answered) in workers.iter_mut().zip(&mut answered) {
            let mut received = Received::new();
            while driver.receive(&mut received) {
                *answered += received.datagrams.len();
            }
            assert!(
                driver.now() < deadline,
                "{asked:?} asked, {answered:?} answered"
            );
            let soon = driver.now() + Duration::from_millis(1);
            driver.wait(soon);
        }
    }
    assert_eq!(
        asked, [QUERIES; 2],
        "each worker's queries came to one of the responder's"
    );
    for driver in servers.iter().chain(&workers) {
        assert_eq!(driver.stats().xdp, XdpStats::default());
    }
}

#[test]
fn source_ports_are_those_whose_responses_a_card_puts_into_queues_of_the_same_worker() {
    const QUEUES: u32 = 4;
    let Some([near, far]) = wire(QUEUES).lay() else {
        return;
    };
    let rss = Rss::in_tests(QUEUES);
    let mut workers = [0, 1].map(|worker| near.worker(worker, 2).unwrap());
    assert!(
        !workers[0].words().contains("source ports"),
        "veth tells nothing"
    );
    workers[0].shared.rss.set(rss.clone()).unwrap();
    assert!(workers[0].words().contains("source ports by queue"));
    for family in 0..2 {
        let target = SocketAddr::new(far.addresses[family], 53);
        for (worker, driver) in (0..).zip(&mut workers) {
            for _ in 0..64 {
                let client = driver.open_udp(&spec(None, Some(target))).unwrap();
                let local = driver.local_addr(client).unwrap();
                let queue = rss.queue(target, local).unwrap();
                assert_eq!(queue % 2, worker, "{local}");
                let flow = driver.flows.get(client).unwrap();
                assert_eq!(flow.queue as u32, queue / 2, "sent by the same one");
            }
            // The caller's own choice stays, whatever its queue.
            for port in 20_001..20_009 {
                let local = SocketAddr::new(near.addresses[family], port + 8 * worker as u16);
                let chosen = SocketSpec {
                    local: Some(local),
                    peer: Some(target),
                    ..SocketSpec::default()
                };
                let client = driver.open_udp(&chosen).unwrap();
                assert_eq!(driver.local_addr(client).unwrap(), local);
            }
        }
    }
}

#[test]
fn under_load_a_timer_reads_the_interface_until_there_is_little_and_leaves_with_the_program() {
    let Some(ends) = Wire::default().lay() else {
        return;
    };
    let mut pair = Pair::open(&ends, 0);
    if pair.far.read_pace.is_none() {
        eprintln!("not tried: this kernel has no settings of NAPI instances");
        return;
    }
    let is_on = |pair: &Pair| pair.far.read_pace.as_ref().unwrap().is_on();
    let device = pair.far.interface.device;
    ends[1].enter();
    let netlink = Generic::open().unwrap();
    assert!(pair.far.words().ends_with("read every 100 us under load"));
    pair.exchange(&PAYLOADS);
    assert!(!is_on(&pair));
    assert_eq!(netlink.timers(device).unwrap(), [0]);
    let many = vec![&[7; 44][..]; 200];
    pair.exchange(&many);
    assert!(is_on(&pair));
    assert_eq!(netlink.timers(device).unwrap(), [100_000]);
    for _ in 0..8 {
        pair.exchange(&[b"query"]);
    }
    assert!(!is_on(&pair));
    assert_eq!(netlink.timers(device).unwrap(), [0]);
    pair.exchange(&many);
    assert!(is_on(&pair));
    assert_eq!(
        pair.near.stats().receive_drops + pair.far.stats().receive_drops,
        0
    );
    let clock = Clock::start();
    drop(pair);
    // A child that another test is just starting may hold the program for a moment.
    loop {
        let timers = netlink.timers(device).unwrap();
        if timers.is_empty() {
            break;
        }
        assert_eq!(timers, [0]);
        assert!(clock.now() < Instant::ZERO + PATIENCE, "it is still there");
    }
}
