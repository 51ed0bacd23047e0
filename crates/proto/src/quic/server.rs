//! The server's end of all QUIC connections that arrive at one socket.

mod connection;
mod handshakes;
mod memory;
mod version_negotiation;

use super::client::ARENA_OCTETS;
use super::clock::Clock;
use super::identity::{server_endpoint_config, token_key};
use super::session::{HandshakeFacts, ServerCrypto};
use super::slab::{ConnectionKey, Slab};
use super::transport::{self, Parameters};
use super::{Burst, Established, LostReason};
use crate::doq::MessageIds;
use crate::tls::HandshakeKind;
use crate::{Instant, doq, framing, http3};
use bytes::{Bytes, BytesMut};
use connection::{Buffers, Connection, Delivery, Step};
use quinn_proto::{
    ConnectionHandle, DatagramEvent, Endpoint, EndpointEvent, Incoming, ServerConfig,
};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Datagrams of the endpoint itself (Retry, refusals, resets) that wait to be sent; more are
/// dropped, as the network might have done.
const REPLIES_MAX: usize = 1_024;

/// How a [`QuicServer`] behaves.
#[derive(Clone, Debug)]
pub struct QuicServerOptions {
    /// The protocol on the streams.
    pub protocol: ServerProtocol,
    /// Queries that a client may have open on one connection. Each costs two map entries at once.
    pub streams_max: u32,
    /// Message IDs of DoQ that are taken; a response has that of its query.
    pub message_ids: MessageIds,
    /// DoQ queries are answered before their FIN is read, and their streams stopped (STOP_SENDING),
    /// as servers do that read no further than the message. That breaks RFC 9250, section 4.3.3.
    pub stops_streams: bool,
    /// No stream follows one that is over: `streams_max` then is for the whole of a connection.
    pub streams_are_final: bool,
    /// A connection ends after this long without a datagram; `None` for the client's own timeout.
    pub idle_timeout: Option<Duration>,
    /// Octets of responses that may wait on one connection for the client's flow control; further
    /// ones are not sent, and their streams are reset.
    pub unsent_octets_max: usize,
    /// Most connections at once whose clients have not proved their addresses; above it, a client
    /// has to retry with a token (RFC 9000, section 8.1.2).
    pub unvalidated_max: usize,
    /// A handshake that takes longer is given up; `None` for the idle timeout alone.
    pub handshake_timeout: Option<Duration>,
    /// Seals the tokens of Retry: the same for all servers that a client may come back to.
    pub token_key: [u8; 32],
    /// All that is random but for key exchanges is drawn from here.
    pub seed: [u8; 32],
    /// The standard library's instant of [`Instant::ZERO`].
    pub clock: Clock,
}

/// The protocol on a server's streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerProtocol {
    /// DNS over QUIC (RFC 9250).
    Doq,
    /// DNS over HTTPS (RFC 8484) with HTTP/3 (RFC 9114).
    Http3 {
        /// The path of the resource, without query, such as `/dns-query`.
        path: Arc<str>,
    },
}

impl ServerProtocol {
    const fn alpn(&self) -> &'static [u8] {
        match self {
            ServerProtocol::Doq => doq::ALPN,
            ServerProtocol::Http3 { .. } => http3::ALPN,
        }
    }

    /// The code with which a stream is reset for which there is no room.
    const fn excessive_load(&self) -> u64 {
        match self {
            ServerProtocol::Doq => doq::DOQ_EXCESSIVE_LOAD,
            ServerProtocol::Http3 { .. } => http3::ErrorCode::EXCESSIVE_LOAD.0,
        }
    }

    const fn is_http3(&self) -> bool {
        matches!(self, ServerProtocol::Http3 { .. })
    }
}

/// How a datagram that begins a connection is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The handshake begins.
    Accept,
    /// The client has to come back with a token (RFC 9000, section 8.1.2), then it is accepted.
    Retry,
    /// CONNECTION_CLOSE with CONNECTION_REFUSED.
    Refuse,
    /// A Version Negotiation packet with unknown versions only.
    VersionNegotiation,
    /// No answer at all.
    Ignore,
}

