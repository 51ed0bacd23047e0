//! Whole drivers over a veth pair between two network namespaces, which are gone with their last
//! user. Needs root, as AF_XDP does; says so where it is not to be had.

use std::cell::Cell;
use std::fs::File;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::socket::check;

/// What is expected of every driver.
#[path = "../../tests/real/datagrams/mod.rs"]
mod datagrams;
mod drops;
mod queues;

/// No delivery over a veth pair takes that long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A number for each pair: all tests are one process, and names of interfaces are its keys.
static NUMBER: AtomicU32 = AtomicU32::new(1);

thread_local! {
    /// A tag for interfaces of kernels that have no VLAN interfaces.
    pub(super) static VLAN_IN_TESTS: Cell<Option<u16>> = const { Cell::new(None) };
}

/// One end of the pair: a namespace, and its interface.
struct End {
    namespace: OwnedFd,
    interface: String,
    addresses: [IpAddr; 2],
}

impl End {
    /// Moves the calling thread to a new namespace.
    fn new(interface: String, host: u8) -> io::Result<End> {
        // SAFETY: a plain system call; nothing else runs on this thread.
        check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
        Ok(End {
            namespace: File::open("/proc/thread-self/ns/net")?.into(),
            interface,
            addresses: [
                IpAddr::from([10, 77, 0, host]),
                IpAddr::from([0xfd77, 0, 0, 0, 0, 0, 0, u16::from(host)]),
            ],
        })
    }

    /// Moves the calling thread here; what it opens and starts then belongs here.
    fn enter(&self) {
        // SAFETY: a plain system call on an open descriptor.
        check(unsafe { libc::setns(self.namespace.as_raw_fd(), libc::CLONE_NEWNET) }).unwrap();
    }

    fn ip(&self, line: &str) {
        self.enter();
        done("ip", line);
    }

    fn driver(&self) -> io::Result<XdpDriver> {
        self.worker(0, 1)
    }

    fn worker(&self, worker: u32, workers: u32) -> io::Result<XdpDriver> {
        self.enter();
        let place = XdpPlace {
            interface: self.interface.parse().unwrap(),
            worker,
            workers,
        };
        XdpDriver::new(Clock::start(), SocketOptions::default(), place)
    }
}

fn done(program: &str, line: &str) {
    let output = Command::new(program)
        .args(line.split(' '))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {line}: {said}");
}

/// What the pair is like.
#[derive(Clone, Copy, Default)]
struct Wire {
    /// Queues at each end; 0 for one.
    queues: u32,
    /// The ends leave checksums to a network card that is not there.
    unfinished: bool,
}

impl Wire {
    /// Both ends; none without the rights to make them.
    fn lay(self) -> Option<[End; 2]> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let made =
            [("near", 1), ("far", 2)].map(|(name, host)| End::new(format!("{name}{number}"), host));
        let [Ok(near), Ok(far)] = made else {
            eprintln!("not tried: AF_XDP and network namespaces need root");
            return None;
        };
        let queues = self.queues.max(1);
        let many = format!("numtxqueues {queues} numrxqueues {queues}");
        let (a, b) = (&near.interface, &far.interface);
        let far_path = format!("/proc/self/fd/{}", far.namespace.as_raw_fd());
        near.enter();
        // The child has no descriptor of ours: it finds the namespace by process and number.
        let far_path = far_path.replace("self", &std::process::id().to_string());
        done(
            "ip",
            &format!("link add {a} {many} type veth peer name {b} {many}"),
        );
        done("ip", &format!("link set {b} netns {far_path}"));
        let [near, far] = [near, far].map(|end| self.set_up(end));
        Some([near, far])
    }

    fn set_up(self, end: End) -> End {
        end.enter();
        let name = end.interface.clone();
        if !self.unfinished {
            done(
                "ethtool",
                &format!("-K {name} tx off gso off gro off tso off"),
            );
        }
        done("ip", &format!("link set {name} up"));
        let [v4, v6] = end.addresses;
        end.ip(&format!("addr add {v4}/24 dev {}", end.interface));
        end.ip(&format!("addr add {v6}/64 dev {} nodad", end.interface));
        end
    }
}

fn next(driver: &mut XdpDriver, received: &mut Received) -> Event {
    let deadline = driver.now() + PATIENCE;
    while !driver.receive(received) || received.event == Event::Writable {
        assert!(driver.now() < deadline, "nothing was delivered");
        driver.wait(deadline);
    }
    received.event
}

