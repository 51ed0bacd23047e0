//! Which of its servers a client asks, and how often.

use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Named, nanos};

/// What each client does as a stub resolver does it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StubPolicy {
    /// The servers of every client, at least one, in order; the first is the plan's target.
    #[schemars(with = "Vec<String>")]
    pub servers: Vec<SocketAddr>,
    /// Which of them is asked first.
    pub order: ServerOrder,
    /// The time of each attempt, at least one; together the time-out of a query.
    #[serde(rename = "waits_ns", with = "nanos::list")]
    #[schemars(with = "Vec<u64>")]
    pub waits: Vec<Duration>,
    /// RCODEs of responses that are not taken while another server can be asked.
    pub failover_rcodes: Vec<u16>,
    /// How long a client leaves out a server that did not answer it; zero forgets at once.
    #[serde(rename = "dead_for_ns", with = "nanos")]
    #[schemars(with = "u64")]
    pub dead_for: Duration,
    /// Connection attempts are raced (RFC 8305), the next server's that long after the one before;
    /// none waits for each to fail.
    #[serde(rename = "race_delay_ns", with = "nanos::option")]
    #[schemars(with = "Option<u64>")]
    pub race_delay: Option<Duration>,
}

impl StubPolicy {
    /// The time of all attempts: how long a query may take.
    pub fn timeout(&self) -> Duration {
        self.waits.iter().sum()
    }
}

/// Which server a client asks first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServerOrder {
    /// The first one of the list, always.
    #[default]
    First,
    /// Each in turn, as `rotate` of resolv.conf(5): with the query over UDP, which are then sent
    /// one by one, else with the connection.
    Rotate,
    /// The one that was asked last, as long as it answers.
    Stay,
    /// All at once; UDP only.
    All,
}

impl Named for ServerOrder {
    const WHAT: &'static str = "order of servers";
    const ALL: &'static [Self] = &[
        ServerOrder::First,
        ServerOrder::Rotate,
        ServerOrder::Stay,
        ServerOrder::All,
    ];

    fn name(self) -> &'static str {
        match self {
            ServerOrder::First => "first",
            ServerOrder::Rotate => "rotate",
            ServerOrder::Stay => "stay",
            ServerOrder::All => "all",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            ServerOrder::First => "Always the first",
            ServerOrder::Rotate => "Each in turn",
            ServerOrder::Stay => "The one that answered last",
            ServerOrder::All => "All at once, over UDP",
        }
    }
}

impl FromStr for ServerOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        ServerOrder::named(text)
    }
}