/// The result of handling a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It belongs to this connection.
    Known(ConnectionKey),
    /// It began this connection.
    Accepted(ConnectionKey),
    /// It would have begun a connection, and this was done instead.
    NotAccepted(Admission),
    /// The endpoint answered by itself: an unknown version, or a connection that it does not know.
    Answered,
    /// It was dropped.
    Dropped,
}

/// An event of a connection; see [`QuicServer::poll_event`].
#[derive(Debug, PartialEq, Eq)]
pub enum ServerEvent<'a> {
    /// The handshake is complete.
    Established(ConnectionKey, Established),
    /// A query.
    Query {
        /// The connection it came on.
        key: ConnectionKey,
        /// Its stream, for the response.
        stream: u64,
        /// The whole DNS message.
        message: &'a [u8],
        /// It came in 0-RTT, and may be a replay (RFC 9250, section 4.5).
        early: bool,
    },
    /// An HTTP request without a query in it: answer it with this status
    /// ([`QuicServer::respond_status`]).
    Refused {
        /// The connection.
        key: ConnectionKey,
        /// The stream of the request.
        stream: u64,
        /// 400, 404, 405, 413 or 415.
        status: u16,
    },
    /// An HTTP request that is malformed; its stream has been reset.
    Malformed {
        /// The connection.
        key: ConnectionKey,
        /// The stream of the request.
        stream: u64,
    },
    /// Too much was kept of queries on this connection that were not whole; the stream has been
    /// reset (DOQ_EXCESSIVE_LOAD, H3_EXCESSIVE_LOAD).
    Excessive {
        /// The connection.
        key: ConnectionKey,
        /// The stream of the query.
        stream: u64,
    },
    /// The client does not want the response on this stream any more.
    Cancelled {
        /// The connection.
        key: ConnectionKey,
        /// The stream of the query.
        stream: u64,
    },
    /// The connection is gone; its key is void from now on.
    Lost(ConnectionKey, LostReason),
}

/// A burst of datagrams to one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerTransmit {
    /// Who receives it.
    pub to: SocketAddr,
    /// How the octets are cut.
    pub burst: Burst,
}

/// The connections of one server socket.
pub struct QuicServer {
    endpoint: Endpoint,
    options: QuicServerOptions,
    connections: Slab<Connection>,
    /// Connections by quinn-proto's handle.
    keys: Vec<Option<ConnectionKey>>,
    /// Connections that may have events, and those that may have something to send.
    with_events: VecDeque<ConnectionKey>,
    with_transmits: VecDeque<ConnectionKey>,
    /// Earliest timers first; entries whose instant is not the connection's are void.
    timers: BinaryHeap<Reverse<(Instant, ConnectionKey)>>,
    /// Datagrams of the endpoint itself.
    replies: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Handshakes in the order in which they began; those that are over linger.
    handshakes: VecDeque<(Instant, ConnectionKey)>,
    /// Connections whose client has not proved its address.
    unvalidated: usize,
    /// The counted memory of all connections.
    held_octets: usize,
    /// Responses that were not sent because the client does not read.
    unread: u64,
    arena: BytesMut,
    datagrams: Vec<u8>,
    outgoing: Vec<u8>,
    scratch: Vec<u8>,
    held: Bytes,
    now: Instant,
}

