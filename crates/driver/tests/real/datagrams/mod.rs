//! What every driver does with datagrams between two ends, whatever is between them: the kernel's
//! sockets on loopback (`tests/real/sockets.rs`), AF_XDP over a veth pair (`src/xdp/tests.rs`,
//! where threads may move to another network namespace).

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use driver::{Close, Driver, Event, Outgoing, Received, SocketError, SocketId, SocketSpec};

/// No delivery over loopback or a veth pair takes that long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A driver that asks and one that answers.
pub(super) trait Ends {
    /// The one that both have.
    type Driver: Driver;

    /// The one that asks; the calling thread is then where its sockets are to be opened.
    fn near(&mut self) -> &mut Self::Driver;

    /// The one that answers, likewise.
    fn far(&mut self) -> &mut Self::Driver;

    /// Where the other one reaches it.
    fn far_address(&self) -> IpAddr;

    /// A server's socket, its address, and a client's socket connected to it.
    fn open(&mut self) -> (SocketId, SocketAddr, SocketId) {
        let local = Some(SocketAddr::new(self.far_address(), 0));
        let far = self.far();
        let spec = SocketSpec {
            local,
            ..SocketSpec::default()
        };
        let server = far.open_udp(&spec).unwrap();
        let address = far.local_addr(server).unwrap();
        let spec = SocketSpec {
            peer: Some(address),
            ..SocketSpec::default()
        };
        let client = self.near().open_udp(&spec).unwrap();
        (server, address, client)
    }
}

/// Waits for the next delivery that is not `Writable`.
fn next(driver: &mut impl Driver, received: &mut Received) -> Event {
    let deadline = driver.now() + PATIENCE;
    loop {
        while !driver.receive(received) {
            assert!(driver.now() < deadline, "nothing was delivered");
            driver.wait(deadline);
        }
        if received.event != Event::Writable {
            return received.event;
        }
    }
}

/// Sends all or fails; the driver then has had its turn.
fn send(driver: &mut impl Driver, socket: SocketId, outgoing: &Outgoing) {
    let outcome = driver.send_datagrams(socket, outgoing);
    assert_eq!(
        (outcome.accepted, outcome.error),
        (outgoing.datagrams.len(), None)
    );
    let now = driver.now();
    driver.wait(now);
}

/// Datagrams of these lengths, each of its number over and over.
pub(super) fn outgoing(lengths: &[usize]) -> Outgoing {
    let mut outgoing = Outgoing::default();
    for (number, length) in lengths.iter().enumerate() {
        let start = outgoing.octets.len();
        outgoing.octets.extend(vec![number as u8; *length]);
        outgoing.finish(start, None);
    }
    outgoing
}

/// Datagrams that a client sends reach the server in order, whole and from the client's port, and
/// what the server sends back reaches the client.
pub(super) fn arrive_in_order_and_whole(ends: &mut impl Ends, lengths: &[usize]) {
    let (server, _, client) = ends.open();
    send(ends.near(), client, &outgoing(lengths));
    let port = ends.near().local_addr(client).unwrap().port();
    let mut received = Received::new();
    let (mut seen, mut back) = (Vec::new(), Outgoing::default());
    while seen.len() < lengths.len() {
        assert_eq!(next(ends.far(), &mut received), Event::Datagrams);
        assert_eq!(received.socket, server);
        for datagram in &received.datagrams {
            let octets = received.datagram(*datagram);
            let is_one = octets.iter().all(|octet| usize::from(*octet) == seen.len());
            assert!(is_one, "datagrams were mixed");
            assert_eq!(datagram.from.port(), port);
            seen.push(octets.len());
            let start = back.octets.len();
            back.octets.extend(&octets[..octets.len().min(44)]);
            back.finish(start, Some(datagram.from));
        }
    }
    assert_eq!(seen, lengths, "in order and with their lengths");
    send(ends.far(), server, &back);
    let mut answered = 0;
    while answered < lengths.len() {
        assert_eq!(next(ends.near(), &mut received), Event::Datagrams);
        assert_eq!(received.socket, client);
        answered += received.datagrams.len();
    }
    ends.near().close(client, Close::Graceful);
    ends.far().close(server, Close::Graceful);
}

/// A client learns that its target port has no listener.
pub(super) fn are_refused_where_nobody_listens(ends: &mut impl Ends) {
    let (server, _, client) = ends.open();
    ends.far().close(server, Close::Graceful);
    send(ends.near(), client, &outgoing(&[44]));
    let refused = Event::DatagramError(SocketError::Refused);
    assert_eq!(next(ends.near(), &mut Received::new()), refused);
}