fn outgoing(payloads: &[&[u8]], to: Option<SocketAddr>) -> Outgoing {
    let mut outgoing = Outgoing::default();
    for payload in payloads {
        let start = outgoing.octets.len();
        outgoing.octets.extend_from_slice(payload);
        outgoing.finish(start, to);
    }
    outgoing
}

fn spec(local: Option<IpAddr>, peer: Option<SocketAddr>) -> SocketSpec {
    SocketSpec {
        local: local.map(|ip| (ip, 0).into()),
        peer,
        ..SocketSpec::default()
    }
}

/// A server at one end, a client at the other, both with this driver.
struct Pair {
    near: XdpDriver,
    far: XdpDriver,
    client: SocketId,
    server: SocketId,
}

impl Pair {
    fn open(ends: &[End; 2], family: usize) -> Pair {
        let [near, far] = ends.each_ref().map(|end| end.driver().unwrap());
        Pair::with((near, far), ends, family)
    }

    fn with(
        (mut near, mut far): (XdpDriver, XdpDriver),
        [near_end, far_end]: &[End; 2],
        family: usize,
    ) -> Pair {
        far_end.enter();
        let address = far_end.addresses[family];
        let server = far.open_udp(&spec(Some(address), None)).unwrap();
        let target = far.local_addr(server).unwrap();
        near_end.enter();
        let client = near.open_udp(&spec(None, Some(target))).unwrap();
        Pair {
            near,
            far,
            client,
            server,
        }
    }

    /// Sends payloads there and back again and checks that they are the same.
    fn exchange(&mut self, payloads: &[&[u8]]) {
        let sent = self
            .near
            .send_datagrams(self.client, &outgoing(payloads, None));
        assert_eq!((sent.accepted, sent.error), (payloads.len(), None));
        self.near.flush();
        let mut received = Received::new();
        let mut seen = 0;
        while seen < payloads.len() {
            assert_eq!(next(&mut self.far, &mut received), Event::Datagrams);
            assert_eq!(received.socket, self.server);
            for datagram in received.datagrams.clone() {
                let octets = received.datagram(datagram).to_vec();
                assert_eq!(octets, payloads[seen]);
                seen += 1;
                let back = outgoing(&[&octets], Some(datagram.from));
                assert_eq!(self.far.send_datagrams(self.server, &back).accepted, 1);
            }
        }
        self.far.flush();
        let mut back = 0;
        while back < payloads.len() {
            assert_eq!(next(&mut self.near, &mut received), Event::Datagrams);
            assert_eq!(received.socket, self.client);
            for datagram in &received.datagrams {
                assert_eq!(received.datagram(*datagram), payloads[back]);
                back += 1;
            }
        }
    }
}

const PAYLOADS: [&[u8]; 6] = [&[1; 44], &[2; 1], &[], &[3; 512], &[4; 1_232], &[5; 1_400]];

#[test]
fn datagrams_go_there_and_back_over_ipv4_and_ipv6() {
    let Some(ends) = Wire::default().lay() else {
        return;
    };
    for family in 0..2 {
        let mut pair = Pair::open(&ends, family);
        pair.exchange(&PAYLOADS);
        for stats in [pair.near.stats(), pair.far.stats()] {
            let count = PAYLOADS.len() as u64;
            assert_eq!(
                (stats.datagrams_sent, stats.datagrams_received),
                (count, count)
            );
            assert_eq!(stats.xdp, XdpStats::default());
        }
        let words = pair.near.words();
        assert!(words.contains("native copy mode, 1 queue"), "{words}");
    }
}

/// A pair with its namespaces, to open sockets in.
struct Between {
    pair: [XdpDriver; 2],
    ends: [End; 2],
    family: usize,
}

impl datagrams::Ends for Between {
    type Driver = XdpDriver;

    fn near(&mut self) -> &mut XdpDriver {
        self.ends[0].enter();
        &mut self.pair[0]
    }

    fn far(&mut self) -> &mut XdpDriver {
        self.ends[1].enter();
        &mut self.pair[1]
    }

    fn far_address(&self) -> IpAddr {
        self.ends[1].addresses[self.family]
    }
}

