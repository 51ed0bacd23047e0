//! Connections over TCP (RFC 7766) and TLS (RFC 7858).

use driver::{Close, Event, SocketError, SocketId};
use hickory_proto::op::Message;
use proto::Transport;
use proto::tls::ClientTls;
use responder::certificate::{Identity, SelfSigned, self_signed};
use responder::{Behaviour, ConnectionEnd, Delay, Limits};

use crate::certificates;
use crate::network::{Target, at_ms, framed, id, ms, query, unframe};

fn target(change: impl FnOnce(&mut Behaviour)) -> Target {
    Target::new(|config| change(&mut config.behaviour))
}

fn queries(ids: std::ops::Range<u16>) -> Vec<u8> {
    framed(
        &ids.map(|id| query(id, "name.example A"))
            .collect::<Vec<_>>(),
    )
}

fn ids(messages: &[Vec<u8>]) -> Vec<u16> {
    messages.iter().map(|message| id(message)).collect()
}

#[test]
fn a_half_closed_connection_is_answered_fully_and_then_closed() {
    let mut target = target(|behaviour| behaviour.delay = Delay::Constant(ms(5)));
    let socket = target.connect(Transport::Tcp);
    target.send_bytes(socket, &queries(0..20));
    target.event(socket, Event::EndOfStream);
    assert_eq!(target.stream(socket).closed, None);
    target.run_until(at_ms(5));
    assert_eq!(ids(&target.messages(socket)), (0..20).collect::<Vec<_>>());
    assert_eq!(target.stream(socket).closed, Some(Close::Graceful));
    let counters = target.worker.counters();
    assert_eq!(counters.connections_closed.get(Transport::Tcp), 1);
    assert_eq!(counters.responses.get(Transport::Tcp), 20);
    assert_eq!(target.worker.connections(), 0);
}

#[test]
fn a_blocked_stream_keeps_its_octets_in_order_until_it_is_writable() {
    let mut target = target(|_| {});
    let socket = target.connect(Transport::Tcp);
    target.stream(socket).room = Some(70);
    target.send_bytes(socket, &queries(0..3));
    target.send_bytes(socket, &queries(3..6));
    target.event(socket, Event::EndOfStream);
    assert_eq!(
        (
            target.stream(socket).received.len(),
            target.stream(socket).closed
        ),
        (70, None)
    );
    for room in [1, 100, 1000] {
        target.stream(socket).room = Some(room);
        target.event(socket, Event::Writable);
    }
    assert_eq!(ids(&target.messages(socket)), [0, 1, 2, 3, 4, 5]);
    assert_eq!(target.stream(socket).closed, Some(Close::Graceful));
    assert_eq!(target.worker.counters().octets_sent.total(), 6 * 48);
}

#[test]
fn responses_beyond_what_may_wait_unsent_are_dropped_and_counted() {
    for delay in [Delay::None, Delay::Constant(ms(1))] {
        let mut target = Target::new(|config| {
            config.behaviour.delay = delay;
            config.limits = Limits {
                unsent_octets_max: 200,
                ..Limits::default()
            };
        });
        let socket = target.connect(Transport::Tcp);
        target.stream(socket).room = Some(0);
        for start in 0..10 {
            target.send_bytes(socket, &queries(start..start + 1));
        }
        target.run_until(at_ms(10));
        target.stream(socket).room = None;
        target.event(socket, Event::Writable);
        assert_eq!(target.messages(socket).len(), 5);
        let counters = target.worker.counters();
        assert_eq!(
            (counters.responses.total(), counters.unread_dropped),
            (5, 5)
        );
    }
}

#[test]
fn connections_beyond_the_cap_are_ended_at_once() {
    for how in [Close::Reset, Close::Graceful] {
        let mut target = target(|behaviour| {
            behaviour.tcp_clients_max = Some(2);
            behaviour.excess_is_reset = how == Close::Reset;
        });
        let first = target.connect(Transport::Tcp);
        let second = target.connect(Transport::Tcp);
        let third = target.connect(Transport::Tcp);
        assert_eq!(target.stream(second).closed, None);
        assert_eq!(target.stream(third).closed, Some(how));
        target.event(first, Event::EndOfStream);
        let fourth = target.connect(Transport::Tcp);
        assert_eq!(target.stream(fourth).closed, None);
        let counters = target.worker.counters();
        assert_eq!(counters.connections_accepted.total(), 3);
        assert_eq!(counters.connections_refused.total(), 1);
        assert_eq!(target.worker.connections(), 2);
    }
}

