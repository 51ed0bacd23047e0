//! Client and server over a network in memory and in virtual time.

mod doq;
mod harm;
mod http3;
mod memory;
mod oracles;

use super::*;
use crate::Instant;
use crate::doq::MessageIds;
use crate::exchange::ExchangeEnd;
use crate::tls::{
    ClientSession, ClientTlsOptions, Roots, ServerTlsOptions, Tickets, client_config,
    server_config_with,
};
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use std::collections::{BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// An authority's PEM, and chain and key of `dns.example`.
pub(super) struct Certificates {
    pub(super) authority: Vec<u8>,
    pub(super) chain: Vec<u8>,
    pub(super) key: Vec<u8>,
}

pub(super) fn certificates() -> Certificates {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names = vec!["dns.example".to_owned(), "127.0.0.1".to_owned()];
    let chain = CertificateParams::new(names)
        .unwrap()
        .signed_by(&key, &authority)
        .unwrap();
    Certificates {
        authority: authority.pem().into_bytes(),
        chain: chain.pem().into_bytes(),
        key: key.serialize_pem().into_bytes(),
    }
}

/// A client's configuration; one that resumes sends early data, too.
pub(super) fn client_tls(certificates: &Certificates, resume: bool) -> Arc<rustls::ClientConfig> {
    let config = client_config(&ClientTlsOptions {
        roots: Roots::Pem(certificates.authority.clone()),
        resumption: resume,
        early_data: resume,
        ..ClientTlsOptions::default()
    });
    config.unwrap()
}

/// A server's configuration for QUIC, with tickets and early data.
pub(super) fn server_tls(certificates: &Certificates) -> Arc<rustls::ServerConfig> {
    let options = ServerTlsOptions {
        quic: true,
        tickets: Tickets::Stored {
            count: 2,
            sessions_max: 100,
        },
        early_data_octets_max: 1,
        ..ServerTlsOptions::default()
    };
    server_config_with(&certificates.chain, &certificates.key, &options).unwrap()
}

/// What a client saw, without borrows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Established(Established),
    Message(u32, Vec<u8>),
    Ended(u32, ExchangeEnd<'static>),
    StreamsAvailable,
    GoingAway,
    Lost(LostReason),
}

impl Seen {
    fn of(event: QuicEvent<'_>) -> Seen {
        match event {
            QuicEvent::Established(established) => Seen::Established(established),
            QuicEvent::Exchange { token, end } => match end {
                ExchangeEnd::Message(message) => Seen::Message(token, message.to_vec()),
                ExchangeEnd::HttpStatus(status) => {
                    Seen::Ended(token, ExchangeEnd::HttpStatus(status))
                }
                ExchangeEnd::MediaType(other) => Seen::Ended(token, ExchangeEnd::MediaType(other)),
                ExchangeEnd::Reset(code) => Seen::Ended(token, ExchangeEnd::Reset(code)),
                ExchangeEnd::NotProcessed => Seen::Ended(token, ExchangeEnd::NotProcessed),
                ExchangeEnd::Malformed => Seen::Ended(token, ExchangeEnd::Malformed),
                ExchangeEnd::Late => Seen::Ended(token, ExchangeEnd::Late),
            },
            QuicEvent::StreamsAvailable => Seen::StreamsAvailable,
            QuicEvent::GoingAway => Seen::GoingAway,
            QuicEvent::Lost(reason) => Seen::Lost(reason),
        }
    }
}

/// What a server saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Served {
    Established(ConnectionKey, Established),
    Query {
        key: ConnectionKey,
        stream: u64,
        message: Vec<u8>,
        early: bool,
    },
    Refused(ConnectionKey, u64, u16),
    Malformed(ConnectionKey, u64),
    Excessive(ConnectionKey, u64),
    Cancelled(ConnectionKey, u64),
    Lost(ConnectionKey, LostReason),
}

/// How the network treats datagrams: shares in 1/256.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weather {
    pub(super) loss: u8,
    pub(super) duplication: u8,
    pub(super) jitter_us: u64,
    /// Datagrams that come with another octet somewhere, cut off, or with octets behind.
    pub(super) corruption: u8,
}

