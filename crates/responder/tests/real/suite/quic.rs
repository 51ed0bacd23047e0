//! DoQ (RFC 9250) and DoH over HTTP/3 (RFC 9114): the crate's own client against a worker on a
//! network in memory.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use driver::{Close, Driver};
use proto::doh::{DohRequest, Method};
use proto::exchange::ExchangeEnd;
use proto::quic::{
    Blocked, By, ClientProtocol, Clock, ConnectionKey, LostReason, QuicClient, QuicClientOptions,
    QuicEvent,
};
use proto::tls::{
    ClientSession, ClientTlsOptions, EarlyData, HandshakeKind, Roots, ServerTlsOptions, Tickets,
    client_config,
};
use proto::{Instant, Transport, tls::rustls};
use responder::certificate::{SelfSigned, self_signed};
use responder::{Behaviour, ConnectionEnd, Counters, Delay, Limits, QuicShares, ResponderConfig};

use crate::network::{Target, at_ms, client, ms, query};

/// How an exchange ended, without borrows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// NOERROR and one of the other RCODEs.
    Rcode(u8),
    Other(ExchangeEnd<'static>),
}

/// Clients, each with a port of its own, and their target.
pub(crate) struct Quic {
    pub(crate) target: Target,
    client: QuicClient,
    transport: Transport,
    tls: Arc<rustls::ClientConfig>,
    keys: Vec<ConnectionKey>,
    /// Clients that neither send nor read.
    deaf: BTreeSet<usize>,
    pub(crate) ends: Vec<(u32, End)>,
    pub(crate) handshakes: Vec<(HandshakeKind, EarlyData)>,
    is_going_away: bool,
    pub(crate) lost: Vec<LostReason>,
}

const BOTH: [Transport; 2] = [Transport::Doq, Transport::Doh3];

impl Quic {
    pub(crate) fn new(transport: Transport, change: impl FnOnce(&mut ResponderConfig)) -> Quic {
        let identity = self_signed(&SelfSigned::default()).unwrap();
        let options = ServerTlsOptions {
            tickets: Tickets::Stored {
                count: 2,
                sessions_max: 10,
            },
            early_data_octets_max: 16_384,
            ..ServerTlsOptions::default()
        };
        let target = Target::new(|config| {
            config.listen = vec![(transport, client(0))];
            config.tls = Some(identity.config(transport, &options).unwrap());
            change(config);
        });
        let tls = client_config(&ClientTlsOptions {
            roots: Roots::Pem(identity.certificate_pem.into_bytes()),
            resumption: true,
            early_data: true,
            ..ClientTlsOptions::default()
        });
        let request = DohRequest::new(Method::Post, "https://localhost/dns-query", &[]).unwrap();
        let protocol = match transport {
            Transport::Doq => ClientProtocol::Doq,
            _ => ClientProtocol::Http3(Arc::new(request)),
        };
        let client = QuicClient::new(QuicClientOptions {
            protocol,
            idle_timeout: Some(ms(5_000)),
            keep_alive: None,
            seed: [3; 32],
            clock: Clock::new(std::time::Instant::now()),
        });
        Quic {
            target,
            client,
            transport,
            tls: tls.unwrap(),
            keys: Vec::new(),
            deaf: BTreeSet::new(),
            ends: Vec::new(),
            handshakes: Vec::new(),
            is_going_away: false,
            lost: Vec::new(),
        }
    }

    fn behaving(transport: Transport, change: impl FnOnce(&mut Behaviour)) -> Quic {
        Quic::new(transport, |config| change(&mut config.behaviour))
    }

    fn now(&mut self) -> Instant {
        self.target.network.now()
    }

    /// Connects one more client and lets the handshake run.
    pub(crate) fn connect(&mut self) -> usize {
        self.connect_with(ClientSession::default())
    }

    fn connect_with(&mut self, memory: ClientSession) -> usize {
        let now = self.now();
        let (tls, name) = (&self.tls, "localhost");
        let key = self
            .client
            .connect_remembering(now, tls, name, memory, true);
        self.keys.push(key.unwrap());
        self.keys.len() - 1
    }

    fn connected(transport: Transport, change: impl FnOnce(&mut ResponderConfig)) -> Quic {
        let mut quic = Quic::new(transport, change);
        quic.connect();
        quic.run(ms(100));
        assert_eq!((quic.handshakes.len(), &quic.lost[..]), (1, &[][..]));
        quic
    }

