//! DoQ (RFC 9250) and DoH over HTTP/3 (RFC 9114): from queries on streams to the respondent, and
//! back.
//!
//! Owns no socket: [`crate::worker`] passes in datagrams and sends those of [`Quic::fill`].

use std::fmt;

use driver::random::SEED_OCTETS;
use driver::{Close, Outgoing, Received, SocketId};
use proto::doq;
use proto::http3::ErrorCode;
use proto::quic::{
    Admission, Arrival, By, Clock, ConnectionKey, LostReason, QuicServer, QuicServerOptions,
    ServerEvent, ServerProtocol,
};
use proto::tls::HandshakeKind;
use proto::{Instant, Transport};

use crate::behaviour::{self, ConnectionEnd};
use crate::config::ResponderConfig;
use crate::delayed::{Destination, Reply, Waiting};
use crate::freshness::ttl_min;
use crate::octets::Octets;
use crate::respond::{Fate, Respondent};

/// Datagrams handed to the driver in one call; the kernel takes 64 to a burst.
const DATAGRAMS_PER_SEND_MAX: usize = 256;

/// Datagrams of one client in a row.
const DATAGRAMS_PER_BURST_MAX: usize = 32;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Queries are answered.
    Open,
    /// No further query is answered; ends this way once the responses are sent.
    Ending(ConnectionEnd),
    /// Further queries are received and not answered.
    Silent,
}

/// The responder's state of one connection.
struct Life {
    generation: u32,
    phase: Phase,
    queries: u64,
    /// Delayed responses that will be sent here.
    awaiting: u32,
    /// Queries that will never be answered.
    dropped: usize,
    is_established: bool,
    /// False once it is closed, lost or forgotten.
    is_live: bool,
}

/// All QUIC connections of one socket.
pub(crate) struct Quic {
    server: QuicServer,
    transport: Transport,
    lives: Vec<Life>,
    /// Connections in [`Phase::Ending`].
    ending: Vec<ConnectionKey>,
    /// Connections held since the last datagrams because the modelled server is busy with them, and
    /// until when.
    pub(crate) held: Vec<(ConnectionKey, Instant)>,
    /// The current response.
    message: Vec<u8>,
}

impl fmt::Debug for Quic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quic")
            .field("transport", &self.transport)
            .field("connections", &self.server.connections())
            .finish_non_exhaustive()
    }
}

/// The endpoint for a configuration, of one of `workers`; connection IDs and keys come from `seed`,
/// tokens from `token_key`.
///
/// # Errors
/// Why the configuration's TLS cannot serve QUIC.
pub(crate) fn server(
    config: &ResponderConfig,
    transport: Transport,
    (seed, token_key): ([u8; SEED_OCTETS], [u8; SEED_OCTETS]),
    workers: u32,
) -> Result<QuicServer, String> {
    let Some(tls) = &config.tls else {
        return Err("there is no certificate".to_owned());
    };
    let mut tls = proto::tls::rustls::ServerConfig::clone(tls);
    if tls.max_early_data_size > 0 {
        // QUIC has its own limits (RFC 9001, section 4.6.1).
        tls.max_early_data_size = u32::MAX;
    }
    let protocol = match transport {
        Transport::Doh3 => ServerProtocol::Http3 {
            path: config.doh_path.as_str().into(),
        },
        _ => ServerProtocol::Doq,
    };
    let options = QuicServerOptions {
        protocol,
        streams_max: config.quic_streams_max,
        streams_are_final: config.quic_streams_are_final,
        message_ids: config.doq_message_ids,
        stops_streams: config.doq_stop_sending && transport == Transport::Doq,
        unsent_octets_max: config.limits.unsent_octets_max,
        unvalidated_max: (config.limits.quic_unvalidated_max / workers as usize).max(1),
        handshake_timeout: Some(config.limits.handshake_timeout),
        token_key,
        idle_timeout: Some(config.idle_timeout()),
        seed,
        // Any instant will do: only differences matter.
        clock: Clock::new(std::time::Instant::now()),
    };
    QuicServer::new(&tls, options)
}

