//! All QUIC connections of the simulated clients of one worker.

mod connection;
mod responses;

use super::clock::Clock;
use super::identity::{VERSION_1, client_endpoint_config, initial_ids};
use super::session::ClientCrypto;
use super::slab::{ConnectionKey, Slab};
use super::transport::{self, Parameters};
use super::{Burst, Established, LostReason};
use crate::doh::DohRequest;
use crate::exchange::ExchangeEnd;
use crate::http3::request::RequestTemplate;
use crate::tls::ClientSession;
use crate::{Instant, doq, http3};
use bytes::{Bytes, BytesMut};
use connection::{Buffers, Connection, Step};
use quinn_proto::{
    ConnectionId, DatagramEvent, Endpoint, EndpointEvent, NoneTokenStore, TransportConfig,
};
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Octets of the buffer that datagrams are copied into, many to a buffer: quinn-proto decrypts in
/// place and keeps what it has not delivered.
pub(super) const ARENA_OCTETS: usize = 64 * 1024;

/// Settings of all connections of a [`QuicClient`].
#[derive(Clone, Debug)]
pub struct QuicClientOptions {
    /// The protocol on the streams.
    pub protocol: ClientProtocol,
    /// A connection ends after this long without a datagram; also bounds the handshake. The
    /// server's own timeout counts if it is shorter. `None` for the server's alone.
    pub idle_timeout: Option<Duration>,
    /// A PING after this long without a datagram; `None` for none.
    pub keep_alive: Option<Duration>,
    /// All that is random but for key exchanges is drawn from here.
    pub seed: [u8; 32],
    /// The standard library's instant of [`Instant::ZERO`].
    pub clock: Clock,
}

/// The section of RFC 9250 with DoQ's fatal errors.
const DOQ_RULES: &str = "RFC 9250, section 4.3.3";
/// The section of RFC 9114 with HTTP/3's.
const HTTP3_RULES: &str = "RFC 9114, section 8";

/// The protocol on a client's streams.
#[derive(Clone, Debug)]
pub enum ClientProtocol {
    /// DNS over QUIC (RFC 9250).
    Doq,
    /// DNS over HTTPS (RFC 8484) with HTTP/3 (RFC 9114); each query becomes this request.
    Http3(Arc<DohRequest>),
}

impl ClientProtocol {
    const fn alpn(&self) -> &'static [u8] {
        match self {
            ClientProtocol::Doq => doq::ALPN,
            ClientProtocol::Http3(_) => http3::ALPN,
        }
    }
}

/// Why a connection cannot even be begun: the settings, never the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// The name to verify is neither a domain name nor an address.
    ServerName(String),
    /// The TLS configuration offers no TLS 1.3, which QUIC is made of (RFC 9001).
    NoTls13,
}

impl std::fmt::Display for ConnectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ConnectError::ServerName(name) => write!(f, "`{name}` is not a server name"),
            ConnectError::NoTls13 => f.write_str("QUIC needs TLS 1.3"),
        }
    }
}

impl std::error::Error for ConnectError {}

/// Why a query cannot be sent on a connection now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blocked {
    /// The handshake is not complete, and early data is not possible.
    Handshaking,
    /// The peer allows no further stream; [`QuicEvent::StreamsAvailable`] follows.
    Streams,
    /// The peer accepts no new queries on this connection (HTTP/3 GOAWAY).
    GoingAway,
    /// The request's fields exceed the peer's limit (HTTP/3 SETTINGS_MAX_FIELD_SECTION_SIZE).
    FieldsTooLarge,
    /// The connection is closed or unknown.
    Closed,
}

/// An event of one connection; see [`QuicClient::poll_event`].
#[derive(Debug, PartialEq, Eq)]
pub enum QuicEvent<'a> {
    /// The handshake is complete.
    Established(Established),
    /// An exchange ended.
    Exchange {
        /// The caller's token of the query.
        token: u32,
        /// How it ended.
        end: ExchangeEnd<'a>,
    },
    /// The peer allows more streams than before.
    StreamsAvailable,
    /// The peer accepts no new queries on this connection; accepted ones are still answered.
    GoingAway,
    /// The connection is gone, and with it all exchanges that have not ended. The last event of a
    /// connection: send what `poll_transmit` still has, then [`QuicClient::forget`] it.
    Lost(LostReason),
}