/// A datagram under way; the earliest is the greatest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct UnderWay {
    at: std::cmp::Reverse<(Instant, u64)>,
    to_server: bool,
    client: usize,
    octets: Vec<u8>,
}

/// One server, its clients, and the network between them.
pub(super) struct World {
    pub(super) client: QuicClient,
    pub(super) server: QuicServer,
    pub(super) now: Instant,
    pub(super) keys: Vec<ConnectionKey>,
    /// Events of each client in order.
    pub(super) seen: Vec<Vec<Seen>>,
    pub(super) served: Vec<Served>,
    pub(super) admission: Admission,
    pub(super) arrivals: Vec<Arrival>,
    /// Responds to each query with QR set; else the test does.
    pub(super) responds: bool,
    pub(super) weather: Weather,
    under_way: BinaryHeap<UnderWay>,
    sequence: u64,
    random: u64,
}

pub(super) const SEED: [u8; 32] = [7; 32];
#[allow(clippy::disallowed_methods, reason = "any instant will do")]
fn some_instant() -> std::time::Instant {
    std::time::Instant::now()
}

thread_local! {
    static EPOCH: std::time::Instant = some_instant();
}

const DELAY: Duration = Duration::from_millis(5);

pub(super) fn client_options(protocol: ClientProtocol) -> QuicClientOptions {
    QuicClientOptions {
        protocol,
        idle_timeout: Some(Duration::from_secs(10)),
        keep_alive: None,
        seed: SEED,
        clock: Clock::new(EPOCH.with(|epoch| *epoch)),
    }
}

pub(super) fn server_options(protocol: ServerProtocol) -> QuicServerOptions {
    QuicServerOptions {
        protocol,
        streams_max: 100,
        streams_are_final: false,
        message_ids: MessageIds::Zero,
        stops_streams: false,
        unsent_octets_max: 1 << 20,
        unvalidated_max: usize::MAX,
        handshake_timeout: None,
        token_key: [5; 32],
        idle_timeout: Some(Duration::from_secs(30)),
        seed: [9; 32],
        clock: Clock::new(EPOCH.with(|epoch| *epoch)),
    }
}

impl World {
    pub(super) fn new(
        certificates: &Certificates,
        client: QuicClientOptions,
        server: QuicServerOptions,
    ) -> World {
        let tls = server_tls(certificates);
        World {
            client: QuicClient::new(client),
            server: QuicServer::new(&tls, server).unwrap(),
            now: Instant::from_nanos(1_000),
            keys: Vec::new(),
            seen: Vec::new(),
            served: Vec::new(),
            admission: Admission::Accept,
            arrivals: Vec::new(),
            responds: true,
            weather: Weather::default(),
            under_way: BinaryHeap::new(),
            sequence: 0,
            random: 0x1234_5678_9abc_def1,
        }
    }

    pub(super) fn connect(&mut self, tls: &Arc<rustls::ClientConfig>) -> usize {
        let (now, name, memory) = (self.now, "dns.example", ClientSession::default());
        let begun = self
            .client
            .connect_remembering(now, tls, name, memory, false);
        self.keys.push(begun.unwrap());
        self.seen.push(Vec::new());
        self.keys.len() - 1
    }

    /// Begins a connection that resumes the session of an earlier one.
    pub(super) fn reconnect(&mut self, tls: &Arc<rustls::ClientConfig>, earlier: usize) -> usize {
        let memory = self.client.take_memory(self.keys[earlier]);
        let (now, name) = (self.now, "dns.example");
        let begun = self
            .client
            .connect_remembering(now, tls, name, memory, true);
        self.keys.push(begun.unwrap());
        self.seen.push(Vec::new());
        self.keys.len() - 1
    }

    /// Connects and waits for the end of the handshake.
    pub(super) fn connected(&mut self, tls: &Arc<rustls::ClientConfig>) -> usize {
        let client = self.connect(tls);
        self.run_until(|world| !world.seen[client].is_empty());
        assert!(
            matches!(self.seen[client][0], Seen::Established(_)),
            "{:?}",
            self.seen[client]
        );
        client
    }