    pub(crate) fn ask(
        &mut self,
        client: usize,
        tokens: std::ops::Range<u32>,
    ) -> Result<(), Blocked> {
        let now = self.now();
        for token in tokens {
            let message = query(0, "name.example A");
            self.client
                .request(now, self.keys[client], &message, token)?;
        }
        Ok(())
    }

    /// Moves datagrams both ways at once until there are none left.
    fn exchange(&mut self) {
        while self.exchange_once() > 0 {}
    }

    /// Moves pending datagrams from the clients to the target, and back; returns how many came
    /// back.
    pub(crate) fn exchange_once(&mut self) -> usize {
        let mut moved = 0;
        for index in 0..self.keys.len() {
            if !self.deaf.contains(&index) {
                moved += self.send(index);
            }
        }
        let sent = std::mem::take(&mut self.target.network.sent);
        for (at, to, datagram) in sent {
            let index = usize::from(to.port() - 1_000);
            if let Some(&key) = self.keys.get(index)
                && !self.deaf.contains(&index)
            {
                moved += 1;
                self.client.handle_datagram(at, key, &datagram);
            }
        }
        moved
    }

    /// Sends a client's pending datagrams; returns their number.
    pub(crate) fn send(&mut self, index: usize) -> usize {
        self.poll_events(index);
        let now = self.now();
        let mut octets = Vec::new();
        let mut sent = 0;
        while let Some(burst) = self
            .client
            .poll_transmit(now, self.keys[index], &mut octets, 10)
        {
            let datagrams: Vec<_> = octets
                .chunks(burst.datagram_octets)
                .map(<[u8]>::to_vec)
                .collect();
            octets.clear();
            sent += datagrams.len();
            let port = 1_000 + index as u16;
            self.target
                .send_datagrams_to(self.transport, port, &datagrams);
        }
        sent
    }

    /// From now on a client neither sends nor reads.
    pub(crate) fn deafen(&mut self, index: usize) {
        self.deaf.insert(index);
    }

    /// The first datagram of a client that is forgotten at once.
    pub(crate) fn initial(&mut self) -> Vec<u8> {
        let index = self.connect();
        let key = self.keys.remove(index);
        let (now, mut octets) = (self.now(), Vec::new());
        let burst = self.client.poll_transmit(now, key, &mut octets, 1);
        octets.truncate(burst.unwrap().datagram_octets);
        self.client.forget(key);
        octets
    }

    fn poll_events(&mut self, index: usize) {
        while let Some(event) = self.client.poll_event(self.keys[index]) {
            match event {
                QuicEvent::Established(established) => {
                    let handshake = established.handshake;
                    self.handshakes.push((handshake.kind, handshake.early_data));
                }
                QuicEvent::Exchange { token, end } => {
                    let end = match end {
                        ExchangeEnd::Message(message) => End::Rcode(message[3] & 15),
                        ExchangeEnd::HttpStatus(status) => {
                            End::Other(ExchangeEnd::HttpStatus(status))
                        }
                        ExchangeEnd::Reset(code) => End::Other(ExchangeEnd::Reset(code)),
                        ExchangeEnd::NotProcessed => End::Other(ExchangeEnd::NotProcessed),
                        ExchangeEnd::Malformed => End::Other(ExchangeEnd::Malformed),
                        other => panic!("{other:?}"),
                    };
                    self.ends.push((token, end));
                }
                QuicEvent::StreamsAvailable => {}
                QuicEvent::GoingAway => self.is_going_away = true,
                QuicEvent::Lost(reason) => self.lost.push(reason),
            }
        }
    }

    /// Runs for a time, with all timers of both sides.
    pub(crate) fn run(&mut self, span: Duration) {
        let end = self.now() + span;
        for _ in 0..10_000 {
            self.exchange();
            let mut next = self.target.next_turn;
            for key in self.awake() {
                next = next.min(self.client.timeout(key).unwrap_or(Instant::FAR_FUTURE));
            }
            if next > end {
                self.target.network.wait(end);
                return;
            }
            let next = next.max(self.now());
            self.target.network.wait(next);
            for key in self.awake() {
                if self.client.timeout(key).is_some_and(|due| due <= next) {
                    self.client.handle_timeout(next, key);
                }
            }
            self.target.step();
        }
        panic!("the two sides never fall silent");
    }

    /// The clients that are not deaf.
    fn awake(&self) -> Vec<ConnectionKey> {
        let keys = self.keys.iter().enumerate();
        let awake = keys.filter(|(index, _)| !self.deaf.contains(index));
        awake.map(|(_, key)| *key).collect()
    }

    pub(crate) fn counters(&self) -> &Counters {
        self.target.worker.counters()
    }

