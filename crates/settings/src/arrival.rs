//! When queries are due: for all clients together, or for each by itself.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FileName, Named, Transport, nanos};

/// When queries are due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrival {
    /// Closed loop: a new query as soon as fewer than `outstanding` are in flight.
    Closed {
        /// Queries in flight over all workers.
        outstanding: u32,
        /// Never more than that many queries a second.
        rate_qps_max: Option<f64>,
    },
    /// Open loop: queries are due at their instants whatever the target does.
    Open {
        /// Mean rate over all workers, in queries a second.
        rate_qps: f64,
        /// How they are spread.
        process: Process,
        /// Queries that are due at the same instant, all of one client.
        burst: u32,
    },
    /// Each client asks by itself.
    Clients(ClientArrival),
    /// Each client does what this script in Lua says.
    Script(FileName),
    /// Each client is drawn from a profile.
    Profile {
        /// The profile (TOML).
        file: FileName,
        /// Its names are made below this zone; none where it has names, or a list has them.
        zone: Option<String>,
        /// How many times as often each client asks; none for as often.
        rate_factor: Option<f64>,
    },
    /// Each client asks what one of a capture asked, when it did.
    Replay(ReplaySource),
}

/// Queries in flight unless told otherwise.
pub const OUTSTANDING: u32 = 100;

impl Default for Arrival {
    fn default() -> Self {
        Arrival::Closed {
            outstanding: OUTSTANDING,
            rate_qps_max: None,
        }
    }
}

/// What is asked again of what was captured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaySource {
    /// Captures and query logs, oldest first.
    pub captures: Vec<FileName>,
    /// What they are, such as `pcap`; none if that is found from their content.
    pub format: Option<String>,
    /// Ports that the servers listen on, in captures of packets.
    pub ports: Vec<u16>,
    /// A client is an address and port, not an address.
    pub by_port: bool,
    /// How many times as fast as they came queries are asked.
    pub speed: f64,
    /// Only queries of clients with these addresses and prefixes.
    pub only_clients: Vec<String>,
    /// Only queries with these QTYPEs.
    pub only_qtypes: Vec<u16>,
    /// Only queries for these names and those below them.
    pub only_names: Vec<String>,
    /// Only queries that came over these transports.
    pub only_transports: Vec<Transport>,
    /// Only queries from that long after the first of the capture on.
    #[serde(rename = "from_ns", with = "nanos::option")]
    #[schemars(with = "Option<u64>")]
    pub from: Option<Duration>,
    /// Only queries less than that long after the first of the capture.
    #[serde(rename = "until_ns", with = "nanos::option")]
    #[schemars(with = "Option<u64>")]
    pub until: Option<Duration>,
    /// At most this number of those that are left, the first ones.
    pub queries_max: Option<u64>,
    /// How often everything is asked.
    pub rounds: u64,
}

impl Default for ReplaySource {
    /// Of nothing, all as it came.
    fn default() -> Self {
        ReplaySource {
            captures: Vec::new(),
            format: None,
            ports: vec![53],
            by_port: false,
            speed: 1.0,
            only_clients: Vec::new(),
            only_qtypes: Vec::new(),
            only_names: Vec::new(),
            only_transports: Vec::new(),
            from: None,
            until: None,
            queries_max: None,
            rounds: 1,
        }
    }
}

/// How each client of a population asks. Its text is that of `--per-client`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ClientArrival {
    /// Equally spaced; the first query comes at a random moment within the first gap.
    Constant {
        /// Queries a second of one client.
        rate_qps: f64,
    },
    /// Equally spaced, and in turn with all other clients: together they ask at equal distances
    /// too, the first query one of these after the start.
    Turns {
        /// Queries a second of one client.
        rate_qps: f64,
        /// The clients of the population.
        clients: u32,
    },
    /// Exponential gaps.
    Poisson {
        /// Mean queries a second of one client.
        rate_qps: f64,
    },
    /// Poisson arrivals while the client is active, nothing while it is not. Both kinds of period
    /// have Pareto-distributed lengths: most are short and some are very long, as with people.
    OnOff {
        /// Mean queries a second while active.
        rate_qps: f64,
        /// Mean length of an active period.
        #[serde(rename = "on_mean_ns", with = "nanos")]
        #[schemars(with = "u64")]
        on_mean: Duration,
        /// Mean length of a pause.
        #[serde(rename = "off_mean_ns", with = "nanos")]
        #[schemars(with = "u64")]
        off_mean: Duration,
        /// Exponent of the Pareto distribution, above 1: the nearer to 1, the heavier its tail.
        pareto_shape: f64,
    },
    /// Several queries at once, as a page load makes them, with exponential gaps between bursts.
    Bursts {
        /// Queries of one burst.
        queries: u32,
        /// Mean time between the beginnings of two bursts.
        #[serde(rename = "every_ns", with = "nanos")]
        #[schemars(with = "u64")]
        every: Duration,
    },
    /// The next query follows a response, after a time to think.
    Closed {
        /// Queries that one client has open at once.
        outstanding: u32,
        /// Time between a response and the next query.
        think: Think,
    },
}

