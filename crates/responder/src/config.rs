//! All settings of a responder, shared by its workers.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use driver::random::SEED_OCTETS;
use proto::Transport;
use proto::doq::MessageIds;
use proto::http2::Http2ServerOptions;
use proto::tls::rustls;

use crate::behaviour::{Behaviour, BehaviourError, validate};
use crate::quic;
use crate::service::ServiceModel;
use crate::zone::Zone;

/// Limits of one worker's memory and timeouts; excess is dropped and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Responses that wait for their delay or for the end of a stall.
    pub delayed_responses_max: usize,
    /// Their octets together.
    pub delayed_octets_max: usize,
    /// Bytes of responses that may wait on a connection whose client does not read. From half of it
    /// on, the connection is not read either.
    pub unsent_octets_max: usize,
    /// Connections open at once, over all workers; further ones are accepted and ended.
    pub connections_max: u32,
    /// Bytes of incomplete queries and waiting responses, over all workers, which have equal
    /// shares. Beyond it, connections are closed, those first that hold most for longest. Delayed
    /// responses have at most half of it.
    pub pending_octets_max: usize,
    /// The same, but including the memory of idle connections.
    pub memory_octets_max: usize,
    /// QUIC connections whose clients have not proved their address, over all workers, on each
    /// address; above it, clients have to retry with a token (Retry).
    pub quic_unvalidated_max: usize,
    /// A connection on which nothing is received for this long is closed, unless the behaviour has
    /// a time-out: a client that vanished must not be kept for ever.
    pub idle_timeout: Duration,
    /// A connection whose TLS handshake takes longer is closed.
    pub handshake_timeout: Duration,
}

impl Limits {
    /// The defaults.
    pub const DEFAULT: Limits = Limits {
        delayed_responses_max: 1 << 20,
        delayed_octets_max: 256 << 20,
        unsent_octets_max: 1 << 20,
        connections_max: 1 << 20,
        pending_octets_max: 192 << 20,
        memory_octets_max: 1 << 30,
        quic_unvalidated_max: 2_048,
        idle_timeout: Duration::from_secs(300),
        handshake_timeout: Duration::from_secs(10),
    };
}

impl Default for Limits {
    fn default() -> Self {
        Limits::DEFAULT
    }
}

/// Connections open at once over all workers of a responder.
#[derive(Clone, Debug, Default)]
pub struct OpenConnections(Arc<AtomicU32>);

