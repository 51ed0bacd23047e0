//! A run as requested: one value that flags and scenarios are read into, that commands edit, that
//! agents receive, and that records keep.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Arrival, Behaviour, ConnectionPolicy, DriverKind, FileName, Http, InterfaceName, Message,
    OnAgentLoss, Presence, Questions, Simulation, SocketOptions, Stub, Tls, Transport, nanos,
};

/// Everything that the clients of a run are asked for: all clients, or those of one group.
///
/// What is none is decided when the run is: by the questions, the target, or this host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The servers of every client as they were given, in order; none for the built-in responder.
    pub servers: Vec<String>,
    /// How to reach them.
    pub transport: Transport,
    /// A server may have a public address.
    pub allows_public: bool,
    /// Somebody has to answer before load is sent, and soon after.
    pub preflight: bool,
    /// What is asked.
    pub questions: Questions,
    /// What every query carries.
    pub message: Message,
    /// A query is asked again over TCP when its UDP response is truncated.
    pub tcp_fallback: bool,
    /// When queries are due.
    pub arrival: Arrival,
    /// How the rate of each client changes over time, such as `linear:0s=0,60s=1`; none if it does
    /// not.
    pub shape: Option<String>,
    /// How many clients there are; none for as many as were seen, or 10.
    pub clients: Option<u32>,
    /// When they are there.
    pub presence: Presence,
    /// How long connections live, and how they are opened.
    pub connections: ConnectionPolicy,
    /// How clients ask again and use their servers.
    pub stub: Stub,
    /// The requests of DoH; none on other transports.
    pub http: Option<Http>,
    /// TLS; none on transports without it.
    pub tls: Option<Tls>,
    /// What ends queries and the run.
    pub limits: Limits,
    /// What generates the load.
    pub generator: Generator,
    /// RCODEs that count as goodput.
    pub goodput_rcodes: Vec<u16>,
    /// What is said of the run that it cannot know.
    pub labels: BTreeMap<String, String>,
    /// Servers, hosts and exporters that are asked meanwhile, such as `process=named`.
    pub observe: Vec<String>,
    /// What the built-in responder does, where it is the target.
    #[serde(default, skip_serializing_if = "is_default")]
    pub responder: Behaviour,
    /// The network before it, and what it needs, in a simulation.
    #[serde(default, skip_serializing_if = "is_default")]
    pub simulation: Simulation,
}

/// Records leave out values that are the default.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Default for Run {
    /// A self-test over UDP, as it is without any flags.
    fn default() -> Self {
        Run {
            servers: Vec::new(),
            transport: Transport::Udp,
            allows_public: false,
            preflight: true,
            questions: Questions::default(),
            message: Message::default(),
            tcp_fallback: false,
            arrival: Arrival::default(),
            shape: None,
            clients: None,
            presence: Presence::default(),
            connections: ConnectionPolicy::default(),
            stub: Stub::default(),
            http: None,
            tls: None,
            limits: Limits::default(),
            generator: Generator::default(),
            // NOERROR and NXDOMAIN.
            goodput_rcodes: vec![0, 3],
            labels: BTreeMap::new(),
            observe: Vec::new(),
            responder: Behaviour::default(),
            simulation: Simulation::default(),
        }
    }
}

/// What ends queries and the run, and how it is cut into intervals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// How long load is offered; none for 10 s, or until all queries have been asked.
    #[serde(rename = "duration_ns", with = "nanos::option")]
    #[schemars(with = "Option<u64>")]
    pub duration: Option<Duration>,
    /// Load before the measurement.
    #[serde(rename = "warmup_ns", with = "nanos")]
    #[schemars(with = "u64")]
    pub warmup: Duration,
    /// The run ends after that number of queries.
    pub queries: Option<u64>,
    /// The run ends after all questions were asked that number of times.
    pub loops: Option<u64>,
    /// A query without response for that long has timed out.
    #[serde(rename = "timeout_ns", with = "nanos")]
    #[schemars(with = "u64")]
    pub timeout: Duration,
    /// Length of an interval of the record; none for 1 s, or less in a short run.
    #[serde(rename = "interval_ns", with = "nanos::option")]
    #[schemars(with = "Option<u64>")]
    pub interval: Option<Duration>,
    /// Conditions on the newest intervals that end the run early, as written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub abort_if: Vec<String>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            duration: None,
            warmup: Duration::ZERO,
            queries: None,
            loops: None,
            timeout: Duration::from_secs(5),
            interval: None,
            abort_if: Vec::new(),
        }
    }
}