/// Time between a response and the query that follows it, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Think {
    /// Always as long; zero asks as fast as the connection allows.
    Constant(
        #[serde(with = "nanos")]
        #[schemars(with = "u64")]
        Duration,
    ),
    /// Exponentially distributed, with this mean.
    Exponential(
        #[serde(with = "nanos")]
        #[schemars(with = "u64")]
        Duration,
    ),
}

impl ClientArrival {
    /// `rate_qps` queries a second, which arrive by this process.
    pub fn spread(process: Process, rate_qps: f64) -> ClientArrival {
        match process {
            Process::Constant => ClientArrival::Constant { rate_qps },
            Process::Poisson => ClientArrival::Poisson { rate_qps },
        }
    }

    /// Mean queries a second of one client at factor 1; none if responses set the pace.
    pub fn rate_qps(&self) -> Option<f64> {
        match *self {
            ClientArrival::Constant { rate_qps }
            | ClientArrival::Turns { rate_qps, .. }
            | ClientArrival::Poisson { rate_qps } => Some(rate_qps),
            ClientArrival::OnOff {
                rate_qps,
                on_mean,
                off_mean,
                ..
            } => Some(rate_qps * on_mean.as_secs_f64() / (on_mean + off_mean).as_secs_f64()),
            ClientArrival::Bursts { queries, every } => {
                Some(f64::from(queries) / every.as_secs_f64())
            }
            ClientArrival::Closed { .. } => None,
        }
    }
}

impl fmt::Display for ClientArrival {
    /// Written as `load::client_arrival::parse` reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |time: Duration| format!("{}s", time.as_secs_f64());
        match *self {
            ClientArrival::Constant { rate_qps } => write!(f, "constant:{rate_qps}"),
            ClientArrival::Turns { rate_qps, clients } => {
                write!(f, "turns:{rate_qps},of={clients}")
            }
            ClientArrival::Poisson { rate_qps } => write!(f, "poisson:{rate_qps}"),
            ClientArrival::OnOff {
                rate_qps,
                on_mean,
                off_mean,
                pareto_shape,
            } => {
                let (on, off) = (time(on_mean), time(off_mean));
                write!(f, "onoff:{rate_qps},on={on},off={off},shape={pareto_shape}")
            }
            ClientArrival::Bursts { queries, every } => {
                write!(f, "bursts:{queries},every={}", time(every))
            }
            ClientArrival::Closed { outstanding, think } => match think {
                Think::Constant(Duration::ZERO) => write!(f, "full:{outstanding}"),
                Think::Constant(each) => write!(f, "closed:{outstanding},think={}", time(each)),
                Think::Exponential(mean) => {
                    write!(f, "closed:{outstanding},think=exp({})", time(mean))
                }
            },
        }
    }
}

/// How open-loop arrivals are spread over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Process {
    /// Equally spaced.
    #[default]
    Constant,
    /// Exponential gaps: a Poisson process, as many independent clients together make.
    Poisson,
}

impl Named for Process {
    const WHAT: &'static str = "arrival";
    const ALL: &'static [Self] = &[Process::Constant, Process::Poisson];

    fn name(self) -> &'static str {
        match self {
            Process::Constant => "constant",
            Process::Poisson => "poisson",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Process::Constant => "Equally spaced",
            Process::Poisson => "Exponential gaps, as many independent clients make",
        }
    }
}