    /// How many exchanges ended so.
    fn ended(&self, end: &End) -> usize {
        self.ends.iter().filter(|(_, each)| each == end).count()
    }
}

const ANSWERED: End = End::Rcode(0);

#[test]
fn queries_are_answered_and_counted_the_same_at_both_ends() {
    for transport in BOTH {
        let mut quic = Quic::connected(transport, |_| {});
        for first in (0..500).step_by(50) {
            quic.ask(0, first..first + 50).unwrap();
            quic.run(ms(50));
        }
        assert_eq!(quic.ended(&ANSWERED), 500);
        let counters = quic.counters();
        assert_eq!(counters.queries.get(transport), 500);
        assert_eq!(counters.responses.get(transport), 500);
        assert_eq!(counters.rcodes[0], 500);
        assert_eq!(counters.connections_accepted.get(transport), 1);
        assert_eq!(counters.handshakes_completed, 1);
        let requests = if transport == Transport::Doh3 { 500 } else { 0 };
        assert_eq!(counters.http_requests, requests);
        let key = quic.keys[0];
        let (sent, received) = quic.client.udp_octets(key).unwrap();
        assert_eq!(quic.counters().octets_received.get(transport), sent);
        assert_eq!(quic.counters().octets_sent.get(transport), received);
        assert_eq!(quic.target.worker.connections(), 1);
    }
}

#[test]
fn responses_are_delayed_lost_and_changed_as_programmed() {
    for transport in BOTH {
        let mut quic = Quic::connected(transport, |config| {
            config.behaviour.delay = Delay::Constant(ms(30));
            config.behaviour.faults.loss = 0.25;
            config.behaviour.faults.rcodes = vec![(2, 0.25)];
        });
        let begun = quic.now();
        for first in (0..400).step_by(20) {
            quic.ask(0, first..first + 20).unwrap();
            quic.run(ms(29));
            assert!(quic.ends.len() <= first as usize, "none before its delay");
            quic.run(ms(1));
            let now = quic.now();
            let open: Vec<u32> = (first..first + 20).collect();
            for token in open {
                // The lost ones must not use up the streams that are allowed.
                quic.client.cancel(now, quic.keys[0], token);
            }
        }
        assert_eq!(quic.now(), begun + ms(30 * 20));
        let (noerror, servfail) = (quic.ended(&ANSWERED), quic.ended(&End::Rcode(2)));
        let lost = quic.counters().lost as usize;
        assert_eq!(noerror + servfail + lost, 400);
        assert!((60..140).contains(&servfail), "{servfail}");
        assert!((60..140).contains(&lost), "{lost}");
        quic.run(ms(100));
        assert_eq!(quic.counters().streams_cancelled, lost as u64);
    }
}

#[test]
fn streams_are_reset_and_statuses_sent_as_programmed() {
    let mut quic = Quic::connected(Transport::Doh3, |config| {
        config.behaviour.faults.reset = 0.3;
        config.behaviour.faults.http_statuses = vec![(429, 0.2), (503, 0.2)];
    });
    for first in (0..200).step_by(50) {
        quic.ask(0, first..first + 50).unwrap();
        quic.run(ms(50));
    }
    let reset = quic.ended(&End::Other(ExchangeEnd::Reset(0x102)));
    let status = |status| End::Other(ExchangeEnd::HttpStatus(status));
    let statuses = quic.ended(&status(429)) + quic.ended(&status(503));
    assert_eq!(quic.counters().streams_reset, reset as u64);
    assert_eq!(quic.counters().http_statuses, statuses as u64);
    assert!(reset > 30 && quic.ended(&status(429)) > 20 && quic.ended(&status(503)) > 20);
    assert_eq!(reset + statuses + quic.ended(&ANSWERED), 200);

    let mut quic = Quic::connected(Transport::Doq, |config| {
        config.behaviour.faults.reset = 0.3;
    });
    quic.ask(0, 0..100).unwrap();
    quic.run(ms(50));
    let reset = quic.ended(&End::Other(ExchangeEnd::Reset(1)));
    assert!(reset > 10 && reset + quic.ended(&ANSWERED) == 100);
}