#[test]
fn datagrams_are_treated_as_by_the_drivers_for_the_kernels_sockets() {
    let Some(ends) = Wire::default().lay() else {
        return;
    };
    let pair = ends.each_ref().map(|end| end.driver().unwrap());
    let mut between = Between {
        pair,
        ends,
        family: 0,
    };
    for family in 0..2 {
        between.family = family;
        let lengths = [44, 44, 44, 43, 60, 60, 12, 1_232, 1_232, 512];
        datagrams::arrive_in_order_and_whole(&mut between, &lengths);
        datagrams::arrive_in_order_and_whole(&mut between, &[65_507]);
        datagrams::are_refused_where_nobody_listens(&mut between);
    }
}

/// Puts a VLAN interface on each end, if the kernel has such interfaces.
fn with_vlan(ends: &mut [End; 2]) -> bool {
    ends.iter_mut().all(|end| {
        end.enter();
        let name = end.interface.clone();
        end.interface = format!("{name}.100");
        let new = &end.interface;
        let line = format!("ip link add link {name} name {new} type vlan id 100");
        let made = Command::new("sh").args(["-c", &line]).status().unwrap();
        let [v4, v6] = end.addresses;
        for line in [
            format!("addr flush dev {name}"),
            format!("link set {new} up"),
            format!("addr add {v4}/24 dev {new}"),
            format!("addr add {v6}/64 dev {new} nodad"),
        ] {
            if made.success() {
                end.ip(&line);
            }
        }
        made.success()
    })
}

#[test]
fn datagrams_of_a_vlan_interface_go_through_the_one_below_with_a_tag() {
    let Some(mut ends) = Wire::default().lay() else {
        return;
    };
    if !with_vlan(&mut ends) {
        eprintln!("not tried: this kernel has no VLAN interfaces");
        return;
    }
    for family in 0..2 {
        let mut pair = Pair::open(&ends, family);
        pair.exchange(&PAYLOADS);
        assert_eq!(pair.far.stats().xdp, XdpStats::default());
        let words = pair.near.words();
        assert!(words.contains("with VLAN tag 100"), "{words}");
    }
}

#[test]
fn frames_bear_the_tag_and_those_of_another_vlan_are_left_to_the_kernel() {
    let Some(ends) = Wire::default().lay() else {
        return;
    };
    for (family, vlan, sees) in [(0, 100, true), (1, 100, true), (0, 101, false)] {
        VLAN_IN_TESTS.set(Some(100));
        let far = ends[1].driver().unwrap();
        VLAN_IN_TESTS.set(Some(vlan));
        let near = ends[0].driver().unwrap();
        VLAN_IN_TESTS.set(None);
        let mut pair = Pair::with((near, far), &ends, family);
        if sees {
            pair.exchange(&PAYLOADS);
            continue;
        }
        pair.near
            .send_datagrams(pair.client, &outgoing(&[b"query"], None));
        pair.near.flush();
        assert!(!pair.far.receive(&mut Received::new()));
        assert_eq!(pair.far.stats().xdp, XdpStats::default());
    }
}

#[test]
fn many_more_datagrams_than_there_are_frames_get_through() {
    let Some(ends) = Wire::default().lay() else {
        return;
    };
    let mut pair = Pair::open(&ends, 0);
    // As many as surely fit into the ring of a veth pair: 256, less those being read.
    let payloads = vec![&[7; 44][..]; 200];
    for _ in 0..125 {
        pair.exchange(&payloads);
    }
    assert_eq!(pair.far.stats().datagrams_received, 25_000);
    assert_eq!(pair.far.stats().receive_drops, 0);
}

#[test]
fn what_no_frame_holds_goes_through_the_kernels_socket_both_ways() {
    let Some(ends) = Wire::default().lay() else {
        return;
    };
    for family in 0..2 {
        let mut pair = Pair::open(&ends, family);
        pair.exchange(&[&[9; 3_000]]);
        assert_eq!(pair.near.stats().xdp.sent_by_kernel, 1);
        assert_eq!(pair.near.stats().datagrams_received, 1);
    }
}

#[test]
fn a_wrong_checksum_is_counted_and_not_delivered() {
    let Some(ends) = Wire::default().lay() else {
        return;
    };
    let mut pair = Pair::open(&ends, 0);
    let flow = pair.near.flows.get(pair.client).unwrap();
    let (template, port) = (flow.template.clone().unwrap(), flow.peer.unwrap().port());
    for is_spoilt in [true, false] {
        let (place, frame) = pair.near.queues[0].frame().unwrap();
        template.write(b"query", port, frame);
        let octets = template.frame_octets(5);
        frame[octets - 1] ^= u8::from(is_spoilt);
        pair.near.queues[0].send(place, octets);
    }
    pair.near.flush();
    let mut received = Received::new();
    assert_eq!(next(&mut pair.far, &mut received), Event::Datagrams);
    assert_eq!(received.datagrams.len(), 1);
    assert_eq!(received.datagram(received.datagrams[0]), b"query");
    assert_eq!(pair.far.stats().xdp.checksums_wrong, 1);
}

