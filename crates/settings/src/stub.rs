//! Which of its servers a client asks, and how often.

use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Named, nanos};

/// What is asked of each client as a stub resolver. The default asks each server once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stub {
    /// When a query is asked again; none for one attempt at each server.
    pub retry: Option<Retry>,
    /// Which of several servers is asked first; none for what `retry` says.
    pub order: Option<ServerOrder>,
    /// RCODEs of responses that are not taken while another server can be asked; empty for those
    /// of `retry`.
    pub failover_rcodes: Vec<u16>,
    /// How long a server is left out that did not answer; none forgets at once.
    #[serde(rename = "dead_for_ns", with = "nanos::option")]
    #[schemars(with = "Option<u64>")]
    pub dead_for: Option<Duration>,
    /// Connection attempts are raced (RFC 8305), each that long after the one before.
    #[serde(rename = "race_delay_ns", with = "nanos::option")]
    #[schemars(with = "Option<u64>")]
    pub race_delay: Option<Duration>,
}

/// When a query is asked again: times of its attempts, or those of a stub resolver in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// These times, in nanoseconds.
    Times(
        #[serde(with = "nanos::list")]
        #[schemars(with = "Vec<u64>")]
        Vec<Duration>,
    ),
    /// As glibc.
    Glibc(ResolvConf),
    /// As musl.
    Musl(ResolvConf),
    /// As systemd-resolved.
    SystemdResolved,
    /// As Windows with one server.
    Windows,
}

/// The RCODEs after which glibc asks the next server: SERVFAIL, NOTIMP, REFUSED.
const RCODES_OF_GLIBC: [u16; 3] = [2, 4, 5];
/// That of systemd-resolved: REFUSED.
const RCODES_OF_SYSTEMD: [u16; 1] = [5];

impl Retry {
    /// The time of each attempt of a client with `servers` servers.
    pub fn waits(&self, servers: usize) -> Vec<Duration> {
        let seconds = |all: &[u64]| all.iter().copied().map(Duration::from_secs).collect();
        match self {
            Retry::Times(times) => times.clone(),
            Retry::Glibc(settings) => {
                let of_server = |server: usize| match server {
                    0 => u64::from(settings.timeout_s),
                    _ => ((u64::from(settings.timeout_s) << server) / servers as u64).max(1),
                };
                let round: Vec<u64> = (0..servers).map(of_server).collect();
                seconds(&round.repeat(settings.attempts as usize))
            }
            Retry::Musl(settings) => {
                let whole = Duration::from_secs(settings.timeout_s.into());
                vec![whole / settings.attempts; settings.attempts as usize]
            }
            Retry::SystemdResolved => vec![Duration::from_secs(5); 24],
            Retry::Windows => seconds(&[1, 1, 2, 4, 2]),
        }
    }

    /// Which server is asked first, unless told otherwise.
    pub fn order(&self) -> ServerOrder {
        match self {
            Retry::Musl(_) => ServerOrder::All,
            Retry::SystemdResolved => ServerOrder::Stay,
            Retry::Times(_) | Retry::Glibc(_) | Retry::Windows => ServerOrder::First,
        }
    }

    /// RCODEs after which the next server is asked, unless told otherwise.
    pub fn failover_rcodes(&self) -> &'static [u16] {
        match self {
            Retry::Glibc(_) => &RCODES_OF_GLIBC,
            Retry::SystemdResolved => &RCODES_OF_SYSTEMD,
            Retry::Times(_) | Retry::Musl(_) | Retry::Windows => &[],
        }
    }
}

/// Options of resolv.conf(5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolvConf {
    /// `timeout`, seconds: 1 to 30.
    pub timeout_s: u32,
    /// `attempts`: 1 to 5.
    pub attempts: u32,
}

impl Default for ResolvConf {
    fn default() -> Self {
        ResolvConf {
            timeout_s: 5,
            attempts: 2,
        }
    }
}

/// What each client does as a stub resolver does it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StubPolicy {
    /// The servers of every client, at least one, in order; the first is the plan's target.
    #[schemars(with = "Vec<String>")]
    pub servers: Vec<SocketAddr>,
    /// Which of them is asked first.
    pub order: ServerOrder,
    /// The time of each attempt, at least one; together the timeout of a query.
    #[serde(rename = "waits_ns", with = "nanos::list")]
    #[schemars(with = "Vec<u64>")]
    pub waits: Vec<Duration>,
    /// RCODEs of responses that are not accepted while another server can be asked.
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