/// All connections of one worker's clients; each has its own socket, connected to the target.
pub struct QuicClient {
    endpoint: Endpoint,
    options: QuicClientOptions,
    transport: Arc<TransportConfig>,
    initial_ids: Arc<dyn Fn() -> ConnectionId + Send + Sync>,
    connections: Slab<Connection>,
    /// Where datagrams are copied to be decrypted.
    arena: BytesMut,
    /// Datagrams before they are appended to the caller's.
    datagrams: Vec<u8>,
    /// Makes requests, if it is HTTP that is spoken.
    template: Option<RequestTemplate>,
    /// A query with its framing.
    outgoing: Vec<u8>,
    /// A query with ID 0; strings of field sections while they are decoded.
    scratch: Vec<u8>,
    /// The response that the latest event shows.
    held: Bytes,
    allows_stop_sending: bool,
    now: Instant,
}

impl QuicClient {
    /// An endpoint without connections.
    pub fn new(options: QuicClientOptions) -> Self {
        let endpoint_config = Arc::new(client_endpoint_config(options.seed));
        let transport = transport::config(&Parameters {
            bidi_streams_max: 0,
            http3: matches!(options.protocol, ClientProtocol::Http3(_)),
            idle_timeout: options.idle_timeout,
            window_octets: transport::CLIENT_WINDOW_OCTETS,
            keep_alive: options.keep_alive,
        });
        QuicClient {
            endpoint: Endpoint::new(endpoint_config, None, false, None),
            transport: Arc::new(transport),
            initial_ids: initial_ids(options.seed),
            connections: Slab::new(),
            arena: BytesMut::with_capacity(ARENA_OCTETS),
            datagrams: Vec::new(),
            template: match &options.protocol {
                ClientProtocol::Doq => None,
                ClientProtocol::Http3(request) => Some(RequestTemplate::new(Arc::clone(request))),
            },
            outgoing: Vec::new(),
            scratch: Vec::new(),
            held: Bytes::new(),
            allows_stop_sending: false,
            now: Instant::ZERO,
            options,
        }
    }

    /// Passes over STOP_SENDING from DoQ servers, which is fatal to a connection otherwise (RFC
    /// 9250, section 4.3.3): servers are in use that send it together with a complete response.
    pub fn allow_stop_sending(&mut self) {
        self.allows_stop_sending = true;
    }

    /// The peer's violation and the RFC section, if we closed the connection for it.
    pub fn broken_rule(&self, key: ConnectionKey) -> Option<(&'static str, &'static str)> {
        let what = self.connections.get(key)?.broken?;
        let rules = match self.options.protocol {
            ClientProtocol::Doq => DOQ_RULES,
            ClientProtocol::Http3(_) => HTTP3_RULES,
        };
        Some((what, rules))
    }

    /// Begins a connection; the first flight waits in [`QuicClient::poll_transmit`].
    ///
    /// `tls` needs TLS 1.3; its ALPN is ignored. Allocates about 20 KB.
    ///
    /// # Errors
    /// The settings are at fault; no connection can be made with them.
    pub fn connect(
        &mut self,
        now: Instant,
        tls: &Arc<rustls::ClientConfig>,
        server_name: &str,
    ) -> Result<ConnectionKey, ConnectError> {
        self.now = now;
        let crypto = ClientCrypto {
            config: Arc::clone(tls),
            alpn: self.options.protocol.alpn(),
        };
        let mut config = quinn_proto::ClientConfig::new(Arc::new(crypto));
        config
            .transport_config(Arc::clone(&self.transport))
            .token_store(Arc::new(NoneTokenStore))
            .initial_dst_cid_provider(Arc::clone(&self.initial_ids))
            .version(VERSION_1);
        let index = self.connections.vacant_index();
        let begun = self.endpoint.connect(
            self.options.clock.to_std(now),
            config,
            stand_in_address(index),
            server_name,
        );
        let (handle, quic) = begun.map_err(|error| match error {
            quinn_proto::ConnectError::InvalidServerName(name) => ConnectError::ServerName(name),
            _ => ConnectError::NoTls13,
        })?;
        let mut connection = Connection::new(quic, handle, self.template.is_some());
        connection.allows_stop_sending = self.allows_stop_sending;
        Ok(self.connections.insert(connection))
    }