#[test]
fn idle_connections_are_closed() {
    let mut target = target(|behaviour| behaviour.idle_timeout = Some(ms(100)));
    let idle = target.connect(Transport::Tcp);
    let busy = target.connect(Transport::Tcp);
    for at in [50, 120, 200] {
        target.run_until(at_ms(at));
        target.send_bytes(busy, &queries(0..1));
    }
    assert_eq!(target.stream(idle).closed, Some(Close::Graceful));
    assert_eq!(target.stream(busy).closed, None);
    target.run_until(at_ms(299));
    assert_eq!(target.stream(busy).closed, None);
    target.run_until(at_ms(300));
    assert_eq!(target.stream(busy).closed, Some(Close::Graceful));
    assert_eq!(target.worker.counters().connections_idle, 2);
}

#[test]
fn silent_connections_are_closed_by_default() {
    let mut target = Target::new(|config| config.tls = Some(identity().server_config));
    let silent = [Transport::Tcp, Transport::Dot, Transport::Doh2]
        .map(|transport| (transport, target.connect(transport)));
    let asking = target.connect(Transport::Tcp);
    target.run_until(at_ms(9_999));
    assert_eq!(target.worker.connections(), 4);
    target.run_until(at_ms(10_000));
    for (transport, socket) in silent {
        let is_closed = target.stream(socket).closed.is_some();
        assert_eq!(is_closed, transport.has_tls(), "{transport}: no handshake");
    }
    target.run_until(at_ms(200_000));
    target.send_bytes(asking, &queries(0..1));
    target.run_until(at_ms(300_000));
    assert_eq!(target.stream(silent[0].1).closed, Some(Close::Graceful));
    assert_eq!(target.stream(asking).closed, None);
    target.run_until(at_ms(500_000));
    assert_eq!(target.stream(asking).closed, Some(Close::Graceful));
    let counters = target.worker.counters();
    assert_eq!(counters.handshakes_late, 2);
    assert_eq!(
        (counters.connections_idle, counters.handshakes_failed),
        (2, 2)
    );
}

#[test]
fn handshake_of_an_octet_at_a_time_is_too_long() {
    let mut target = Target::new(|config| config.tls = Some(identity().server_config));
    let socket = target.connect(Transport::Dot);
    for second in 0..10 {
        target.run_until(at_ms(1_000 * second));
        // A record of the handshake that never ends.
        target.send_bytes(
            socket,
            &[22, 3, 1, 2, 0, 1, 0, 1, 252, 3][second as usize..][..1],
        );
        assert_eq!(target.stream(socket).closed, None);
    }
    target.run_until(at_ms(10_000));
    assert!(target.stream(socket).closed.is_some());
    assert_eq!(target.worker.counters().handshakes_late, 1);
}

#[test]
fn an_idle_connection_that_awaits_a_response_gets_it() {
    let mut target = target(|behaviour| {
        behaviour.idle_timeout = Some(ms(100));
        behaviour.delay = Delay::Constant(ms(250));
    });
    let socket = target.connect(Transport::Tcp);
    target.send_bytes(socket, &queries(0..1));
    target.run_until(at_ms(1000));
    assert_eq!(target.messages(socket).len(), 1);
    assert_eq!(target.stream(socket).closed, Some(Close::Graceful));
}

#[test]
fn timers_of_connections_that_are_gone_do_not_pile_up() {
    let mut target = target(|behaviour| behaviour.idle_timeout = Some(ms(100)));
    for _ in 0..5000 {
        let socket = target.connect(Transport::Tcp);
        target.event(socket, Event::EndOfStream);
    }
    let kept = target.connect(Transport::Tcp);
    target.run_until(at_ms(99));
    assert_eq!(target.stream(kept).closed, None);
    target.run_until(at_ms(100));
    assert_eq!(target.stream(kept).closed, Some(Close::Graceful));
    assert_eq!(target.worker.counters().connections_idle, 1);
}