impl Quic {
    /// # Errors
    /// As [`server`].
    pub(crate) fn new(
        config: &ResponderConfig,
        transport: Transport,
        seed: [u8; SEED_OCTETS],
        workers: u32,
    ) -> Result<Self, String> {
        // The key of the worker that set it first.
        let token_key = config.token_key.or_set(seed);
        Ok(Quic {
            server: server(config, transport, (seed, token_key), workers)?,
            transport,
            lives: Vec::new(),
            ending: Vec::new(),
            held: Vec::new(),
            message: Vec::new(),
        })
    }

    pub(crate) fn transport(&self) -> Transport {
        self.transport
    }

    /// Connections that are not over.
    pub(crate) fn connections(&self) -> usize {
        self.lives.iter().filter(|life| life.is_live).count()
    }

    pub(crate) fn timeout(&self) -> Instant {
        self.server.timeout().unwrap_or(Instant::FAR_FUTURE)
    }

    /// Takes the datagrams of one delivery and answers the queries in them.
    pub(crate) fn handle_datagrams(&mut self, received: &Received, respondent: &mut Respondent) {
        for &datagram in &received.datagrams {
            let octets = received.datagram(datagram);
            let admission = admission(octets, &respondent.config);
            let arrival =
                self.server
                    .handle_datagram(received.at, datagram.from, octets, admission);
            let counters = &mut respondent.counters;
            let received_octets = u64::from(datagram.length);
            counters
                .octets_received
                .add(self.transport, received_octets);
            match arrival {
                Arrival::Known(_) => {}
                Arrival::Accepted(key) => self.begin(key, received.at, respondent),
                Arrival::NotAccepted(admission) => match admission {
                    Admission::Retry => counters.quic_retries += 1,
                    Admission::VersionNegotiation => counters.quic_versions += 1,
                    Admission::Ignore => counters.quic_ignored += 1,
                    Admission::Refuse | Admission::Accept => {
                        counters.connections_refused.add(self.transport, 1);
                    }
                },
                Arrival::Answered => counters.quic_answered += 1,
                Arrival::Dropped => counters.quic_dropped += 1,
            }
        }
        self.handle_events(received.socket, received.at, respondent);
    }

    pub(crate) fn handle_timeout(
        &mut self,
        socket: SocketId,
        now: Instant,
        respondent: &mut Respondent,
    ) {
        self.server.handle_timeout(now);
        self.handle_events(socket, now, respondent);
    }

    fn begin(&mut self, key: ConnectionKey, now: Instant, respondent: &mut Respondent) {
        let index = key.index as usize;
        while self.lives.len() <= index {
            self.lives.push(Life::new(0, false));
        }
        let config = &respondent.config;
        // Another worker may have admitted the last connection in the meantime.
        if !config.open_connections.admit(config.limits.connections_max) {
            self.server.close(now, key, self.no_error());
            respondent
                .counters
                .connections_refused
                .add(self.transport, 1);
            return;
        }
        self.lives[index] = Life::new(key.generation, true);
        if let Some(service) = &mut respondent.service {
            let kind = self.server.handshake_begun(key);
            let until = service.handshake(now, kind.unwrap_or(HandshakeKind::Full));
            if until > now {
                self.server.hold(key);
                self.held.push((key, until));
            }
        }
        respondent
            .counters
            .connections_accepted
            .add(self.transport, 1);
    }

    /// Releases a held connection once the modelled server is done with it.
    pub(crate) fn release(&mut self, key: ConnectionKey) {
        self.server.release(key);
    }

    fn life(lives: &mut [Life], key: ConnectionKey) -> Option<&mut Life> {
        let life = lives.get_mut(key.index as usize);
        life.filter(|life| life.is_live && life.generation == key.generation)
    }

