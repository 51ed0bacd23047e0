//! Flags of `throng run`, which other commands have too.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use proto::Transport;
use settings::{DriverChoice, DriverKind, InterfaceName, Named, OnAgentLoss, Process};

use super::behaviour::{SelfTestBehaviour, SimulationArguments};
use super::compare::ConditionArguments;
use super::connections::ConnectionArguments;
use super::doh::DohArguments;
use super::given::Given;
use super::population::PopulationArguments;
use super::profile::ProfileArguments;
use super::questions::QuestionArguments;
use super::sockets::SocketArguments;
use super::stub::StubArguments;
use super::tls::TlsArguments;
use super::values::{
    Chosen, FASTER, Format, count, count_from, count_within, duration, interval, label, length,
    none_or, one_of,
};

/// Arguments of `throng run`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunCommand {
    #[command(flatten)]
    pub(crate) run: RunArguments,
    /// Scenario file: groups of clients, events, sweeps; flags given here override it
    #[arg(value_name = "SCENARIO", help_heading = "Population")]
    pub(crate) scenario: Option<PathBuf>,
    /// Let this scenario file, named a second time, start programs, write files, open ports and
    /// permit public targets
    #[arg(
        long,
        value_name = "SCENARIO",
        requires = "scenario",
        help_heading = "Population"
    )]
    pub(crate) trust: Option<PathBuf>,
}