    /// Begins a connection of a client that keeps its tickets in `memory`, with a configuration
    /// that resumes.
    ///
    /// With `resume`, it resumes the session in `memory`, if there is one; if then the
    /// configuration and the server allow early data, [`QuicClient::can_request`] is true at once.
    /// The memory comes back from [`QuicClient::take_memory`].
    ///
    /// # Errors
    /// As [`QuicClient::connect`]; tickets are lost.
    pub fn connect_remembering(
        &mut self,
        now: Instant,
        tls: &Arc<rustls::ClientConfig>,
        server_name: &str,
        mut memory: ClientSession,
        resume: bool,
    ) -> Result<ConnectionKey, ConnectError> {
        let key = memory.remember(resume, || self.connect(now, tls, server_name))?;
        if let Some(connection) = self.connections.get_mut(key) {
            connection.memory = Some(memory);
        }
        Ok(key)
    }

    /// True if there is a ticket for the client's next connection.
    pub fn has_ticket(&self, key: ConnectionKey) -> bool {
        let connection = self.connections.get(key);
        let memory = connection.and_then(|connection| connection.memory.as_ref());
        memory.is_some_and(ClientSession::has_ticket)
    }

    /// Takes back what a client remembers, for its next connection. Tickets that come later are
    /// forgotten.
    pub fn take_memory(&mut self, key: ConnectionKey) -> ClientSession {
        let connection = self.connections.get_mut(key);
        let memory = connection.and_then(|connection| connection.memory.take());
        memory.unwrap_or_default()
    }