/// What generates the load. Groups of clients have it in common, but for their addresses.
// A struct that is flattened into it does not go together with `deny_unknown_fields`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Generator {
    /// Worker threads; none for as many as suit the host.
    pub workers: Option<u32>,
    /// Agents; none for as many processes as the limit of open files demands.
    #[serde(alias = "processes")]
    pub agents: Option<u32>,
    /// What is done when one of them is lost; none if it was left to the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_agent_loss: Option<OnAgentLoss>,
    /// File with the hosts of agents; none if this host generates the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<FileName>,
    /// Where agents on other hosts dial in; none if none do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// Folder with the keys for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<FileName>,
    /// How long is waited for agents that dial; none for 5 minutes.
    #[serde(
        rename = "barrier_timeout_ns",
        with = "nanos::option",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<u64>")]
    pub barrier_timeout: Option<Duration>,
    /// Agents that are enough to begin after that time; none for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_agents: Option<u32>,
    /// The command that reaches them; none for that of OpenSSH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<String>,
    /// CPUs that the workers are pinned to, in order; empty if they are not.
    pub cpus: Vec<usize>,
    /// Addresses and prefixes that the clients use in turn; empty if the kernel chooses.
    pub local_addresses: Vec<String>,
    /// First local port, client n has this plus n; 0 if the kernel chooses.
    pub local_port: u16,
    /// How sockets are opened.
    #[serde(flatten)]
    pub sockets: SocketOptions,
    /// Seed of all randomness.
    pub seed: u64,
    /// What sends and receives the data; none for the faster one.
    pub driver: Option<DriverKind>,
    /// The network interface of AF_XDP.
    #[schemars(with = "Option<String>")]
    pub interface: Option<InterfaceName>,
}

impl Default for Generator {
    fn default() -> Self {
        Generator {
            workers: None,
            agents: None,
            on_agent_loss: None,
            hosts: None,
            listen: None,
            keys: None,
            barrier_timeout: None,
            min_agents: None,
            ssh: None,
            cpus: Vec::new(),
            local_addresses: Vec::new(),
            local_port: 0,
            sockets: SocketOptions::default(),
            seed: 1,
            driver: None,
            interface: None,
        }
    }
}

impl Generator {
    /// True if agents on other hosts generate the load.
    pub fn is_elsewhere(&self) -> bool {
        self.hosts.is_some() || self.listen.is_some()
    }
}

impl Run {
    /// True if the target is the built-in responder.
    pub fn is_self_test(&self) -> bool {
        self.servers.is_empty()
    }

    /// True if nothing of it is real.
    pub fn is_simulated(&self) -> bool {
        self.generator.driver == Some(DriverKind::Sim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::questions::LabelOctets;
    use crate::{
        ClientArrival, ConnectionEnd, Delay, FileName, Labels, Names, ReplaySource, Retry,
        ServiceModel, Think,
    };

    #[test]
    fn every_arrival_and_choice_of_questions_comes_back_from_json() {
        let file = |name: &str| FileName::from(std::path::PathBuf::from(name));
        let arrivals = [
            Arrival::default(),
            Arrival::Open {
                rate_qps: 0.1 + 0.2,
                process: crate::Process::Poisson,
                burst: 3,
            },
            Arrival::Clients(ClientArrival::Closed {
                outstanding: 4,
                think: Think::Exponential(Duration::from_nanos(1)),
            }),
            Arrival::Script(file("clients.lua")),
            Arrival::Profile {
                file: file("-"),
                zone: Some("example.".into()),
                rate_factor: Some(0.5),
            },
            Arrival::Replay(ReplaySource::default()),
        ];
        for arrival in arrivals {
            let run = Run {
                arrival,
                questions: Questions {
                    names: Some(Names::Messages(file("queries"))),
                    labels: Some(Labels::Random {
                        zone: "example.".into(),
                        octets: Some(LabelOctets { min: 4, max: 16 }),
                        seed: Some(u64::MAX),
                    }),
                    ..Questions::default()
                },
                stub: Stub {
                    retry: Some(Retry::Windows),
                    ..Stub::default()
                },
                tls: Some(Tls::default()),
                responder: Behaviour {
                    delay: Delay::Exponential {
                        mean: Duration::from_nanos(1),
                    },
                    end_after: Some((3, ConnectionEnd::Error(4))),
                    ..Behaviour::default()
                },
                simulation: Simulation {
                    server: Some(ServiceModel::default()),
                    ..Simulation::default()
                },
                ..Run::default()
            };
            let json = serde_json::to_string(&run).unwrap();
            assert_eq!(serde_json::from_str::<Run>(&json).unwrap(), run);
            let with_more = json.replacen('{', "{\"more\":1,", 1);
            assert!(serde_json::from_str::<Run>(&with_more).is_err());
        }
    }
}