#[test]
fn a_connection_ends_after_its_last_query() {
    let cases = [
        (ConnectionEnd::Close, Some(Close::Graceful)),
        (ConnectionEnd::Reset, Some(Close::Reset)),
        (ConnectionEnd::HalfClose, None),
        (ConnectionEnd::TlsAlert, Some(Close::Graceful)),
        (ConnectionEnd::StopReading, None),
    ];
    for (end, closed) in cases {
        for delay in [Delay::None, Delay::Constant(ms(1))] {
            let mut target = target(|behaviour| {
                behaviour.end_after = Some((3, end));
                behaviour.delay = delay;
            });
            let socket = target.connect(Transport::Tcp);
            target.send_bytes(socket, &queries(0..2));
            assert_eq!(target.stream(socket).closed, None);
            target.send_bytes(socket, &queries(2..7));
            target.send_bytes(socket, &queries(7..9));
            target.run_until(at_ms(10));
            assert_eq!(ids(&target.messages(socket)), [0, 1, 2], "{end:?}");
            assert_eq!(target.stream(socket).closed, closed, "{end:?}");
            let finished = end == ConnectionEnd::HalfClose;
            assert_eq!(target.stream(socket).finished, finished, "{end:?}");
            let counters = target.worker.counters();
            assert_eq!(counters.queries.total(), 3);
            assert_eq!(counters.unanswered, 4);
        }
    }
}

#[test]
fn a_connection_can_stop_being_read() {
    let mut target = target(|behaviour| {
        behaviour.end_after = Some((1, ConnectionEnd::StopReading));
        behaviour.idle_timeout = Some(ms(100));
    });
    let socket = target.connect(Transport::Tcp);
    assert!(!target.stream(socket).paused);
    target.send_bytes(socket, &queries(0..2));
    assert!(target.stream(socket).paused);
    assert_eq!(ids(&target.messages(socket)), [0]);
    target.run_until(at_ms(100));
    assert_eq!(target.stream(socket).closed, Some(Close::Graceful));
}

#[test]
fn a_client_that_does_not_read_is_not_read_until_it_does() {
    let mut target = Target::new(|config| config.limits.unsent_octets_max = 1000);
    let socket = target.connect(Transport::Tcp);
    target.stream(socket).room = Some(0);
    target.send_bytes(socket, &queries(0..10));
    assert!(!target.stream(socket).paused);
    target.send_bytes(socket, &queries(10..12));
    assert!(target.stream(socket).paused);
    target.stream(socket).room = Some(100);
    target.event(socket, Event::Writable);
    assert!(!target.stream(socket).paused);
    target.stream(socket).room = None;
    target.event(socket, Event::Writable);
    assert_eq!(target.messages(socket).len(), 12);
}

#[test]
fn responses_to_a_broken_connection_are_counted() {
    let mut target = target(|behaviour| behaviour.delay = Delay::Constant(ms(5)));
    let socket = target.connect(Transport::Tcp);
    target.send_bytes(socket, &queries(0..4));
    target.event(socket, Event::Failed(SocketError::Reset));
    target.run_until(at_ms(10));
    let counters = target.worker.counters();
    assert_eq!((counters.orphaned, counters.responses.total()), (4, 0));
    assert_eq!(counters.connections_reset.get(Transport::Tcp), 1);
}

#[test]
fn an_oversized_response_fills_its_length_prefix() {
    let mut target = target(|behaviour| behaviour.faults.oversized = 1.0);
    let socket = target.connect(Transport::Tcp);
    target.send_bytes(socket, &queries(0..2));
    let messages = target.messages(socket);
    assert_eq!(
        messages.iter().map(Vec::len).collect::<Vec<_>>(),
        [65_535, 65_535]
    );
    Message::from_vec(&messages[0]).unwrap();
}

#[test]
fn duplicates_on_a_stream_are_framed_each() {
    let mut target = target(|behaviour| behaviour.duplicate_share = 1.0);
    let socket = target.connect(Transport::Tcp);
    target.send_bytes(socket, &queries(0..2));
    assert_eq!(ids(&target.messages(socket)), [0, 0, 1, 1]);
}

/// A DoT client of a target.
struct Client {
    target: Target,
    socket: SocketId,
    tls: ClientTls,
    plaintext: Vec<u8>,
    peer_closed: bool,
    failure: Option<String>,
}

fn identity() -> Identity {
    self_signed(&SelfSigned::default()).unwrap()
}

impl Client {
    fn new(trusted: &Identity, used: &Identity, change: impl FnOnce(&mut Behaviour)) -> Client {
        let mut target = Target::new(|config| {
            config.tls = Some(used.server_config.clone());
            change(&mut config.behaviour);
        });
        let socket = target.connect(Transport::Dot);
        let mut client = Client {
            target,
            socket,
            tls: certificates::client(&trusted.certificate_pem, "localhost"),
            plaintext: Vec::new(),
            peer_closed: false,
            failure: None,
        };
        client.exchange();
        client
    }

