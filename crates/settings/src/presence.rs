//! When the clients of a group are there: some come late, some leave early, and now and then some
//! lose their connections.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::nanos;

/// When clients are there, in times since the start of the run, its warm-up included. The default
/// has them all there from start to end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Presence {
    /// When they join and connect; 0 if they are there from the start.
    #[serde(rename = "joined_ns", with = "nanos")]
    #[schemars(with = "u64")]
    pub joins_after: Duration,
    /// When they leave: no further query, and the connections are closed when their responses are
    /// in; none if they stay to the end.
    #[serde(rename = "left_ns", with = "nanos::option")]
    #[schemars(with = "Option<u64>")]
    pub leaves_after: Option<Duration>,
    /// When connections are reset, in order of time.
    pub resets: Vec<Reset>,
}

/// Connections that are reset (RST) by their clients, all at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reset {
    /// When.
    #[serde(rename = "at_ns", with = "nanos")]
    #[schemars(with = "u64")]
    pub after: Duration,
    /// Share of the clients whose connection is reset, 0 to 1; evenly spread over them.
    pub share: f64,
}