#[test]
fn connection_ends_after_its_last_answer_as_programmed() {
    let application = |code| LostReason::Application { code, by: By::Peer };
    for (transport, end, reason) in [
        (Transport::Doq, ConnectionEnd::Close, application(0)),
        (Transport::Doh3, ConnectionEnd::Close, application(0x100)),
        (Transport::Doq, ConnectionEnd::GoAway, application(0)),
        (Transport::Doq, ConnectionEnd::TlsAlert, application(1)),
        (Transport::Doq, ConnectionEnd::Error(4), application(4)),
        (
            Transport::Doh3,
            ConnectionEnd::Error(0x107),
            application(0x107),
        ),
    ] {
        let mut quic = Quic::connected(transport, |config| {
            config.behaviour.end_after = Some((10, end));
            config.behaviour.delay = Delay::Constant(ms(3));
        });
        quic.ask(0, 0..10).unwrap();
        quic.run(ms(200));
        assert_eq!(quic.lost, [reason], "{transport} {end:?}");
        assert_eq!(quic.ended(&ANSWERED), 10, "{transport} {end:?}");
        assert_eq!(quic.counters().connections_closed.get(transport), 1);
        assert_eq!(quic.target.worker.connections(), 0);
    }
}

#[test]
fn forgotten_connection_is_reset_without_state() {
    for transport in BOTH {
        let mut quic = Quic::connected(transport, |config| {
            config.behaviour.end_after = Some((10, ConnectionEnd::Reset));
        });
        quic.ask(0, 0..10).unwrap();
        quic.run(ms(200));
        assert_eq!(quic.ended(&ANSWERED), 10);
        let _ = quic.ask(0, 10..11);
        quic.run(ms(200));
        assert_eq!(quic.lost, [LostReason::StatelessReset]);
        let counters = quic.counters();
        assert_eq!(
            (counters.quic_forgotten, counters.connections_reset.total()),
            (1, 1)
        );
        assert!(counters.quic_answered >= 1);
    }
}

#[test]
fn goaway_refuses_requests_beyond_it() {
    let mut quic = Quic::connected(Transport::Doh3, |config| {
        config.behaviour.end_after = Some((5, ConnectionEnd::GoAway));
    });
    quic.ask(0, 0..8).unwrap();
    quic.run(ms(200));
    assert!(quic.is_going_away);
    assert_eq!(quic.ended(&ANSWERED), 5);
    assert_eq!(quic.counters().goaways, 1);
    assert_eq!(quic.ask(0, 8..9), Err(Blocked::GoingAway));
    assert_eq!(quic.lost, []);
}

#[test]
fn silent_connection_stays_open_and_answers_nothing() {
    let mut quic = Quic::connected(Transport::Doq, |config| {
        config.behaviour.end_after = Some((5, ConnectionEnd::HalfClose));
    });
    quic.ask(0, 0..8).unwrap();
    quic.run(ms(200));
    assert_eq!((quic.ended(&ANSWERED), quic.counters().unanswered), (5, 3));
    assert_eq!(
        (&quic.lost[..], quic.target.worker.connections()),
        (&[][..], 1)
    );
}

#[test]
fn connections_begin_as_programmed() {
    let shares = |change: fn(&mut QuicShares)| {
        let mut shares = QuicShares::default();
        change(&mut shares);
        let mut quic = Quic::behaving(Transport::Doq, |behaviour| behaviour.quic = shares);
        for _ in 0..60 {
            quic.connect();
        }
        quic.run(ms(20_000));
        quic
    };
    let check = |count: u64| assert!((15..45).contains(&count), "{count}");

    let retried = shares(|shares| shares.retry = 0.5);
    assert_eq!(retried.handshakes.len(), 60, "a retry costs no connection");
    check(retried.counters().quic_retries);

    let refused = shares(|shares| shares.refuse = 0.5);
    let count = refused.counters().connections_refused.get(Transport::Doq);
    check(count);
    let refusal = LostReason::Transport {
        code: 2,
        by: By::Peer,
    };
    let refusals = refused.lost.iter().filter(|reason| **reason == refusal);
    assert_eq!(refusals.count() as u64, count);
    assert_eq!(refused.handshakes.len() as u64, 60 - count);

    let versions = shares(|shares| shares.version_negotiation = 0.5);
    let count = versions.counters().quic_versions;
    check(count);
    let named = LostReason::VersionNegotiation;
    let lost = versions.lost.iter().filter(|reason| **reason == named);
    assert_eq!(lost.count() as u64, count);

    let ignored = shares(|shares| shares.ignore = 0.5);
    let named = LostReason::HandshakeTimeout;
    let lost = ignored
        .lost
        .iter()
        .filter(|reason| **reason == named)
        .count();
    check(lost as u64);
    assert_eq!(
        ignored.handshakes.len(),
        60 - lost,
        "all tries of one meet with the same"
    );
    assert!(ignored.counters().quic_ignored > lost as u64, "tries");
}