#[test]
fn a_checksum_left_to_a_card_that_is_not_there_is_taken_for_right_and_counted() {
    let wire = Wire {
        unfinished: true,
        ..Wire::default()
    };
    let Some([near, far]) = wire.lay() else {
        return;
    };
    far.enter();
    let server = UdpSocket::bind((far.addresses[0], 0)).unwrap();
    let mut driver = near.driver().unwrap();
    let target = server.local_addr().unwrap();
    let client = driver.open_udp(&spec(None, Some(target))).unwrap();
    driver.send_datagrams(client, &outgoing(&[b"query"], None));
    driver.flush();
    let mut buffer = [0; 16];
    let (octets, from) = server.recv_from(&mut buffer).unwrap();
    server.send_to(&buffer[..octets], from).unwrap();
    let mut received = Received::new();
    assert_eq!(next(&mut driver, &mut received), Event::Datagrams);
    assert_eq!(received.datagram(received.datagrams[0]), b"query");
    assert_eq!(driver.stats().xdp.checksums_unfinished, 1);
}

#[test]
fn a_port_that_nobody_listens_on_is_reported_as_refused() {
    let Some([near, far]) = Wire::default().lay() else {
        return;
    };
    far.enter();
    let gone = UdpSocket::bind((far.addresses[0], 0))
        .unwrap()
        .local_addr()
        .unwrap();
    let mut driver = near.driver().unwrap();
    let client = driver.open_udp(&spec(None, Some(gone))).unwrap();
    driver.send_datagrams(client, &outgoing(&[b"query"], None));
    driver.flush();
    let mut received = Received::new();
    let refused = Event::DatagramError(SocketError::Refused);
    assert_eq!(next(&mut driver, &mut received), refused);
}

#[test]
fn what_cannot_be_had_is_said_with_the_reason() {
    let Some([near, far]) = Wire::default().lay() else {
        return;
    };
    let holder = near.driver().unwrap();
    let says = |driver: io::Result<XdpDriver>, reason: &str| {
        let text = driver.map(|_| ()).unwrap_err().to_string();
        assert!(text.contains(reason), "{text}");
    };
    says(near.worker(0, 2), "in use for XDP already");
    says(far.worker(0, 2), "1 receive queue(s) for 2 workers");
    drop(holder);
    let mut driver = near.driver().unwrap();
    let opened = |driver: &mut XdpDriver, peer: [u8; 4], reason: &str| {
        let target = SocketAddr::from((peer, 53));
        let text = driver
            .open_udp(&spec(None, Some(target)))
            .unwrap_err()
            .to_string();
        assert!(text.contains(reason), "{text}");
    };
    opened(&mut driver, [10, 77, 0, 9], "does not answer on `near");
    opened(
        &mut driver,
        [10, 77, 0, 1],
        "leads over `lo`, not over `near",
    );
    let any = spec(Some([0, 0, 0, 0].into()), None);
    let text = driver.open_udp(&any).unwrap_err().to_string();
    assert!(text.contains("needs the address to listen on"), "{text}");
}

#[test]
fn a_socket_without_a_frame_to_send_with_waits_until_it_is_told() {
    let Some(ends) = Wire::default().lay() else {
        return;
    };
    let mut pair = Pair::open(&ends, 0);
    let frames = std::mem::take(pair.near.queues[0].free_frames());
    let query = outgoing(&[b"query"], None);
    for _ in 0..2 {
        let outcome = pair.near.send_datagrams(pair.client, &query);
        assert_eq!((outcome.accepted, outcome.error), (0, None));
    }
    let mut received = Received::new();
    assert!(!pair.near.receive(&mut received));
    *pair.near.queues[0].free_frames() = frames;
    assert!(pair.near.receive(&mut received));
    assert_eq!(
        (received.socket, received.event),
        (pair.client, Event::Writable)
    );
    assert_eq!(pair.near.stats().xdp.transmit_full, 2);
    pair.exchange(&PAYLOADS);
}
