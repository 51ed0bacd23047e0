//! How clients asked again, and which of their servers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What each client did as a stub resolver does it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StubResolver {
    /// The servers of every client, in order.
    pub servers: Vec<String>,
    /// Which was asked first: `first`, `rotate`, `stay` or `all`.
    pub order: String,
    /// The time of each attempt.
    pub waits_ns: Vec<u64>,
    /// RCODEs of responses that were not taken while another server could be asked.
    pub failover_rcodes: Vec<u16>,
    /// How long a client left out a server that did not answer.
    pub dead_for_ns: u64,
    /// Connection attempts were raced, each that long after the one before; none if they were not.
    pub race_delay_ns: Option<u64>,
}