impl OpenConnections {
    /// How many there are now.
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts one more, unless there are `max` already.
    pub(crate) fn admit(&self, max: u32) -> bool {
        let more = |open: u32| (open < max).then(|| open + 1);
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    pub(crate) fn release(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The key of Retry tokens (RFC 9000, section 8.1.2), shared because a client's retry may reach
/// another worker.
#[derive(Clone, Debug, Default)]
pub struct TokenKey(Arc<OnceLock<[u8; SEED_OCTETS]>>);

impl TokenKey {
    /// The key, which is `seed` if no worker has set it before.
    pub(crate) fn or_set(&self, seed: [u8; SEED_OCTETS]) -> [u8; SEED_OCTETS] {
        *self.0.get_or_init(|| seed)
    }
}

/// Default limit of open streams of a QUIC connection, the same as CoreDNS'. Clients of the usual
/// depth, 100, are not delayed, although a server learns of a stream's end only with the
/// acknowledgement.
pub const QUIC_STREAMS_MAX: u32 = 256;

/// The configuration of a responder. The default answers any name over UDP and TCP on a free port
/// of 127.0.0.1, without delays and faults.
#[derive(Clone, Debug)]
pub struct ResponderConfig {
    /// Where to listen. Port 0 takes a free port, the same for UDP and TCP on one address.
    /// A wildcard address answers UDP from whatever address the system chooses.
    pub listen: Vec<(Transport, SocketAddr)>,
    /// Where to listen for DoH/2 without TLS (HTTP/2 with prior knowledge), in addition.
    pub listen_http: Vec<SocketAddr>,
    /// The zone that it answers from.
    pub zone: Arc<Zone>,
    /// Names whose queries get no response, in wire format and the case of the query.
    pub silent_names: Vec<Vec<u8>>,
    /// Names, as in `silent_names`, with the extra delay of their responses.
    pub slow_names: Vec<(Vec<u8>, Duration)>,
    /// Delays, faults and limits.
    pub behaviour: Behaviour,
    /// A model of the processing time of a server, for each worker of this responder separately;
    /// zero without it. Delays of `behaviour` are added.
    pub service: Option<ServiceModel>,
    /// Needed if `listen` has a transport with TLS, whose ALPN protocol is set for each; see
    /// [`crate::certificate`].
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// The path of the resource in DoH, without query.
    pub doh_path: String,
    /// Requests that may be open at once on one DoH connection.
    pub doh_streams_max: u32,
    /// Queries that may be open at once on one QUIC connection, DoQ's or DoH/3's.
    pub quic_streams_max: u32,
    /// Message IDs that are accepted over DoQ.
    pub doq_message_ids: MessageIds,
    /// Stops the streams of DoQ queries (STOP_SENDING) when the message is complete, which violates
    /// RFC 9250, section 4.3.3.
    pub doq_stop_sending: bool,
    /// Allows no further streams when streams end, so that `quic_streams_max` limits the whole
    /// connection.
    pub quic_streams_are_final: bool,
    /// Longest UDP response, in octets, if the client's EDNS allows as much (at least 512).
    pub udp_payload_octets_max: u16,
    /// Responses over UDP to one network of sources (/24 of IPv4, /56 of IPv6) a second, over all
    /// workers; `None` for any number. The source of a datagram can be forged, and its owner gets
    /// the responses.
    pub source_rate_max: Option<u32>,
    /// Maxima of memory.
    pub limits: Limits,
    /// Seed of all random choices.
    pub seed: u64,
    /// The connections that all workers have open; shared by clones of this configuration.
    pub open_connections: OpenConnections,
    /// The key of Retry tokens; shared by clones of this configuration.
    pub token_key: TokenKey,
}

impl Default for ResponderConfig {
    fn default() -> Self {
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        ResponderConfig {
            listen: vec![(Transport::Udp, local), (Transport::Tcp, local)],
            listen_http: Vec::new(),
            zone: Arc::new(Zone::synthesised(60)),
            silent_names: Vec::new(),
            slow_names: Vec::new(),
            behaviour: Behaviour::default(),
            service: None,
            tls: None,
            doh_path: "/dns-query".to_owned(),
            doh_streams_max: 1_000,
            quic_streams_max: QUIC_STREAMS_MAX,
            doq_message_ids: MessageIds::Zero,
            doq_stop_sending: false,
            quic_streams_are_final: false,
            // The recommendation of DNS flag day 2020.
            udp_payload_octets_max: 1232,
            source_rate_max: None,
            limits: Limits::default(),
            seed: 1,
            open_connections: OpenConnections::default(),
            token_key: TokenKey::default(),
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigError {
    /// Nothing to listen on.
    ListensNowhere,
    /// A transport with TLS, and no certificate.
    NoCertificate(Transport),
    /// A transport over QUIC, and settings of TLS that cannot serve it; the reason.
    Quic(Transport, String),
    /// A path that does not begin with a slash, or has a query.
    DohPath(String),
    /// A behaviour that contradicts itself.
    Behaviour(BehaviourError),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::ListensNowhere => f.write_str("the responder has nothing to listen on"),
            ConfigError::NoCertificate(transport) => {
                write!(
                    f,
                    "the responder listens for {transport} and has no certificate"
                )
            }
            ConfigError::Quic(transport, reason) => {
                write!(f, "the responder cannot serve {transport}: {reason}")
            }
            ConfigError::DohPath(path) => {
                write!(
                    f,
                    "`{path}` is not a path for DoH: expected one such as /dns-query"
                )
            }
            ConfigError::Behaviour(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ConfigError {}

impl ResponderConfig {
    /// How each transport's sessions are set up, in the order of [`Transport::ALL`]: as
    /// `self.tls`, with the transport's own ALPN protocol.
    pub(crate) fn tls_by_transport(&self) -> [Option<Arc<rustls::ServerConfig>>; 6] {
        Transport::ALL.map(|transport| {
            let (tls, alpn) = (self.tls.as_ref()?, transport.alpn()?);
            let mut own = rustls::ServerConfig::clone(tls);
            own.alpn_protocols = vec![alpn.as_bytes().to_vec()];
            Some(Arc::new(own))
        })
    }

    /// A connection is closed after this long without octets from the client.
    pub(crate) fn idle_timeout(&self) -> Duration {
        let configured = self.behaviour.idle_timeout;
        configured.unwrap_or(self.limits.idle_timeout)
    }

    /// What DoH/2 connections have in common.
    pub(crate) fn http2(&self) -> Http2ServerOptions {
        Http2ServerOptions {
            path: self.doh_path.clone(),
            streams_max: self.doh_streams_max,
            queued_octets_max: self.limits.unsent_octets_max,
            ..Http2ServerOptions::default()
        }
    }

    /// Checks that the settings are consistent.
    ///
    /// # Errors
    /// The first contradiction; no worker can be made from this configuration.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.listen.is_empty() && self.listen_http.is_empty() {
            return Err(ConfigError::ListensNowhere);
        }
        let mut listen = self.listen.iter();
        if self.tls.is_none()
            && let Some((transport, _)) = listen.find(|(transport, _)| transport.has_tls())
        {
            return Err(ConfigError::NoCertificate(*transport));
        }
        for (transport, _) in self.listen.iter().filter(|it| it.0.is_quic()) {
            quic::server(self, *transport, ([0; SEED_OCTETS], [0; SEED_OCTETS]), 1)
                .map_err(|reason| ConfigError::Quic(*transport, reason))?;
        }
        if !self.doh_path.starts_with('/') || self.doh_path.contains(['?', '#']) {
            return Err(ConfigError::DohPath(self.doh_path.clone()));
        }
        validate(&self.behaviour).map_err(ConfigError::Behaviour)
    }
}