    fn handle_events(&mut self, socket: SocketId, at: Instant, respondent: &mut Respondent) {
        while let Some(event) = self.server.poll_event() {
            let counters = &mut respondent.counters;
            match event {
                ServerEvent::Established(key, established) => {
                    counters.handshakes_completed += 1;
                    let resumed = established.handshake.kind == HandshakeKind::Resumed;
                    counters.handshakes_resumed += u64::from(resumed);
                    if let Some(life) = Quic::life(&mut self.lives, key) {
                        life.is_established = true;
                    }
                }
                ServerEvent::Query {
                    key,
                    stream,
                    message,
                    early,
                } => {
                    counters.http_requests += u64::from(self.transport.is_doh());
                    let Some(life) = Quic::life(&mut self.lives, key) else {
                        continue;
                    };
                    let query = Query {
                        context: (at, self.transport),
                        destination: Destination::Quic {
                            socket,
                            connection: key,
                            stream,
                        },
                        is_early: early,
                    };
                    self.message.clear();
                    let reply = query.answer(message, life, respondent, &mut self.message);
                    if let Some(reply) = reply {
                        self.reply(key, stream, reply, respondent);
                    }
                    self.end_after_query(key, respondent);
                }
                ServerEvent::Refused {
                    key,
                    stream,
                    status,
                } => {
                    counters.http_requests += 1;
                    self.reply(key, stream, Reply::Status(status), respondent);
                }
                ServerEvent::Malformed { .. } => {
                    counters.http_requests += 1;
                    counters.streams_malformed += 1;
                }
                ServerEvent::Excessive { .. } => counters.streams_refused += 1,
                ServerEvent::Cancelled { .. } => counters.streams_cancelled += 1,
                ServerEvent::Lost(key, reason) => self.on_lost(key, &reason, respondent),
            }
        }
    }

    /// Sends a reply to a query; its message is in the buffer.
    fn reply(
        &mut self,
        key: ConnectionKey,
        stream: u64,
        reply: Reply,
        respondent: &mut Respondent,
    ) {
        let message = &self.message;
        let sent = match reply {
            Reply::Message => self.server.respond(key, stream, message, ttl_min(message)),
            Reply::Mistyped => self.server.respond_mistyped(key, stream, message),
            Reply::Status(status) => self.server.respond_status(key, stream, status),
            Reply::Reset => {
                let code = match self.transport {
                    Transport::Doh3 => ErrorCode::INTERNAL_ERROR.0,
                    _ => doq::DOQ_INTERNAL_ERROR,
                };
                self.server.reset_stream(key, stream, code)
            }
            Reply::Malformed => {
                let code = doq::DOQ_PROTOCOL_ERROR;
                self.server.reset_stream(key, stream, code)
            }
        };
        match sent {
            true => respondent.counters.count_reply(self.transport, reply),
            false => {
                let unread = self.server.take_unread();
                respondent.counters.unread_dropped += unread;
                respondent.counters.orphaned += 1 - unread.min(1);
            }
        }
    }

    /// Sends a delayed reply.
    pub(crate) fn reply_delayed(
        &mut self,
        (key, stream): (ConnectionKey, u64),
        waiting: Waiting,
        respondent: &mut Respondent,
    ) {
        if let Some(life) = Quic::life(&mut self.lives, key) {
            life.awaiting -= 1;
        }
        self.message = waiting.message;
        self.reply(key, stream, waiting.reply, respondent);
    }