    pub(super) fn ask(&mut self, client: usize, message: &[u8], token: u32) -> Result<(), Blocked> {
        self.client
            .request(self.now, self.keys[client], message, token)
    }

    /// Runs until `done`, in at most ten thousand steps of the network.
    pub(super) fn run_until(&mut self, done: impl Fn(&World) -> bool) {
        for _ in 0..100_000 {
            self.flush();
            if done(self) {
                return;
            }
            assert!(self.advance(), "nothing is going to happen any more");
        }
        panic!("still not done: {:?}", self.seen.last());
    }

    /// Runs until nothing happens within `span`.
    pub(super) fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        for _ in 0..100_000 {
            self.flush();
            if self.next_instant().is_none_or(|next| next > end) {
                self.now = end;
                return;
            }
            self.advance();
        }
        panic!("the two sides never fall silent");
    }

    pub(super) fn messages(&self, client: usize) -> Vec<u32> {
        let tokens = self.seen[client].iter().filter_map(|seen| match seen {
            Seen::Message(token, _) => Some(*token),
            _ => None,
        });
        tokens.collect()
    }

    pub(super) fn lost(&self, client: usize) -> Option<LostReason> {
        self.seen[client].iter().find_map(|seen| match seen {
            Seen::Lost(reason) => Some(reason.clone()),
            _ => None,
        })
    }

    pub(super) fn draw(&mut self) -> u64 {
        // xorshift64 (Marsaglia).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Handles all events and puts all transmits on the network.
    pub(super) fn flush(&mut self) {
        self.serve();
        for client in 0..self.keys.len() {
            while let Some(event) = self.client.poll_event(self.keys[client]) {
                self.seen[client].push(Seen::of(event));
            }
            let mut octets = Vec::new();
            while let Some(burst) =
                self.client
                    .poll_transmit(self.now, self.keys[client], &mut octets, 10)
            {
                let sent = std::mem::take(&mut octets);
                assert_eq!(sent.len(), burst.octets);
                sent.chunks(burst.datagram_octets)
                    .for_each(|datagram| self.send(true, client, datagram));
            }
        }
        let mut octets = Vec::new();
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut octets, 10) {
            let sent = std::mem::take(&mut octets);
            assert_eq!(sent.len(), transmit.burst.octets);
            let client = usize::from(transmit.to.port() - 10_000);
            sent.chunks(transmit.burst.datagram_octets)
                .for_each(|datagram| self.send(false, client, datagram));
        }
    }

    fn serve(&mut self) {
        let mut served = VecDeque::new();
        while let Some(event) = self.server.poll_event() {
            served.push_back(match event {
                ServerEvent::Established(key, established) => Served::Established(key, established),
                ServerEvent::Query {
                    key,
                    stream,
                    message,
                    early,
                } => Served::Query {
                    key,
                    stream,
                    message: message.to_vec(),
                    early,
                },
                ServerEvent::Refused {
                    key,
                    stream,
                    status,
                } => Served::Refused(key, stream, status),
                ServerEvent::Malformed { key, stream } => Served::Malformed(key, stream),
                ServerEvent::Excessive { key, stream } => Served::Excessive(key, stream),
                ServerEvent::Cancelled { key, stream } => Served::Cancelled(key, stream),
                ServerEvent::Lost(key, reason) => Served::Lost(key, reason),
            });
        }
        for event in served {
            if let Served::Query {
                key,
                stream,
                message,
                ..
            } = &event
                && self.responds
            {
                self.server
                    .respond(*key, *stream, &response_to(message), Some(60));
            }
            self.served.push(event);
        }
    }

    pub(super) fn send(&mut self, to_server: bool, client: usize, datagram: &[u8]) {
        if (self.draw() as u8) < self.weather.loss {
            return;
        }
        let copies = 1 + u64::from((self.draw() as u8) < self.weather.duplication);
        for _ in 0..copies {
            let jitter = Duration::from_micros(self.draw() % (self.weather.jitter_us + 1));
            self.sequence += 1;
            let octets = self.corrupted(datagram);
            self.under_way.push(UnderWay {
                at: std::cmp::Reverse((self.now + DELAY + jitter, self.sequence)),
                to_server,
                client,
                octets,
            });
        }
    }

    /// A copy, harmed or not.
    fn corrupted(&mut self, datagram: &[u8]) -> Vec<u8> {
        let mut octets = datagram.to_vec();
        if (self.draw() as u8) < self.weather.corruption {
            let place = self.draw() as usize % octets.len();
            match self.draw() % 3 {
                0 => octets[place] ^= 1 << (self.draw() % 8),
                1 => octets.truncate(place),
                _ => octets.extend(std::iter::repeat_n(place as u8, 40)),
            }
        }
        octets
    }

    fn next_instant(&mut self) -> Option<Instant> {
        let network = self.under_way.peek().map(|next| next.at.0.0);
        let server = self.server.timeout();
        let clients = self.keys.iter().filter_map(|&key| self.client.timeout(key));
        let earliest = clients.chain(network).chain(server).min();
        earliest.map(|instant| instant.max(self.now))
    }

    /// Moves to the next instant at which something is due, and does it. False if there is none.
    fn advance(&mut self) -> bool {
        let Some(next) = self.next_instant() else {
            return false;
        };
        self.now = next;
        while let Some(due) = self.under_way.peek()
            && due.at.0.0 <= next
        {
            let Some(datagram) = self.under_way.pop() else {
                break;
            };
            self.deliver(&datagram);
        }
        if self.server.timeout().is_some_and(|due| due <= next) {
            self.server.handle_timeout(next);
        }
        for key in self.keys.clone() {
            if self.client.timeout(key).is_some_and(|due| due <= next) {
                self.client.handle_timeout(next, key);
            }
        }
        true
    }

    fn deliver(&mut self, datagram: &UnderWay) {
        if datagram.to_server {
            let from = SocketAddr::from(([127, 0, 0, 1], 10_000 + datagram.client as u16));
            let arrival =
                self.server
                    .handle_datagram(self.now, from, &datagram.octets, self.admission);
            self.arrivals.push(arrival);
        } else {
            let key = self.keys[datagram.client];
            self.client.handle_datagram(self.now, key, &datagram.octets);
        }
    }
}