    /// Takes a datagram that came on the socket of connection `key`.
    ///
    /// Returns whether it belongs to the connection. That says nothing about its content:
    /// quinn-proto silently drops packets that it cannot decrypt.
    pub fn handle_datagram(&mut self, now: Instant, key: ConnectionKey, octets: &[u8]) -> bool {
        self.now = now;
        let Some(connection) = self.connections.get_mut(key) else {
            return false;
        };
        self.arena.extend_from_slice(octets);
        let datagram = self.arena.split();
        self.datagrams.clear();
        let event = self.endpoint.handle(
            self.options.clock.to_std(now),
            stand_in_address(key.index),
            None,
            None,
            datagram,
            &mut self.datagrams,
        );
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) if handle == connection.handle => {
                connection.handle_event(event);
                connection.settle(&mut self.endpoint);
                true
            }
            // A response of the endpoint itself is a stateless reset to a stray datagram: not ours
            // to send.
            _ => false,
        }
    }

    /// Fires what was due at [`QuicClient::timeout`].
    pub fn handle_timeout(&mut self, now: Instant, key: ConnectionKey) {
        self.now = now;
        if let Some(connection) = self.connections.get_mut(key) {
            connection
                .quic
                .handle_timeout(self.options.clock.to_std(now));
            connection.settle(&mut self.endpoint);
        }
    }

    /// When [`QuicClient::handle_timeout`] is to be called next; ask after `poll_transmit`.
    pub fn timeout(&mut self, key: ConnectionKey) -> Option<Instant> {
        let due = self.connections.get_mut(key)?.quic.poll_timeout()?;
        Some(self.options.clock.of_std(due))
    }

    /// Appends datagrams to `octets`, at most `datagrams_max` of equal length but for the last.
    ///
    /// `None` if there is nothing to send (now). Call it again until then.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        key: ConnectionKey,
        octets: &mut Vec<u8>,
        datagrams_max: usize,
    ) -> Option<Burst> {
        self.now = now;
        let connection = self.connections.get_mut(key)?;
        connection.hurry_streams();
        // quinn-proto counts from the start of the buffer it is given.
        let buffer = if octets.is_empty() {
            &mut *octets
        } else {
            self.datagrams.clear();
            &mut self.datagrams
        };
        let now = self.options.clock.to_std(now);
        let transmit = connection.quic.poll_transmit(now, datagrams_max, buffer)?;
        let burst = Burst {
            datagram_octets: transmit.segment_size.unwrap_or(transmit.size),
            octets: transmit.size,
        };
        if !self.datagrams.is_empty() {
            octets.extend_from_slice(&self.datagrams);
            self.datagrams.clear();
        }
        Some(burst)
    }

    /// The next event of a connection, until there is none.
    ///
    /// Responses are passed on in place, or copied if they arrived in several parts.
    pub fn poll_event(&mut self, key: ConnectionKey) -> Option<QuicEvent<'_>> {
        let connection = self.connections.get_mut(key)?;
        let now = self.options.clock.to_std(self.now);
        let buffers = Buffers {
            held: &mut self.held,
            scratch: &mut self.scratch,
        };
        let step = connection.next_step(now, buffers);
        connection.settle(&mut self.endpoint);
        Some(match step? {
            Step::Established(established) => QuicEvent::Established(established),
            Step::Message { token } => QuicEvent::Exchange {
                token,
                end: ExchangeEnd::Message(&self.held),
            },
            Step::Ended { token, end } => QuicEvent::Exchange { token, end },
            Step::StreamsAvailable => QuicEvent::StreamsAvailable,
            Step::GoingAway => QuicEvent::GoingAway,
            Step::Lost(reason) => QuicEvent::Lost(reason),
        })
    }

    /// True if a query can be sent on the connection at once.
    pub fn can_request(&mut self, key: ConnectionKey) -> bool {
        self.blocked(key).is_none()
    }

    /// Why no query can be sent on the connection now, if none can.
    pub fn blocked(&mut self, key: ConnectionKey) -> Option<Blocked> {
        match self.connections.get_mut(key) {
            None => Some(Blocked::Closed),
            Some(connection) => connection.open_stream().err(),
        }
    }

    /// Estimated round-trip time (RFC 9002, section 5.3), the peer's delay of acknowledgements
    /// not in it; zero if the connection is gone.
    pub fn rtt(&self, key: ConnectionKey) -> Duration {
        let connection = self.connections.get(key);
        connection.map_or(Duration::ZERO, |connection| connection.quic.rtt())
    }

    /// Sends a query on a new stream; its datagrams wait in [`QuicClient::poll_transmit`].
    ///
    /// `message` is a whole DNS message, of one octet at least; its ID goes out as 0, and the
    /// response has ID 0 too.
    /// `token` comes back with the end of the exchange, exactly once; unless it is cancelled, or
    /// the connection is lost first.
    ///
    /// # Errors
    /// Nothing was sent, and why.
    pub fn request(
        &mut self,
        now: Instant,
        key: ConnectionKey,
        message: &[u8],
        token: u32,
    ) -> Result<(), Blocked> {
        self.now = now;
        let connection = self.connections.get_mut(key).ok_or(Blocked::Closed)?;
        let stream = connection.open_stream()?;
        self.outgoing.clear();
        match &mut self.template {
            None => doq::write_stream(message, &mut self.outgoing),
            Some(template) => {
                connection.check_fields(template.counted_octets(message.len()))?;
                self.scratch.clear();
                self.scratch.extend_from_slice(message);
                // RFC 8484, section 4.1.
                self.scratch.iter_mut().take(2).for_each(|octet| *octet = 0);
                template.write(&self.scratch, &mut self.outgoing);
            }
        }
        connection.request(stream, &self.outgoing, token);
        Ok(())
    }

    /// Sends any octets and FIN on a new stream: how a client misbehaves.
    #[cfg(test)]
    pub(super) fn request_raw(&mut self, key: ConnectionKey, octets: &[u8], token: u32) {
        if let Some(connection) = self.connections.get_mut(key)
            && let Ok(stream) = connection.open_stream()
        {
            connection.request(stream, octets, token);
        }
    }

    /// Sends octets on a new stream, or on `stream`, without FIN: an incomplete query. Returns the
    /// stream, and how many octets flow control allowed.
    #[cfg(test)]
    pub(super) fn write_raw(
        &mut self,
        key: ConnectionKey,
        stream: Option<quinn_proto::StreamId>,
        octets: &[u8],
    ) -> Option<(quinn_proto::StreamId, usize)> {
        let connection = self.connections.get_mut(key)?;
        connection.write_raw(stream, octets)
    }

    /// Cancels an exchange at the peer; it causes no further events.
    ///
    /// Returns whether there was an exchange with this token. Looks at all open exchanges of the
    /// connection: for timeouts, not for every query.
    pub fn cancel(&mut self, now: Instant, key: ConnectionKey, token: u32) -> bool {
        self.now = now;
        let connection = self.connections.get_mut(key);
        connection.is_some_and(|connection| connection.cancel_token(token))
    }

    /// Gives up an exchange without telling the peer: a response that still comes is reported with
    /// the same token as [`ExchangeEnd::Late`].
    ///
    /// The connection keeps the last [`QuicClient::ABANDONED_MAX`] of these and cancels those
    /// before, because each takes one of the streams that the peer allows.
    pub fn abandon(&mut self, now: Instant, key: ConnectionKey, token: u32) -> bool {
        self.now = now;
        let connection = self.connections.get_mut(key);
        connection.is_some_and(|connection| connection.abandon_token(token))
    }

    /// How many abandoned exchanges a connection keeps.
    pub const ABANDONED_MAX: usize = connection::ABANDONED_MAX;

    /// Closes a connection with an application error code
    /// ([`DOQ_NO_ERROR`](doq::DOQ_NO_ERROR), [`NO_ERROR`](http3::ErrorCode::NO_ERROR)); one
    /// datagram waits in `poll_transmit`, and no event follows. Then [`QuicClient::forget`] it.
    pub fn close(&mut self, now: Instant, key: ConnectionKey, code: u64) {
        self.now = now;
        if let Some(connection) = self.connections.get_mut(key) {
            connection.close(self.options.clock.to_std(now), code, "");
        }
    }

    /// Frees all memory of a connection, closed or not, without notice to the peer.
    pub fn forget(&mut self, key: ConnectionKey) {
        if let Some(connection) = self.connections.remove(key) {
            self.endpoint
                .handle_event(connection.handle, EndpointEvent::drained());
        }
    }

    /// Octets of UDP payload sent and received on a connection so far.
    pub fn udp_octets(&self, key: ConnectionKey) -> Option<(u64, u64)> {
        let stats = self.connections.get(key)?.quic.stats();
        Some((stats.udp_tx.bytes, stats.udp_rx.bytes))
    }

    /// Exchanges of a connection that have not ended, abandoned ones included.
    pub fn exchanges_open(&self, key: ConnectionKey) -> usize {
        self.connections
            .get(key)
            .map_or(0, Connection::exchanges_open)
    }

    /// Connections that have not been forgotten.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }
}

/// An address that stands for connection `index` towards quinn-proto.
///
/// A datagram's connection is identified by its socket. With zero-length connection IDs,
/// quinn-proto identifies it by the peer's address, so each connection gets a unique one, which is
/// never used on the wire. Locally assigned addresses (RFC 4193) cannot be mistaken for a target's.
fn stand_in_address(index: u32) -> SocketAddr {
    let address = (0xfd00_u128 << 112) | u128::from(index);
    SocketAddr::from((Ipv6Addr::from_bits(address), 853))
}
