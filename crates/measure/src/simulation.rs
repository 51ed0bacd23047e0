//! What a simulated run assumed, and what its modelled server saw.
//!
//! A simulation measures no server: it says what follows from a model. So the record holds the
//! whole model, beside the figures that follow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::interval::per;

/// A run in virtual time: its network and its server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulationRecord {
    /// The network as modelled.
    pub network: SimulatedNetwork,
    /// The server as modelled; without it, the target needed no time at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ModelledServer>,
}

/// The network as modelled, and what it did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulatedNetwork {
    /// One-way delay.
    pub delay_ns: u64,
    /// Random addition to it, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<String>,
    /// Share of datagrams and segments lost, each way, 0 to 1.
    pub loss_share: f64,
    /// Share of datagrams that arrived twice, 0 to 1.
    pub duplicate_share: f64,
    /// Share of datagrams that took longer, 0 to 1.
    pub reorder_share: f64,
    /// Datagrams lost.
    pub datagrams_lost: u64,
    /// Datagrams that arrived twice.
    pub datagrams_duplicated: u64,
    /// Datagrams that took longer.
    pub datagrams_reordered: u64,
    /// Segments lost and sent again.
    pub segments_lost: u64,
    /// SYNs that found the listen backlog full.
    pub syns_dropped: u64,
}

/// The server as modelled, and what it saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelledServer {
    /// Workers that serve.
    #[schemars(range(min = 1))]
    pub workers: u64,
    /// Time of a worker for a query, in words.
    pub service_time: String,
    /// Time of a worker for a connection that is accepted.
    pub accept_ns: u64,
    /// Time of a worker for a full handshake.
    pub handshake_ns: u64,
    /// Time of a worker for a handshake that resumes a session.
    pub resumption_ns: u64,
    /// Datagrams that may wait for a worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_max: Option<u64>,
    /// Connections that may wait to be accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog_max: Option<u64>,
    /// Connections that may be open at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections_max: Option<u64>,
    /// Its cache; without it, every answer was at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<ModelledCache>,
    /// Its counts of the measured run.
    pub seen: ServerActivity,
}

/// The cache of a modelled server, and what it saw of the measured run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelledCache {
    /// How long an answer is kept.
    pub ttl_ns: u64,
    /// Answers kept at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries_max: Option<u64>,
    /// Time from asking upstream to the answer, in words.
    pub miss_time: String,
    /// What asking upstream adds to the time of the worker.
    pub miss_service_ns: u64,
    /// Queries answered from it.
    pub hits: u64,
    /// Queries resolved upstream.
    pub misses: u64,
    /// Queries that joined an earlier upstream query.
    pub joined: u64,
    /// Answers that made room for others before their time.
    pub evicted: u64,
}

/// Counts of a modelled server within the measured run, by arrival.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerActivity {
    /// Queries that came, those dropped included.
    pub queries: u64,
    /// Datagrams dropped because too many waited.
    pub dropped: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Full handshakes.
    pub handshakes: u64,
    /// Handshakes that resumed a session.
    pub resumptions: u64,
    /// Most jobs that waited for a worker at a time.
    pub waiting_max: u64,
    /// Time that workers were busy, added up over workers.
    pub busy_ns: u64,
    /// Share of the workers' time in which they were busy, 0 to 1.
    pub utilisation: f64,
    /// How long queries waited for a worker.
    pub waits: Histogram,
}

impl ModelledCache {
    /// Share of the queries that were answered from the cache, 0 to 1.
    pub fn hit_share(&self) -> f64 {
        let all = self.hits + self.misses + self.joined;
        per(self.hits as f64, all as f64)
    }
}