/// Flags of a run.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArguments {
    /// Flags as they were given, on the command line or in a scenario.
    #[arg(skip)]
    pub(crate) given: Vec<Given>,
    /// The questions, where a command has them instead of a file: `name type` a line.
    #[arg(skip)]
    pub(crate) lines: Option<String>,
    /// Server under test; without it the run is a self-test against the built-in responder. May be
    /// repeated to give every client several servers (see Stub resolver)
    #[arg(long, short, value_name = "HOST|IP[:PORT]", help_heading = "Target")]
    pub(crate) server: Vec<String>,
    /// Transport to reach it over
    #[arg(
        long,
        short,
        short_aliases = ['m', 'P'],
        default_value = "udp",
        value_name = "udp|tcp|dot|doh2|doh3|doq",
        help_heading = "Target"
    )]
    pub(crate) transport: Transport,
    /// Allow a target on a public address: only where you have permission to send load. Not needed
    /// below 100 queries a second and 1,000 in all
    #[arg(long, help_heading = "Target")]
    pub(crate) allow_public: bool,
    /// Skip the check before the run that the target listens (which sends no DNS query), send no
    /// ICMP echo requests meanwhile, and continue even if all of the first queries fail
    #[arg(long, help_heading = "Target")]
    pub(crate) no_preflight: bool,

    /// Questions, one `name type` a line; `-` is standard input
    #[arg(long, short, short_aliases = ['d', 'i'], value_name = "FILE|-",
          help_heading = "Questions")]
    pub(crate) names: Option<PathBuf>,
    /// Format of the questions: lines of text, or messages with a two-byte length prefix
    #[arg(long, default_value = "text", value_enum, help_heading = "Questions")]
    pub(crate) names_format: NamesFormat,
    /// Clear the RD bit
    #[arg(long, help_heading = "Questions")]
    pub(crate) no_recursion: bool,
    /// Send EDNS with this UDP payload size
    #[arg(long, value_name = "BYTES", value_parser = count_within::<u16>(512..=65_535),
          help_heading = "Questions")]
    pub(crate) edns_size: Option<u16>,
    /// Set the DO bit (implies EDNS)
    #[arg(long, short_alias = 'D', help_heading = "Questions")]
    pub(crate) dnssec: bool,
    /// Send an EDNS option; may be repeated (implies EDNS)
    #[arg(long, value_name = "CODE:HEX", help_heading = "Questions")]
    pub(crate) edns_option: Vec<String>,
    /// Pad queries with EDNS to a multiple of this many bytes, TSIG included (RFC 8467; implies
    /// EDNS) [default if no number is given: 128]
    #[arg(
        long,
        value_name = "BYTES",
        num_args = 0..=1,
        default_missing_value = "128",
        value_parser = count_within::<u16>(1..=65_535),
        help_heading = "Questions"
    )]
    pub(crate) edns_padding: Option<u16>,
    /// Allow padding over unencrypted transports, where it hides nothing
    #[arg(long, help_heading = "Questions")]
    pub(crate) allow_plain_padding: bool,
    /// Ask how long idle connections are kept (RFC 7828; implies EDNS)
    #[arg(long, help_heading = "Questions")]
    pub(crate) edns_keepalive: bool,
    /// Ask each server instance for its identifier, and count responses by it (RFC 5001; implies
    /// EDNS)
    #[arg(long, help_heading = "Questions")]
    pub(crate) nsid: bool,
    /// Sign each query; the algorithm is hmac-sha256 unless given. Other users of this host can see
    /// it: --tsig-file keeps the key private
    #[arg(
        long,
        short_alias = 'y',
        value_name = "[ALG:]NAME:SECRET",
        conflicts_with = "tsig_file",
        help_heading = "Questions"
    )]
    pub(crate) tsig: Option<String>,
    /// Sign each query with the key in this file (as tsig-keygen writes it)
    #[arg(long, value_name = "FILE", help_heading = "Questions")]
    pub(crate) tsig_file: Option<PathBuf>,
    /// Retry over TCP when a UDP response is truncated; counted separately
    #[arg(long, help_heading = "Questions")]
    pub(crate) tcp_fallback: bool,
    #[command(flatten)]
    pub(crate) choice: QuestionArguments,

    /// Closed loop: keep this many queries in flight, reached within 64 ms [default: 100]
    #[arg(long, value_name = "N", conflicts_with = "rate", help_heading = "Load",
          value_parser = count::<u32>)]
    pub(crate) outstanding: Option<u32>,
    /// Closed loop: at most this many queries a second, fewer while --outstanding queries are in
    /// flight
    #[arg(
        long,
        value_name = "QPS",
        conflicts_with = "rate",
        help_heading = "Load"
    )]
    pub(crate) max_rate: Option<String>,
    /// Open loop: queries a second, due whatever the server does (20000, 50k, 1.5M). The achieved
    /// rate counts responses within the run, and those just after the end at normal latency
    #[arg(long, short, value_name = "QPS", help_heading = "Load")]
    pub(crate) rate: Option<String>,
    /// How open-loop queries are spaced
    #[arg(long, default_value = "constant", value_parser = one_of(Process::ALL),
          help_heading = "Load")]
    pub(crate) arrival: Process,
    /// Open-loop queries that are due at the same instant, all from one client
    #[arg(
        long,
        default_value_t = 1,
        value_name = "QUERIES",
        value_parser = count::<u32>,
        help_heading = "Load",
    )]
    pub(crate) burst: u32,
    /// Simulated clients, each with its own socket or connection and at most 61,440 open queries
    /// [default: 10]
    #[arg(long, short, value_name = "N", value_parser = count::<u32>, help_heading = "Load")]
    pub(crate) clients: Option<u32>,
    /// Time after which a query without a response has timed out
    #[arg(long, default_value = "5s", value_name = "TIME", value_parser = duration,
          help_heading = "Load")]
    pub(crate) timeout: Duration,

    /// How long to offer load; a number without a unit is seconds [default: 10s, unless --queries
    /// or --loops is given]
    #[arg(long, short = 'l', value_name = "TIME", value_parser = length, help_heading = "Length")]
    pub(crate) duration: Option<Duration>,
    /// Load before the measurement, excluded from its figures
    #[arg(long, default_value = "0s", value_name = "TIME", value_parser = duration,
          help_heading = "Length")]
    pub(crate) warmup: Duration,
    /// End after this many queries
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "loops",
        value_parser = count::<u64>,
        help_heading = "Length",
    )]
    pub(crate) queries: Option<u64>,
    /// End after each question was asked this many times
    #[arg(long, value_name = "N", value_parser = count_from::<u64>(1), help_heading = "Length")]
    pub(crate) loops: Option<u64>,

    /// Worker threads [default: one per CPU, half as many if the target is on this host]
    #[arg(long, short_alias = 'T', value_name = "N", value_parser = count::<u32>,
          help_heading = "Generator")]
    pub(crate) workers: Option<u32>,
    /// Agents: processes on this host, or with --listen those that dial [default: as many processes
    /// as the open file limit requires]
    #[arg(
        long,
        alias = "processes",
        value_name = "N",
        value_parser = count_within::<u32>(1..=1_024),
        help_heading = "Generator"
    )]
    pub(crate) agents: Option<u32>,
    /// Generate the load on these hosts, by one agent for each line of this file, instead of here
    #[arg(long, value_name = "FILE", help_heading = "Generator")]
    pub(crate) hosts: Option<PathBuf>,
    /// Command that runs another on a host of --hosts, whose name goes to its end or where {} is,
    /// such as 'kubectl exec -i {} --' [default: ssh -T]
    #[arg(long, value_name = "COMMAND", help_heading = "Generator")]
    pub(crate) ssh: Option<String>,
    /// Generate the load by --agents that dial this address (`throng fleet agent`), over TLS
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Generator")]
    pub(crate) listen: Option<SocketAddr>,
    /// Folder with the keys of --listen, made by `throng fleet keys`
    #[arg(long, value_name = "FOLDER", help_heading = "Generator")]
    pub(crate) keys: Option<PathBuf>,
    /// How long to wait for agents that dial --listen [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Generator")]
    pub(crate) barrier_timeout: Option<Duration>,
    /// Agents with which the run begins if not all --agents have dialled --listen by the
    /// --barrier-timeout [default: all]
    #[arg(
        long,
        value_name = "N",
        value_parser = count_within::<u32>(1..=1_024),
        help_heading = "Generator"
    )]
    pub(crate) min_agents: Option<u32>,
    /// What to do when one of several agents is lost [default: end; a run of more than 30
    /// minutes has none]
    #[arg(long, value_name = "WAY", help_heading = "Generator",
          value_parser = one_of(OnAgentLoss::ALL))]
    pub(crate) on_agent_loss: Option<OnAgentLoss>,
    /// CPUs to pin the workers to, in order
    #[arg(
        long,
        value_name = "N[,N...]",
        value_delimiter = ',',
        help_heading = "Generator"
    )]
    pub(crate) cpus: Vec<usize>,
    /// Source addresses and prefixes that the clients use in turn
    #[arg(
        long,
        short_alias = 'a',
        value_name = "ADDRESS[/BITS]",
        value_delimiter = ',',
        help_heading = "Generator"
    )]
    pub(crate) local_address: Vec<String>,
    /// First source port; client n uses this port plus n
    #[arg(
        long,
        short_alias = 'x',
        default_value_t = 0,
        value_name = "PORT",
        help_heading = "Generator"
    )]
    pub(crate) local_port: u16,
    #[command(flatten)]
    pub(crate) sockets: SocketArguments,
    /// Seed of all randomness
    #[arg(
        long,
        default_value_t = 1,
        value_name = "N",
        help_heading = "Generator"
    )]
    pub(crate) seed: u64,
    /// How data is sent and received: kernel sockets by epoll or io_uring (auto: whichever was
    /// measured to be faster for the load), frames on an interface by AF_XDP for UDP, DoQ and
    /// DoH/3, or a simulated network in virtual time
    #[arg(long, default_value = DriverChoice::AUTO, help_heading = "Generator",
          value_parser = none_or(DriverChoice::AUTO, FASTER, DriverKind::ALL))]
    pub(crate) driver: Chosen<DriverKind>,
    /// Network interface that --driver xdp sends on
    #[arg(
        long,
        short_alias = 'I',
        value_name = "NAME",
        help_heading = "Generator"
    )]
    pub(crate) interface: Option<InterfaceName>,

    #[command(flatten)]
    pub(crate) tls: TlsArguments,

    /// Write the run record (JSON) to this file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) record: Option<PathBuf>,
    /// Write records and other files even where a symbolic link is in their place
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,
    /// Format of the result on standard output
    #[arg(long, default_value = "text", value_enum, help_heading = "Output")]
    pub(crate) format: Format,
    /// Print all of the result, not its summary of at most 25 lines
    #[arg(long, help_heading = "Output")]
    pub(crate) details: bool,
    /// Length of an interval in the record and of the progress display [default: 1s; in the record
    /// of a run below 20s shorter, so that it has at least 20]
    #[arg(long, value_name = "TIME", value_parser = interval, help_heading = "Output")]
    pub(crate) interval: Option<Duration>,
    /// RCODEs that count as goodput
    #[arg(
        long,
        default_value = "NOERROR,NXDOMAIN",
        value_name = "RCODE[,RCODE...]",
        value_delimiter = ',',
        help_heading = "Output"
    )]
    pub(crate) goodput: Vec<String>,
    /// Add to the record what it cannot know, such as cpu=2 for the target; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = label, help_heading = "Output")]
    pub(crate) label: Vec<(String, String)>,
    /// Record metrics of servers and hosts during the run: auto (those found for a target on this
    /// host), or a profile and its source, such as bind=http://127.0.0.1:8053/, process=named or
    /// host (see docs/observing.md); may be repeated
    #[arg(
        long,
        value_name = "auto|PROFILE=WHERE[,KEY=VALUE...]",
        help_heading = "Output"
    )]
    pub(crate) observe: Vec<String>,
    /// Serve metrics for Prometheus at this address while the command goes on, such as
    /// 127.0.0.1:9350; port 0 has the system choose one, which is shown (see docs/watching.md)
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Output")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Annotate the run, with its verdict, its outages and what aborted it, in the Grafana at this
    /// URL; the token is read from GRAFANA_TOKEN (see docs/grafana.md)
    #[arg(long, value_name = "URL", help_heading = "Output")]
    pub(crate) grafana: Option<String>,
    /// Show the run on the whole terminal while it goes on: rate, latency, losses, groups, server,
    /// agents and verdict so far; ? lists the keys (see docs/watching.md)
    #[arg(long, conflicts_with = "quiet", help_heading = "Output")]
    pub(crate) tui: bool,
    /// Show the run as a page for browsers at this address while it goes on, such as 127.0.0.1:0,
    /// and its report at the end; the page's address is printed (see docs/watching.md)
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Output")]
    pub(crate) web: Option<SocketAddr>,
    /// Show no progress on standard error
    #[arg(long, short, help_heading = "Output")]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) conditions: ConditionArguments,
    /// End the run early, with code 4, when this is true of an interval, or for a time: 'loss >
    /// 5%', 'p99 > 50ms for 5s', 'SERVFAIL[dot] > 10% for 3s' of a transport or a group of clients
    /// (see docs/watching.md). May be repeated
    #[arg(long, value_name = "CONDITION[ for TIME]", help_heading = "Conditions")]
    pub(crate) abort_if: Vec<String>,
    #[command(flatten)]
    pub(crate) population: PopulationArguments,
    #[command(flatten)]
    pub(crate) profile: ProfileArguments,
    #[command(flatten)]
    pub(crate) connections: ConnectionArguments,
    #[command(flatten)]
    pub(crate) stub: StubArguments,
    #[command(flatten)]
    pub(crate) doh: DohArguments,
    #[command(flatten)]
    pub(crate) simulation: SimulationArguments,
    #[command(flatten)]
    pub(crate) behaviour: SelfTestBehaviour,
}

/// Form of questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NamesFormat {
    /// One `name type` a line
    Text,
    /// Whole messages, each with a two-byte length prefix
    Stream,
}
