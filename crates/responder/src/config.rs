//! All settings of a responder, shared by its workers.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use proto::Transport;
use proto::tls::rustls;

use crate::behaviour::{Behaviour, BehaviourError};
use crate::zone::Zone;

/// The maxima of what one worker keeps; what does not fit is counted and dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Responses that wait for their delay or for the end of a stall.
    pub delayed_responses_max: usize,
    /// Their octets together.
    pub delayed_octets_max: usize,
    /// Octets of responses that wait on one connection whose client does not read. From half of
    /// it on, the connection is not read either.
    pub unsent_octets_max: usize,
    /// Connections open at once, over all workers; further ones are accepted and ended.
    pub connections_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            delayed_responses_max: 1 << 20,
            delayed_octets_max: 256 << 20,
            unsent_octets_max: 1 << 20,
            connections_max: 1 << 20,
        }
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

/// What a responder is told. The default answers any name over UDP and TCP on a free port of
/// 127.0.0.1, at once and without faults.
#[derive(Clone, Debug)]
pub struct ResponderConfig {
    /// Where to listen. Port 0 takes a free port, the same for UDP and TCP on one address.
    /// A wildcard address answers UDP from whatever address the system chooses.
    pub listen: Vec<(Transport, SocketAddr)>,
    /// What is answered.
    pub zone: Arc<Zone>,
    /// Delays, faults and limits.
    pub behaviour: Behaviour,
    /// Needed if `listen` has DoT; see [`crate::certificate`].
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Longest UDP response, in octets, if the client's EDNS allows as much (at least 512).
    pub udp_payload_octets_max: u16,
    /// Maxima of memory.
    pub limits: Limits,
    /// Seed of all chances.
    pub seed: u64,
    /// The connections that all workers have open; shared by clones of this configuration.
    pub open_connections: OpenConnections,
}

impl Default for ResponderConfig {
    fn default() -> Self {
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        ResponderConfig {
            listen: vec![(Transport::Udp, local), (Transport::Tcp, local)],
            zone: Arc::new(Zone::synthesised(60)),
            behaviour: Behaviour::default(),
            tls: None,
            // What resolvers and servers have agreed on (DNS flag day 2020).
            udp_payload_octets_max: 1232,
            limits: Limits::default(),
            seed: 1,
            open_connections: OpenConnections::default(),
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigError {
    /// Nothing to listen on.
    ListensNowhere,
    /// DoT without a certificate.
    DotWithoutCertificate,
    /// A behaviour that contradicts itself.
    Behaviour(BehaviourError),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::ListensNowhere => f.write_str("the responder has nothing to listen on"),
            ConfigError::DotWithoutCertificate => {
                f.write_str("the responder listens for dot and has no certificate")
            }
            ConfigError::Behaviour(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ConfigError {}

impl ResponderConfig {
    /// Checks that the settings go together.
    ///
    /// # Errors
    /// The first contradiction; no worker can be made from this configuration.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.listen.is_empty() {
            return Err(ConfigError::ListensNowhere);
        }
        let dot = self
            .listen
            .iter()
            .any(|(transport, _)| *transport == Transport::Dot);
        if dot && self.tls.is_none() {
            return Err(ConfigError::DotWithoutCertificate);
        }
        self.behaviour.validate().map_err(ConfigError::Behaviour)
    }
}