    /// Takes the last message sent, to reuse its buffer.
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.message)
    }

    /// Begins the end of a connection whose limit of queries is reached.
    fn end_after_query(&mut self, key: ConnectionKey, respondent: &mut Respondent) {
        let Some((queries_max, end)) = respondent.config.behaviour.end_after else {
            return;
        };
        let Some(life) = Quic::life(&mut self.lives, key) else {
            return;
        };
        if life.queries < queries_max || life.phase != Phase::Open {
            return;
        }
        life.phase = match end {
            ConnectionEnd::HalfClose | ConnectionEnd::StopReading => Phase::Silent,
            ConnectionEnd::GoAway if self.transport == Transport::Doh3 => {
                self.server.go_away(key);
                respondent.counters.goaways += 1;
                Phase::Silent
            }
            end => {
                self.ending.push(key);
                Phase::Ending(end)
            }
        };
    }

    /// Ends the connections whose responses are all sent. True if something is to be sent now.
    pub(crate) fn end_connections(&mut self, now: Instant, respondent: &mut Respondent) -> bool {
        let mut index = 0;
        let mut is_closing = false;
        while let Some(&key) = self.ending.get(index) {
            let Some(life) = Quic::life(&mut self.lives, key) else {
                self.ending.swap_remove(index);
                continue;
            };
            let Phase::Ending(end) = life.phase else {
                index += 1;
                continue;
            };
            let (is_answered, dropped) = (life.awaiting == 0, life.dropped);
            let is_at_once = matches!(end, ConnectionEnd::Reset | ConnectionEnd::Error(_));
            if !is_answered || !is_at_once && self.server.streams_open(key) > dropped {
                index += 1;
                continue;
            }
            self.ending.swap_remove(index);
            let code = match end {
                ConnectionEnd::Error(code) => code,
                ConnectionEnd::TlsAlert => self.internal_error(),
                _ => self.no_error(),
            };
            let counters = &mut respondent.counters;
            if end == ConnectionEnd::Reset {
                self.server.forget(key);
                counters.quic_forgotten += 1;
                counters.connections_reset.add(self.transport, 1);
            } else {
                self.server.close(now, key, code);
                is_closing = true;
                counters.connections_closed.add(self.transport, 1);
            }
            self.finish(key, respondent);
        }
        is_closing
    }

    fn no_error(&self) -> u64 {
        match self.transport {
            Transport::Doh3 => ErrorCode::NO_ERROR.0,
            _ => doq::DOQ_NO_ERROR,
        }
    }

    fn internal_error(&self) -> u64 {
        match self.transport {
            Transport::Doh3 => ErrorCode::INTERNAL_ERROR.0,
            _ => doq::DOQ_INTERNAL_ERROR,
        }
    }

    fn on_lost(&mut self, key: ConnectionKey, reason: &LostReason, respondent: &mut Respondent) {
        let Some(life) = Quic::life(&mut self.lives, key) else {
            return;
        };
        let is_established = life.is_established;
        let no_error = self.no_error();
        let counters = &mut respondent.counters;
        counters.handshakes_failed += u64::from(!is_established);
        let is_orderly = match reason {
            LostReason::HandshakeTimeout => {
                counters.handshakes_late += 1;
                false
            }
            LostReason::IdleTimeout => {
                counters.connections_idle += 1;
                true
            }
            LostReason::Application { by: By::Us, .. } => {
                match self.transport {
                    Transport::Doh3 => counters.http_failed += 1,
                    _ => counters.doq_failed += 1,
                }
                false
            }
            // Many clients of HTTP/3 close with the 0 of other protocols, whose own is 0x100.
            LostReason::Application { code, by: By::Peer } => [0, no_error].contains(code),
            LostReason::Transport { code, by: By::Peer } => *code == 0,
            _ => false,
        };
        match is_orderly {
            true => counters.connections_closed.add(self.transport, 1),
            false => counters.connections_reset.add(self.transport, 1),
        }
        self.finish(key, respondent);
    }

    /// The connection is over for the responder.
    fn finish(&mut self, key: ConnectionKey, respondent: &mut Respondent) {
        if let Some(life) = Quic::life(&mut self.lives, key) {
            life.is_live = false;
            respondent.config.open_connections.release();
        }
    }

    /// Connections whose client has not proved its address.
    pub(crate) fn unvalidated(&self) -> usize {
        self.server.unvalidated()
    }

    /// The memory of all connections, including ending ones.
    pub(crate) fn held(&self) -> Octets {
        Octets::of_quic(self.server.connections(), self.server.held_octets())
    }

    /// Each connection with its memory, and when it last made progress.
    pub(crate) fn holdings(&self) -> impl Iterator<Item = (ConnectionKey, Octets, Instant)> {
        let holdings = self.server.holdings();
        holdings.map(|(key, octets, at)| (key, Octets::of_quic(1, octets), at))
    }

    /// Forgets a connection for its memory; the client's next datagram is answered with a stateless
    /// reset.
    pub(crate) fn reset(&mut self, key: ConnectionKey, respondent: &mut Respondent) {
        self.server.forget(key);
        if Quic::life(&mut self.lives, key).is_some() {
            let counters = &mut respondent.counters;
            counters.connections_reset.add(self.transport, 1);
            self.finish(key, respondent);
        }
    }

    /// Ends all connections, with a close or silently.
    pub(crate) fn end_all(&mut self, now: Instant, how: Close, respondent: &mut Respondent) {
        for index in 0..self.lives.len() {
            let life = &self.lives[index];
            if !life.is_live {
                continue;
            }
            let key = ConnectionKey {
                index: index as u32,
                generation: life.generation,
            };
            let counters = &mut respondent.counters;
            match how {
                Close::Graceful => {
                    self.server.close(now, key, self.no_error());
                    counters.connections_closed.add(self.transport, 1);
                }
                Close::Reset => {
                    self.server.forget(key);
                    counters.connections_reset.add(self.transport, 1);
                }
            }
            self.finish(key, respondent);
        }
    }

    /// Appends datagrams to `outgoing`; false when there are no more.
    pub(crate) fn fill(&mut self, now: Instant, outgoing: &mut Outgoing) -> bool {
        while outgoing.datagrams.len() < DATAGRAMS_PER_SEND_MAX {
            let start = outgoing.octets.len();
            let octets = &mut outgoing.octets;
            let transmit = self
                .server
                .poll_transmit(now, octets, DATAGRAMS_PER_BURST_MAX);
            let Some(transmit) = transmit else {
                return false;
            };
            let (each, end) = (transmit.burst.datagram_octets, outgoing.octets.len());
            for at in (start..end).step_by(each) {
                outgoing.datagrams.push(driver::OutgoingDatagram {
                    length: each.min(end - at) as u32,
                    to: Some(transmit.to),
                });
            }
        }
        true
    }
}