impl QuicServer {
    /// An endpoint without connections.
    ///
    /// `tls` is made for QUIC ([`ServerTlsOptions::quic`](crate::tls::ServerTlsOptions::quic)); its
    /// ALPN is replaced by that of the protocol. Queries in the first flight of a resumed session
    /// (RFC 9001, section 4.6) are accepted if it allows early data.
    ///
    /// # Errors
    /// The configuration cannot serve QUIC; the text says why.
    pub fn new(tls: &rustls::ServerConfig, options: QuicServerOptions) -> Result<Self, String> {
        let crypto = ServerCrypto::new(tls, options.protocol.alpn())?;
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        let transport = transport::config(&Parameters {
            bidi_streams_max: options.streams_max,
            http3: options.protocol.is_http3(),
            idle_timeout: options.idle_timeout,
            window_octets: transport::SERVER_WINDOW_OCTETS,
            keep_alive: None,
        });
        config
            .transport_config(Arc::new(transport))
            .token_key(token_key(options.token_key))
            .migration(true);
        let endpoint_config = Arc::new(server_endpoint_config(options.seed));
        Ok(QuicServer {
            endpoint: Endpoint::new(endpoint_config, Some(Arc::new(config)), false, None),
            options,
            connections: Slab::new(),
            keys: Vec::new(),
            with_events: VecDeque::new(),
            with_transmits: VecDeque::new(),
            timers: BinaryHeap::new(),
            replies: VecDeque::new(),
            handshakes: VecDeque::new(),
            unvalidated: 0,
            held_octets: 0,
            unread: 0,
            arena: BytesMut::with_capacity(ARENA_OCTETS),
            datagrams: Vec::new(),
            outgoing: Vec::new(),
            scratch: Vec::new(),
            held: Bytes::new(),
            now: Instant::ZERO,
        })
    }

