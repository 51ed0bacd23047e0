//! Both ends of the null network, as workers see them.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use super::*;
use crate::Event;

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

const SERVER: &str = "127.0.0.1:53";

fn server() -> SocketSpec {
    SocketSpec {
        local: Some(address(SERVER)),
        ..SocketSpec::default()
    }
}

fn client() -> SocketSpec {
    SocketSpec {
        peer: Some(address(SERVER)),
        ..SocketSpec::default()
    }
}

fn outgoing(messages: &[(&str, Option<SocketAddr>)]) -> Outgoing {
    let mut outgoing = Outgoing::default();
    for (message, to) in messages {
        let start = outgoing.octets.len();
        outgoing.octets.extend_from_slice(message.as_bytes());
        outgoing.finish(start, *to);
    }
    outgoing
}

fn texts(received: &Received) -> Vec<(String, SocketAddr)> {
    let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).unwrap();
    let datagrams = received.datagrams.iter();
    datagrams
        .map(|it| (text(received.datagram(*it)), it.from))
        .collect()
}

/// Every event that an end has, with the octets of streams.
fn events(driver: &mut NullDriver) -> Vec<(SocketId, Event, String)> {
    let mut received = Received::new();
    let mut events = Vec::new();
    while driver.receive(&mut received) {
        let text = String::from_utf8(received.bytes().to_vec()).unwrap();
        events.push((received.socket, received.event, text));
    }
    events
}

/// A stream from client to server, with everything told that belongs to connecting.
fn connected() -> (NullDriver, SocketId, NullDriver, SocketId) {
    let (mut near, mut far) = pair(NullTime::Virtual);
    let listener = far.listen_tcp(&server()).unwrap();
    let socket = near.connect_tcp(&client()).unwrap();
    let peer = near.local_addr(socket).unwrap();
    assert_eq!(
        events(&mut near),
        [(socket, Event::Connected, String::new())]
    );
    let told = events(&mut far);
    let accepted = told[0].0;
    let expected = Event::Accepted { listener, peer };
    assert_eq!(told, [(accepted, expected, String::new())]);
    (near, socket, far, accepted)
}

#[test]
fn datagrams_arrive_at_once_in_order_and_with_their_source() {
    let (mut near, mut far) = pair(NullTime::Virtual);
    let there = far.open_udp(&server()).unwrap();
    let [first, second] = [(); 2].map(|()| near.open_udp(&client()).unwrap());
    let [from, other] = [first, second].map(|socket| near.local_addr(socket).unwrap());
    assert_ne!(from, other);
    let sent = near.send_datagrams(first, &outgoing(&[("a", None), ("bc", None)]));
    assert_eq!(sent.accepted, 2);
    near.send_datagrams(second, &outgoing(&[("d", None)]));

    let mut received = Received::new();
    assert!(far.receive(&mut received));
    let expected = [("a", from), ("bc", from), ("d", other)];
    let expected = expected.map(|(text, from)| (text.to_owned(), from));
    assert_eq!(texts(&received), expected);
    assert!(!far.receive(&mut received));

    let back = outgoing(&[("x", Some(other)), ("y", Some(from)), ("z", Some(other))]);
    assert_eq!(far.send_datagrams(there, &back).accepted, 3);
    let from_server = |text: &str| (text.to_owned(), address(SERVER));
    assert!(near.receive(&mut received));
    assert_eq!(
        (received.socket, texts(&received)),
        (second, vec![from_server("x"), from_server("z")])
    );
    assert!(near.receive(&mut received));
    assert_eq!(
        (received.socket, texts(&received)),
        (first, vec![from_server("y")])
    );
    assert!(!near.receive(&mut received));
}

#[test]
fn datagrams_to_nobody_are_gone() {
    let (mut near, mut far) = pair(NullTime::Virtual);
    let socket = near.open_udp(&client()).unwrap();
    assert_eq!(
        near.send_datagrams(socket, &outgoing(&[("a", None)]))
            .accepted,
        1
    );
    far.open_udp(&server()).unwrap();
    assert_eq!(events(&mut far), []);
    near.close(socket, Close::Graceful);
    let refused = near.send_datagrams(socket, &outgoing(&[("a", None)]));
    assert_eq!(refused.accepted, 0);
}

#[test]
fn ports_are_given_once() {
    let (_, mut far) = pair(NullTime::Virtual);
    far.open_udp(&server()).unwrap();
    assert_eq!(
        far.open_udp(&server()).unwrap_err().kind(),
        io::ErrorKind::AddrInUse
    );
    far.listen_tcp(&server()).unwrap();
    let any = SocketSpec {
        local: Some(address("127.0.0.1:0")),
        ..SocketSpec::default()
    };
    let free = far.open_udp(&any).unwrap();
    assert_ne!(far.local_addr(free).unwrap().port(), 0);
}

#[test]
fn octets_of_a_stream_arrive_in_one_delivery_and_wait_while_reading_is_paused() {
    let (mut near, here, mut far, there) = connected();
    assert_eq!(near.send_bytes(here, b"ab"), Ok(2));
    assert_eq!(near.send_bytes(here, b"cd"), Ok(2));
    assert_eq!(events(&mut far), [(there, Event::Bytes, "abcd".to_owned())]);
    far.pause_reading(there, true);
    near.send_bytes(here, b"e").unwrap();
    near.finish_sending(here);
    assert_eq!(events(&mut far), []);
    far.pause_reading(there, false);
    let expected = [
        (there, Event::Bytes, "e".to_owned()),
        (there, Event::EndOfStream, String::new()),
    ];
    assert_eq!(events(&mut far), expected);
    // The other direction is still open.
    assert_eq!(far.send_bytes(there, b"f"), Ok(1));
    assert_eq!(events(&mut near), [(here, Event::Bytes, "f".to_owned())]);
}

#[test]
fn streams_end_as_they_were_closed() {
    let ended = |how| {
        let (mut near, here, mut far, there) = connected();
        near.send_bytes(here, b"last").unwrap();
        near.close(here, how);
        let told = events(&mut far);
        let told: Vec<Event> = told.into_iter().map(|(_, event, _)| event).collect();
        (told, far.send_bytes(there, b"x"))
    };
    let broken = Err(SocketError::Reset);
    let (events, sent) = ended(Close::Graceful);
    assert_eq!(
        (events, sent),
        (vec![Event::Bytes, Event::EndOfStream], broken)
    );
    let (events, sent) = ended(Close::Reset);
    assert_eq!(
        (events, sent),
        (vec![Event::Failed(SocketError::Reset)], broken)
    );
}

#[test]
fn connecting_where_nobody_listens_is_refused() {
    let (mut near, _) = pair(NullTime::Virtual);
    assert_eq!(
        near.connect_tcp(&client()).unwrap_err(),
        SocketError::Refused
    );
}

#[test]
fn virtual_time_goes_on_with_waits_alone() {
    let (mut near, mut far) = pair(NullTime::Virtual);
    let start = near.now();
    assert_eq!(near.now(), start);
    let later = start + Duration::from_secs(1);
    near.wait(later);
    assert_eq!((near.now(), far.now()), (later, later), "nothing was ready");
    far.open_udp(&server()).unwrap();
    let socket = near.open_udp(&client()).unwrap();
    near.send_datagrams(socket, &outgoing(&[("a", None)]));
    near.wait(later + Duration::from_secs(1));
    assert_eq!(near.now(), later + STEP, "the other end has something");
}