/// A query with room for a number in its name.
pub(super) fn query(number: u32) -> Vec<u8> {
    let mut message = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 8];
    message.extend_from_slice(format!("{number:08}").as_bytes());
    message.extend_from_slice(b"\x07example\0\0\x01\0\x01");
    message
}

/// A message with ID 0, as a server of DoQ has to send it.
pub(super) fn answer(number: u32) -> Vec<u8> {
    let mut message = query(number);
    message[..2].fill(0);
    message
}

pub(super) fn response_to(query: &[u8]) -> Vec<u8> {
    let mut response = query.to_vec();
    if let Some(flags) = response.get_mut(2) {
        *flags |= 0x80;
    }
    response
}

/// Four clients ask 150 questions each while datagrams are lost, doubled and overtaken: each has
/// one response.
fn everything_comes_once_over_a_bad_network(
    world: &mut World,
    certificates: &Certificates,
    seed: u64,
) {
    world.random ^= seed << 32;
    world.weather = Weather {
        loss: 25,
        duplication: 12,
        jitter_us: 8_000,
        corruption: 0,
    };
    let tls = client_tls(certificates, false);
    let clients: Vec<usize> = (0..4).map(|_| world.connect(&tls)).collect();
    world.run_until(|world| world.seen.iter().all(|seen| !seen.is_empty()));
    for token in 0..150 {
        for &client in &clients {
            while world.ask(client, &query(token), token) == Err(Blocked::Streams) {
                world.run_for(Duration::from_millis(10));
            }
        }
        world.flush();
    }
    world.run_until(|world| (0..4).all(|client| world.messages(client).len() >= 150));
    world.run_for(Duration::from_secs(2));
    for &client in &clients {
        let mut tokens = world.messages(client);
        tokens.sort_unstable();
        assert_eq!(tokens, (0..150).collect::<Vec<u32>>(), "seed {seed}");
        assert_eq!(world.lost(client), None, "seed {seed}");
    }
}
