//! What is simulated where nothing is real: a network, and a server that needs time.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Delay, nanos};

/// The network between clients and server, each way, and the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Simulation {
    /// One-way delay.
    #[serde(rename = "delay_ns", with = "nanos")]
    #[schemars(with = "u64")]
    pub delay: Duration,
    /// The most that is added to it at random.
    #[serde(rename = "jitter_ns", with = "nanos")]
    #[schemars(with = "u64")]
    pub jitter: Duration,
    /// Share of datagrams and segments that are lost, 0 to 1.
    pub loss_share: f64,
    /// Share of datagrams that arrive twice, 0 to 1.
    pub duplicate_share: f64,
    /// Share of datagrams that later ones overtake, 0 to 1.
    pub reorder_share: f64,
    /// What the server needs; none if it needs no time.
    pub server: Option<ServiceModel>,
}

impl Default for Simulation {
    /// A network of 1 ms each way, and a server that needs no time.
    fn default() -> Self {
        Simulation {
            delay: Duration::from_millis(1),
            jitter: Duration::ZERO,
            loss_share: 0.0,
            duplicate_share: 0.0,
            reorder_share: 0.0,
            server: None,
        }
    }
}

/// What a server needs, and has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceModel {
    /// Workers (threads) that do the jobs, at least 1.
    pub workers: u32,
    /// Time of a worker for a query.
    pub query: Delay,
    /// Time of a worker for a connection that is accepted; without it, the model has no listen
    /// backlog either.
    #[serde(rename = "accept_ns", with = "nanos")]
    #[schemars(with = "u64")]
    pub accept: Duration,
    /// Time of a worker for a full TLS or QUIC handshake.
    #[serde(rename = "handshake_full_ns", with = "nanos")]
    #[schemars(with = "u64")]
    pub handshake_full: Duration,
    /// Time of a worker for a handshake that resumes a session.
    #[serde(rename = "handshake_resumed_ns", with = "nanos")]
    #[schemars(with = "u64")]
    pub handshake_resumed: Duration,
    /// Datagrams that may wait for a worker; further ones are dropped.
    pub datagrams_max: Option<u32>,
    /// Connections that may wait to be accepted.
    pub backlog_max: Option<u32>,
    /// Answers that are kept; without it, every question is answered from memory.
    pub cache: Option<CacheModel>,
}

/// A cache of answers that come from upstream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheModel {
    /// How long an answer is kept.
    #[serde(rename = "ttl_ns", with = "nanos")]
    #[schemars(with = "u64")]
    pub ttl: Duration,
    /// Answers kept at once, at least 1; the least recently used one makes room.
    pub entries_max: Option<u32>,
    /// Time from asking upstream to the answer.
    pub miss: Delay,
    /// What asking upstream adds to the time of the worker.
    #[serde(rename = "miss_service_ns", with = "nanos")]
    #[schemars(with = "u64")]
    pub miss_service: Duration,
}

impl Default for ServiceModel {
    /// One worker that needs no time.
    fn default() -> Self {
        ServiceModel {
            workers: 1,
            query: Delay::None,
            accept: Duration::ZERO,
            handshake_full: Duration::ZERO,
            handshake_resumed: Duration::ZERO,
            datagrams_max: None,
            backlog_max: None,
            cache: None,
        }
    }
}