    /// Handles a datagram; `admission` decides if it begins a connection. Clients that return after
    /// a Retry are accepted in any case.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        from: SocketAddr,
        octets: &[u8],
        admission: Admission,
    ) -> Arrival {
        self.now = now;
        self.arena.extend_from_slice(octets);
        let datagram = self.arena.split();
        let std_now = self.options.clock.to_std(now);
        self.datagrams.clear();
        let buffer = &mut self.datagrams;
        match self
            .endpoint
            .handle(std_now, from, None, None, datagram, buffer)
        {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                let Some(key) = self.keys.get(handle.0).copied().flatten() else {
                    return Arrival::Dropped;
                };
                if let Some(connection) = self.connections.get_mut(key) {
                    connection.count_datagram(octets.len());
                    connection.quic.handle_event(event);
                    connection.settle(&mut self.endpoint);
                }
                self.mark(key);
                Arrival::Known(key)
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.admit(incoming, admission, octets),
            Some(DatagramEvent::Response(_)) => {
                self.reply(from);
                Arrival::Answered
            }
            None => Arrival::Dropped,
        }
    }

    fn admit(&mut self, incoming: Incoming, admission: Admission, octets: &[u8]) -> Arrival {
        let from = incoming.remote_address();
        let comes_back = !incoming.may_retry();
        let is_spoofed_perhaps = !incoming.remote_address_validated();
        let admission = match admission {
            Admission::Accept if is_spoofed_perhaps && self.is_full_of_unvalidated() => {
                Admission::Retry
            }
            admission => admission,
        };
        self.datagrams.clear();
        match admission {
            _ if comes_back => return self.accept(incoming),
            Admission::Accept => return self.accept(incoming),
            Admission::Retry => {
                // It may be retried, which has just been asked.
                let _ = self.endpoint.retry(incoming, &mut self.datagrams);
            }
            Admission::Refuse => {
                let _ = self.endpoint.refuse(incoming, &mut self.datagrams);
            }
            Admission::VersionNegotiation => {
                self.endpoint.ignore(incoming);
                version_negotiation::write(octets, &mut self.datagrams);
            }
            Admission::Ignore => self.endpoint.ignore(incoming),
        }
        self.reply(from);
        Arrival::NotAccepted(admission)
    }

    fn accept(&mut self, incoming: Incoming) -> Arrival {
        let from = incoming.remote_address();
        let is_validated = incoming.remote_address_validated();
        let now = self.options.clock.to_std(self.now);
        match self
            .endpoint
            .accept(incoming, now, &mut self.datagrams, None)
        {
            Ok((handle, quic)) => {
                let mut connection =
                    Connection::new(quic, handle, self.options.protocol.is_http3(), self.now);
                if self.options.streams_are_final {
                    connection.end_stream_credit();
                }
                connection.settle(&mut self.endpoint);
                connection.is_unvalidated = !is_validated;
                self.unvalidated += usize::from(!is_validated);
                let key = self.connections.insert(connection);
                self.begin_handshake(key);
                if self.keys.len() <= handle.0 {
                    self.keys.resize(handle.0 + 1, None);
                }
                self.keys[handle.0] = Some(key);
                self.mark(key);
                Arrival::Accepted(key)
            }
            Err(error) => {
                if error.response.is_some() {
                    self.reply(from);
                }
                Arrival::Dropped
            }
        }
    }

    /// Queues what the endpoint has written to `datagrams`.
    fn reply(&mut self, to: SocketAddr) {
        if !self.datagrams.is_empty() && self.replies.len() < REPLIES_MAX {
            self.replies.push_back((to, self.datagrams.clone()));
        }
        self.datagrams.clear();
    }

    /// Notes that a connection may have events and something to send.
    fn mark(&mut self, key: ConnectionKey) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        connection.count(&mut self.held_octets);
        if !std::mem::replace(&mut connection.in_events, true) {
            self.with_events.push_back(key);
        }
        if !std::mem::replace(&mut connection.in_transmits, true) {
            self.with_transmits.push_back(key);
        }
    }

    /// The next event of any connection, until there is none.
    pub fn poll_event(&mut self) -> Option<ServerEvent<'_>> {
        let at = self.now;
        let now = self.options.clock.to_std(at);
        let (key, step) = loop {
            let key = *self.with_events.front()?;
            if let Some(connection) = self.connections.get_mut(key) {
                let buffers = Buffers {
                    held: &mut self.held,
                    scratch: &mut self.scratch,
                    protocol: &self.options.protocol,
                    message_ids: self.options.message_ids,
                    stops_streams: self.options.stops_streams,
                };
                let step = connection.next_step(now, buffers);
                connection.settle(&mut self.endpoint);
                if let Some(step) = step {
                    if matches!(step, Step::Query { .. } | Step::Established(_)) {
                        connection.progress_at = at;
                    }
                    if matches!(step, Step::Established(_)) {
                        connection.validate(&mut self.unvalidated);
                    }
                    break (key, step);
                }
                connection.in_events = false;
                connection.count(&mut self.held_octets);
                if connection.is_drained() {
                    self.remove(key);
                }
            }
            self.with_events.pop_front();
        };
        Some(match step {
            Step::Established(established) => ServerEvent::Established(key, established),
            Step::Query { stream, early } => ServerEvent::Query {
                key,
                stream,
                message: &self.held,
                early,
            },
            Step::Refused { stream, status } => ServerEvent::Refused {
                key,
                stream,
                status,
            },
            Step::Malformed { stream } => ServerEvent::Malformed { key, stream },
            Step::Excessive { stream } => ServerEvent::Excessive { key, stream },
            Step::Cancelled { stream } => ServerEvent::Cancelled { key, stream },
            Step::Lost(reason) => ServerEvent::Lost(key, reason),
        })
    }

    /// Sends the response on a query's stream; false if stream or connection are gone.
    ///
    /// `max_age` is for how many seconds an HTTP response is fresh (RFC 8484, section 5.1); DoQ
    /// has no such thing.
    pub fn respond(
        &mut self,
        key: ConnectionKey,
        stream: u64,
        message: &[u8],
        max_age: Option<u32>,
    ) -> bool {
        self.outgoing.clear();
        match self.options.protocol {
            // As it is: a server under test may break the rule that its ID is 0.
            ServerProtocol::Doq => framing::write_message(message, &mut self.outgoing),
            ServerProtocol::Http3 { .. } => {
                http3::response::write(message, max_age, &mut self.outgoing);
            }
        }
        self.send(key, stream)
    }

    /// Answers an HTTP request with a message whose media type is [`DNS`](crate::doh::DNS); false
    /// if stream or connection are gone, or if it is DoQ that is spoken.
    pub fn respond_mistyped(&mut self, key: ConnectionKey, stream: u64, message: &[u8]) -> bool {
        self.outgoing.clear();
        http3::response::write_mistyped(message, &mut self.outgoing);
        self.options.protocol.is_http3() && self.send(key, stream)
    }

    /// Answers an HTTP request with a status and no content; false if stream or connection are
    /// gone, or if it is DoQ that is spoken.
    pub fn respond_status(&mut self, key: ConnectionKey, stream: u64, status: u16) -> bool {
        self.outgoing.clear();
        http3::response::write_status(status, &mut self.outgoing);
        self.options.protocol.is_http3() && self.send(key, stream)
    }

    /// Sends the message in `outgoing`.
    fn send(&mut self, key: ConnectionKey, stream: u64) -> bool {
        let (max, protocol) = (self.options.unsent_octets_max, &self.options.protocol);
        let sent = match self.connections.get_mut(key) {
            Some(connection) => connection.send(stream, &self.outgoing, max),
            None => Delivery::Gone,
        };
        if sent == Delivery::Unread {
            self.unread += 1;
            let code = protocol.excessive_load();
            self.reset_stream(key, stream, code);
        }
        self.mark(key);
        sent == Delivery::Sent
    }

    /// Tells an HTTP client that no requests after those received so far are processed (GOAWAY);
    /// they are reset as rejected. Does nothing for DoQ, which has no such message.
    pub fn go_away(&mut self, key: ConnectionKey) {
        if let Some(connection) = self.connections.get_mut(key) {
            connection.go_away();
        }
        self.mark(key);
    }

    /// Sends octets and FIN on a stream, whatever they are: how a peer misbehaves.
    #[cfg(test)]
    pub(super) fn respond_raw(&mut self, key: ConnectionKey, stream: u64, octets: &[u8]) -> bool {
        let connection = self.connections.get_mut(key);
        let sent = connection.map(|connection| connection.send(stream, octets, usize::MAX));
        self.mark(key);
        sent == Some(Delivery::Sent)
    }

    /// Sends octets on a stream, without FIN.
    #[cfg(test)]
    pub(super) fn write_raw(&mut self, key: ConnectionKey, stream: u64, octets: &[u8]) -> bool {
        let id =
            quinn_proto::StreamId::new(quinn_proto::Side::Client, quinn_proto::Dir::Bi, stream);
        let connection = self.connections.get_mut(key);
        let sent = connection.is_some_and(|connection| {
            connection.quic.send_stream(id).write(octets) == Ok(octets.len())
        });
        self.mark(key);
        sent
    }

    /// Resets a query's stream in place of a response; false if stream or connection are gone.
    pub fn reset_stream(&mut self, key: ConnectionKey, stream: u64, code: u64) -> bool {
        let Some(connection) = self.connections.get_mut(key) else {
            return false;
        };
        let reset = connection.reset(stream, code);
        self.mark(key);
        reset
    }

    /// Streams of queries that are not answered, or whose response the client has not fully
    /// acknowledged; 0 if the connection is gone.
    pub fn streams_open(&mut self, key: ConnectionKey) -> usize {
        let connection = self.connections.get_mut(key);
        connection.map_or(0, Connection::streams_open)
    }

    /// Closes a connection with an application error code. It is gone for the caller; datagrams
    /// that are still under way are taken until it is drained (RFC 9000, section 10.2).
    pub fn close(&mut self, now: Instant, key: ConnectionKey, code: u64) {
        self.now = now;
        if let Some(connection) = self.connections.get_mut(key) {
            connection.close(self.options.clock.to_std(now), code, "");
        }
        self.mark(key);
    }

    /// Forgets a connection without a word, as after a restart: whatever the client sends next is
    /// answered with a stateless reset (RFC 9000, section 10.3).
    pub fn forget(&mut self, key: ConnectionKey) {
        self.remove(key);
    }

    fn remove(&mut self, key: ConnectionKey) {
        if let Some(mut connection) = self.connections.remove(key) {
            connection.validate(&mut self.unvalidated);
            self.held_octets -= connection.counted_octets();
            let handle: ConnectionHandle = connection.handle;
            self.keys[handle.0] = None;
            self.endpoint.handle_event(handle, EndpointEvent::drained());
        }
    }

    /// Appends datagrams for one client to `octets`, at most `datagrams_max` of equal length but
    /// for the last. `None` if there is nothing to send (now); call it again until then.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        octets: &mut Vec<u8>,
        datagrams_max: usize,
    ) -> Option<ServerTransmit> {
        self.now = now;
        if let Some((to, reply)) = self.replies.pop_front() {
            octets.extend_from_slice(&reply);
            let burst = Burst {
                datagram_octets: reply.len(),
                octets: reply.len(),
            };
            return Some(ServerTransmit { to, burst });
        }
        let std_now = self.options.clock.to_std(now);
        loop {
            let key = *self.with_transmits.front()?;
            if let Some(connection) = self.connections.get_mut(key).filter(|it| !it.is_held) {
                self.datagrams.clear();
                let buffer = &mut self.datagrams;
                let transmit = connection
                    .quic
                    .poll_transmit(std_now, datagrams_max, buffer);
                if let Some(transmit) = transmit {
                    octets.extend_from_slice(buffer);
                    let burst = Burst {
                        datagram_octets: transmit.segment_size.unwrap_or(transmit.size),
                        octets: transmit.size,
                    };
                    let to = transmit.destination;
                    return Some(ServerTransmit { to, burst });
                }
                connection.in_transmits = false;
                self.set_timer(key);
            }
            self.with_transmits.pop_front();
        }
    }

    /// Sends nothing for a connection until [`QuicServer::release`], as a server that is busy with
    /// something else.
    pub fn hold(&mut self, key: ConnectionKey) {
        if let Some(connection) = self.connections.get_mut(key) {
            connection.is_held = true;
        }
    }

    /// Lets a connection that was held send.
    pub fn release(&mut self, key: ConnectionKey) {
        if let Some(connection) = self.connections.get_mut(key) {
            connection.is_held = false;
            connection.in_transmits = false;
        }
        self.mark(key);
    }

    /// The kind of handshake, once the client's first message determines it.
    pub fn handshake_begun(&mut self, key: ConnectionKey) -> Option<HandshakeKind> {
        let connection = self.connections.get_mut(key)?;
        let facts = connection.quic.crypto_session().handshake_data()?;
        facts
            .downcast::<HandshakeFacts>()
            .ok()
            .map(|facts| facts.kind)
    }

    /// Adds a timer if the connection's is earlier than the one that is set.
    fn set_timer(&mut self, key: ConnectionKey) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let Some(due) = connection.quic.poll_timeout() else {
            return;
        };
        let due = self.options.clock.of_std(due);
        if connection.timer.is_none_or(|set| due < set) {
            connection.timer = Some(due);
            self.timers.push(Reverse((due, key)));
        }
    }

    /// When [`QuicServer::handle_timeout`] is to be called next; ask after `poll_transmit`. It may
    /// then find that nothing is due, and say a later instant.
    pub fn timeout(&self) -> Option<Instant> {
        let timer = self.timers.peek().map(|&Reverse((due, _))| due);
        let handshake = self.handshake_due();
        timer.into_iter().chain(handshake).min()
    }

    /// Handles due timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        self.end_late_handshakes();
        while let Some(&Reverse((due, key))) = self.timers.peek() {
            if due > now {
                return;
            }
            self.timers.pop();
            let Some(connection) = self.connections.get_mut(key) else {
                continue;
            };
            if connection.timer != Some(due) {
                continue;
            }
            connection.timer = None;
            let std_now = self.options.clock.to_std(now);
            if connection
                .quic
                .poll_timeout()
                .is_some_and(|due| due <= std_now)
            {
                connection.quic.handle_timeout(std_now);
                connection.settle(&mut self.endpoint);
                self.mark(key);
            } else {
                self.set_timer(key);
            }
        }
    }

    /// Connections, those included that are closed and not yet drained.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Octets of UDP payload sent and received on a connection so far.
    pub fn udp_octets(&self, key: ConnectionKey) -> Option<(u64, u64)> {
        let stats = self.connections.get(key)?.quic.stats();
        Some((stats.udp_tx.bytes, stats.udp_rx.bytes))
    }
}