#[test]
fn connections_over_the_limit_are_refused() {
    let mut quic = Quic::new(Transport::Doq, |config| {
        config.limits = Limits {
            connections_max: 3,
            ..Limits::default()
        };
    });
    for _ in 0..5 {
        quic.connect();
    }
    quic.run(ms(100));
    assert_eq!((quic.handshakes.len(), quic.lost.len()), (3, 2));
    assert_eq!(quic.counters().connections_refused.get(Transport::Doq), 2);
    let now = quic.now();
    quic.client.close(now, quic.keys[0], 0);
    quic.run(ms(100));
    assert_eq!(quic.target.worker.connections(), 2);
    quic.connect();
    quic.run(ms(100));
    assert_eq!(quic.handshakes.len(), 4);
}

#[test]
fn client_that_closes_without_an_error_is_counted_as_closed() {
    // Many clients of HTTP/3 close with 0, which is not its own code for no error.
    for (transport, code) in [
        (Transport::Doq, 0),
        (Transport::Doh3, 0x100),
        (Transport::Doh3, 0),
    ] {
        let mut quic = Quic::connected(transport, |_| {});
        let now = quic.now();
        quic.client.close(now, quic.keys[0], code);
        quic.run(ms(100));
        assert_eq!(quic.target.worker.connections(), 0);
        let counters = quic.counters();
        assert_eq!(counters.connections_closed.get(transport), 1);
        assert_eq!(counters.connections_reset.get(transport), 0);
    }
}

#[test]
fn session_is_resumed_and_its_early_queries_are_answered() {
    for transport in BOTH {
        let mut quic = Quic::connected(transport, |_| {});
        let memory = quic.client.take_memory(quic.keys[0]);
        let second = quic.connect_with(memory);
        quic.ask(second, 0..5).unwrap();
        quic.run(ms(100));
        assert_eq!(quic.ended(&ANSWERED), 5);
        assert_eq!(
            quic.handshakes[1],
            (HandshakeKind::Resumed, EarlyData::Accepted)
        );
        let counters = quic.counters();
        assert_eq!(
            (counters.handshakes_resumed, counters.early_queries),
            (1, 5)
        );
    }
}

#[test]
fn idle_connection_is_closed() {
    let mut quic = Quic::connected(Transport::Doq, |config| {
        config.behaviour.idle_timeout = Some(ms(1_000));
    });
    quic.run(ms(3_000));
    assert_eq!(quic.lost, [LostReason::IdleTimeout]);
    assert_eq!(quic.counters().connections_idle, 1);
    assert_eq!(quic.target.worker.connections(), 0);
}

#[test]
fn worker_that_closes_takes_its_connections_with_it() {
    for how in [Close::Graceful, Close::Reset] {
        let mut quic = Quic::connected(Transport::Doh3, |_| {});
        quic.target.worker.close(&mut quic.target.network, how);
        quic.target.next_turn = Instant::FAR_FUTURE;
        for (at, _, datagram) in std::mem::take(&mut quic.target.network.sent) {
            quic.client.handle_datagram(at, quic.keys[0], &datagram);
        }
        quic.poll_events(0);
        let lost = LostReason::Application {
            code: 0x100,
            by: By::Peer,
        };
        let expected = if how == Close::Graceful {
            vec![lost]
        } else {
            vec![]
        };
        assert_eq!(quic.lost, expected);
        assert_eq!(quic.target.worker.connections(), 0);
    }
}

#[test]
fn query_that_is_none_is_a_bad_request_or_its_stream_is_reset() {
    for transport in BOTH {
        let mut quic = Quic::connected(transport, |_| {});
        let (now, key) = (quic.now(), quic.keys[0]);
        let mut response = query(0, "name.example A");
        response[2] |= 0x80;
        quic.client.request(now, key, &response, 1).unwrap();
        quic.client.request(now, key, &[0; 5], 2).unwrap();
        quic.run(ms(100));
        // DOQ_PROTOCOL_ERROR: a stream that is never ended would occupy its slot for ever.
        let (end, malformed) = match transport {
            Transport::Doh3 => (End::Other(ExchangeEnd::HttpStatus(400)), 0),
            _ => (End::Other(ExchangeEnd::Reset(2)), 2),
        };
        assert_eq!(quic.ended(&end), 2);
        assert_eq!((quic.ends.len(), quic.counters().ignored), (2, 2));
        assert_eq!(quic.counters().streams_malformed, malformed);
        assert_eq!(quic.now(), at_ms(200));
    }
}