impl Life {
    fn new(generation: u32, is_live: bool) -> Self {
        Life {
            generation,
            phase: Phase::Open,
            queries: 0,
            awaiting: 0,
            dropped: 0,
            is_established: false,
            is_live,
        }
    }
}

/// Properties of a query beside its bytes.
struct Query {
    context: (Instant, Transport),
    destination: Destination,
    is_early: bool,
}

impl Query {
    /// Decides what is sent at once; a message is appended to `out`.
    fn answer(
        &self,
        message: &[u8],
        life: &mut Life,
        respondent: &mut Respondent,
        out: &mut Vec<u8>,
    ) -> Option<Reply> {
        let end_after = respondent.config.behaviour.end_after;
        let queries_max = end_after.map_or(u64::MAX, |(queries, _)| queries);
        if life.phase != Phase::Open || life.queries == queries_max {
            respondent.counters.unanswered += 1;
            life.dropped += 1;
            return None;
        }
        life.queries += 1;
        respondent.counters.early_queries += u64::from(self.is_early);
        let ignored_before = respondent.counters.ignored;
        match respondent.handle(self.context, self.destination, message, out) {
            Fate::Now(_) => Some(Reply::Message),
            Fate::Instead(reply) => Some(reply),
            Fate::Later(0) | Fate::Dropped => {
                let is_doh = self.context.1.is_doh();
                // Not a query: HTTP has a status for it, and over DoQ the stream has to be ended.
                if respondent.counters.ignored > ignored_before {
                    return Some(match is_doh {
                        true => Reply::Status(400),
                        false => Reply::Malformed,
                    });
                }
                life.dropped += 1;
                None
            }
            Fate::Later(copies) => {
                life.awaiting += copies;
                None
            }
        }
    }
}

/// How to admit a connection that `datagram` may begin.
fn admission(datagram: &[u8], config: &ResponderConfig) -> Admission {
    let Some(id) = initial_destination(datagram) else {
        return Admission::Accept;
    };
    if config.open_connections.count() >= config.limits.connections_max {
        return Admission::Refuse;
    }
    behaviour::admission(&config.behaviour.quic, || chance(id, config.seed))
}

/// The destination connection ID of an Initial packet at the start of `datagram` (RFC 9000,
/// section 17.2.2): the same in all that a client sends until it has an answer.
fn initial_destination(datagram: &[u8]) -> Option<&[u8]> {
    let (&first, rest) = datagram.split_first()?;
    let (&length, rest) = rest.get(4..)?.split_first()?;
    rest.get(..usize::from(length))
        .filter(|_| first & 0xf0 == 0xc0)
}

/// A number from 0 to below 1 that depends on all octets (FNV-1a, and SplitMix64 to finish).
fn chance(id: &[u8], seed: u64) -> f64 {
    let hash = id
        .iter()
        .fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, &octet| {
            (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3)
        });
    let mut mixed = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}