    fn connected(change: impl FnOnce(&mut Behaviour)) -> Client {
        let identity = identity();
        Client::new(&identity, &identity, change)
    }

    /// Moves octets both ways until neither side has any.
    fn exchange(&mut self) {
        for _ in 0..10 {
            let mut flight = Vec::new();
            self.tls.poll_transmit(&mut flight);
            if !flight.is_empty() && self.target.stream(self.socket).closed.is_none() {
                self.target.send_bytes(self.socket, &flight);
            }
            let back = std::mem::take(&mut self.target.stream(self.socket).received);
            match self.tls.handle_bytes(&back, &mut self.plaintext) {
                Ok(progress) => self.peer_closed |= progress.peer_closed,
                Err(failure) => self.failure = Some(format!("{failure:?}")),
            }
        }
    }

    fn ask(&mut self, ids: std::ops::Range<u16>) {
        self.tls.write(&queries(ids));
        self.exchange();
    }

    fn answered(&mut self) -> Vec<u16> {
        ids(&unframe(&std::mem::take(&mut self.plaintext)))
    }

    fn closed(&mut self) -> Option<Close> {
        self.target.stream(self.socket).closed
    }
}

#[test]
fn queries_over_tls_are_answered() {
    let mut client = Client::connected(|_| {});
    client.ask(0..30);
    client.ask(30..31);
    assert_eq!(client.answered(), (0..31).collect::<Vec<_>>());
    let counters = client.target.worker.counters();
    assert_eq!(counters.handshakes_completed, 1);
    assert_eq!(counters.queries.get(Transport::Dot), 31);
    assert_eq!(counters.responses.get(Transport::Dot), 31);
    assert!(counters.octets_sent.get(Transport::Dot) > 31 * 48);
}

#[test]
fn a_close_notify_is_answered_after_all_responses() {
    let mut client = Client::connected(|behaviour| behaviour.delay = Delay::Constant(ms(5)));
    client.ask(0..3);
    client.tls.close();
    client.exchange();
    assert_eq!(client.closed(), None);
    client.target.run_until(at_ms(5));
    client.exchange();
    assert_eq!(client.answered(), [0, 1, 2]);
    assert!(client.peer_closed);
    assert_eq!(client.closed(), Some(Close::Graceful));
}

#[test]
fn a_client_that_refuses_the_certificate_is_a_failed_handshake() {
    let mut client = Client::new(&identity(), &identity(), |_| {});
    assert!(
        client
            .failure
            .as_ref()
            .is_some_and(|failure| failure.contains("Certificate"))
    );
    assert_eq!(client.closed(), Some(Close::Graceful));
    let counters = client.target.worker.counters();
    assert_eq!(
        (counters.handshakes_completed, counters.handshakes_failed),
        (0, 1)
    );
}

#[test]
fn plain_dns_on_the_tls_port_is_a_failed_handshake() {
    let identity = identity();
    let mut target = Target::new(|config| config.tls = Some(identity.server_config.clone()));
    let socket = target.connect(Transport::Dot);
    target.send_bytes(socket, &queries(0..1));
    assert_eq!(target.stream(socket).closed, Some(Close::Graceful));
    let counters = target.worker.counters();
    assert_eq!(
        (counters.handshakes_failed, counters.queries.total()),
        (1, 0)
    );
    let cut_off = target.connect(Transport::Dot);
    target.event(cut_off, Event::EndOfStream);
    assert_eq!(target.worker.counters().handshakes_failed, 2);
}

#[test]
fn a_tls_connection_can_end_with_an_alert() {
    let mut client = Client::connected(|behaviour| {
        behaviour.end_after = Some((2, ConnectionEnd::TlsAlert));
    });
    client.ask(0..4);
    assert_eq!(client.answered(), [0, 1]);
    assert!(
        client
            .failure
            .as_ref()
            .is_some_and(|failure| failure.contains("Alert"))
    );
    assert_eq!(client.closed(), Some(Close::Graceful));
}

#[test]
fn a_tls_connection_can_be_half_closed() {
    let mut client = Client::connected(|behaviour| {
        behaviour.end_after = Some((2, ConnectionEnd::HalfClose));
    });
    client.ask(0..4);
    client.ask(4..5);
    assert_eq!(client.answered(), [0, 1]);
    assert!(client.peer_closed);
    assert_eq!((client.closed(), client.failure.take()), (None, None));
    client.target.event(client.socket, Event::EndOfStream);
    assert_eq!(client.closed(), Some(Close::Graceful));
}
