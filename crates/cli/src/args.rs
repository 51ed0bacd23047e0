//! The commands and their flags; help, man page and completions are made from these definitions.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ::responder::QUIC_STREAMS_MAX;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use proto::Transport;
use serde::{Deserialize, Serialize};
use settings::{DriverChoice, DriverKind, InterfaceName, Named, Process, StampSource};

use capacity::CapacityArguments;
use compare::{AbArguments, ConditionArguments};
use connections::ConnectionArguments;
use doctor::DoctorArguments;
use doh::DohArguments;
use experiment::{ExperimentArguments, HistoryArguments};
use fit::FitArguments;
use line::LineArguments;
pub(crate) use output::Output;
use population::PopulationArguments;
use probe::{EvalArguments, PingArguments, TraceArguments};
use profile::ProfileArguments;
use questions::QuestionArguments;
use ramp::RampArguments;
use replay::ReplayArguments;
use server_model::ServerModelArguments;
use stub::StubArguments;
pub(crate) use tls::{ClientCertificatePolicy, ServerTlsArguments, TlsArguments};

use crate::servers::LabArguments;

pub(crate) mod capacity;
pub(crate) mod compare;
pub(crate) mod connections;
pub(crate) mod doctor;
pub(crate) mod doh;
pub(crate) mod experiment;
pub(crate) mod fit;
pub(crate) mod flags;
pub(crate) mod line;
mod output;
mod paths;
pub(crate) mod population;
pub(crate) mod probe;
pub(crate) mod profile;
pub(crate) mod questions;
pub(crate) mod ramp;
pub(crate) mod replay;
pub(crate) mod server_model;
pub(crate) mod stub;
mod tls;

/// Measures what a DNS service can take, and says what limited the result.
///
/// `throng run` by itself tests this tool against its own built-in responder. `throng run --server
/// 192.0.2.1 --names FILE` measures a server. Send load only where you have permission.
#[derive(Debug, Parser)]
#[command(name = "throng", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send load to a server and measure it
    Run(Box<RunCommand>),
    /// Replay a capture or query log: each client sends its queries again, with its own timing
    Replay(Box<ReplayArguments>),
    /// Tell whether B is slower than A or the difference is noise, from records or from alternating
    /// runs
    Compare(Box<AbArguments>),
    /// Measure the same load over several transports in turn, and what each step costs
    CompareTransports(Box<CompareTransportsArguments>),
    /// Find the highest rate that a server sustains, or the most clients
    Capacity(Box<CapacityArguments>),
    /// Raise the rate until the server fails or a limit is reached
    Ramp(Box<RampArguments>),
    /// Query a server repeatedly, and show each response with its time
    Ping(Box<PingArguments>),
    /// Query several servers in turn, and tell which answers fastest
    Eval(Box<EvalArguments>),
    /// Show the path to a server, hop by hop, with DNS queries
    Trace(Box<TraceArguments>),
    /// Run every combination of a matrix several times, in random order, and record each run
    Experiment(ExperimentArguments),
    /// Look into a folder of records: list runs, show one, follow a metric over versions
    History(HistoryArguments),
    /// Answer queries: a synthetic target with programmable behaviour
    Responder(Box<ResponderArguments>),
    /// Start real servers to measure, list them, end them
    Lab(Box<LabArguments>),
    /// Connect two network namespaces by a line with delay, jitter, loss or a rate limit
    Line(Box<LineArguments>),
    /// Generate sets of names to query, and the zones or updates that make a server answer them
    Names(NamesArguments),
    /// Fit a profile of the clients in captures and query logs, to generate load from
    Fit(FitArguments),
    /// Report on run records, as text, HTML with charts, Markdown, CSV or JSON
    Report(ReportArguments),
    /// Diagnose what limits load, on this host or in recorded runs, and how to fix it
    Doctor(DoctorArguments),
    /// Merge run records of several generators exactly
    Merge(MergeArguments),
    /// Check scripts for --script
    Script(ScriptArguments),
    /// Print the JSON Schema of the run record, of scenario files, or of other documents
    Schema(SchemaArguments),
    /// Measure the generator alone, for `bench/run`; people use `throng doctor --ceiling`
    #[command(hide = true)]
    Ceiling(crate::ceiling::CeilingArguments),
    /// Print the manual page (roff)
    Man,
    /// Print the licences of the software in this binary
    #[command(alias = "licences")]
    Licenses,
    /// Print shell completions
    Completions(CompletionArguments),
    /// Run as dnsperf, with dnsperf's flags and output
    #[command(disable_help_flag = true)]
    Dnsperf {
        /// dnsperf's flags
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Run as BIND's former queryperf, with its flags and output
    #[command(disable_help_flag = true)]
    Queryperf {
        /// queryperf's flags
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Run as resperf, with resperf's flags and output
    #[command(disable_help_flag = true)]
    Resperf {
        /// resperf's flags
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

/// Arguments of `throng script`.
#[derive(Debug, Args)]
pub(crate) struct ScriptArguments {
    #[command(subcommand)]
    pub(crate) command: ScriptCommand,
}

/// What can be done with a script.
#[derive(Debug, Subcommand)]
pub(crate) enum ScriptCommand {
    /// Try out a script with a few clients, some thousand simulated responses and virtual time
    Check {
        /// The script
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Names file with questions for the script
        #[arg(long, value_name = "FILE")]
        names: Option<PathBuf>,
        /// Seed of all randomness
        #[arg(long, default_value_t = 0, value_name = "NUMBER")]
        seed: u64,
    },
}

/// Arguments of `throng run`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunCommand {
    /// Scenario file: groups of clients, events, sweeps; flags given here override it
    #[arg(value_name = "SCENARIO", help_heading = "Population")]
    pub(crate) scenario: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) run: RunArguments,
}

/// Flags of a run.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArguments {
    /// Flags as they were given, on the command line or in a scenario.
    #[arg(skip)]
    pub(crate) given: Vec<crate::scenario::Given>,
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
        default_value = "udp",
        value_name = "udp|tcp|dot|doh2|doh3|doq",
        help_heading = "Target"
    )]
    pub(crate) transport: Transport,
    /// Allow a target on a public address: only where you have permission to send load
    #[arg(long, help_heading = "Target")]
    pub(crate) allow_public: bool,
    /// Skip the preflight check, and continue even if all of the first queries fail
    #[arg(long, help_heading = "Target")]
    pub(crate) no_preflight: bool,

    /// Questions, one `name type` a line; `-` is standard input
    #[arg(long, short, value_name = "FILE|-", help_heading = "Questions")]
    pub(crate) names: Option<PathBuf>,
    /// Format of the questions: lines of text, or messages with a two-byte length prefix
    #[arg(long, default_value = "text", value_enum, help_heading = "Questions")]
    pub(crate) names_format: NamesFormat,
    /// Clear the RD bit
    #[arg(long, help_heading = "Questions")]
    pub(crate) no_recursion: bool,
    /// Send EDNS with this UDP payload size
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(512..),
          help_heading = "Questions")]
    pub(crate) edns_size: Option<u16>,
    /// Set the DO bit (implies EDNS)
    #[arg(long, help_heading = "Questions")]
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
        value_parser = clap::value_parser!(u16).range(1..),
        help_heading = "Questions"
    )]
    pub(crate) edns_padding: Option<u16>,
    /// Allow padding over unencrypted transports, where it hides nothing
    #[arg(long, help_heading = "Questions")]
    pub(crate) allow_plain_padding: bool,
    /// Ask how long idle connections are kept (RFC 7828; implies EDNS)
    #[arg(long, help_heading = "Questions")]
    pub(crate) edns_keepalive: bool,
    /// Sign each query; the algorithm is hmac-sha256 unless given. Other users of this host can see
    /// it: --tsig-file keeps the key private
    #[arg(
        long,
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
    #[arg(long, value_name = "N", conflicts_with = "rate", help_heading = "Load")]
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
    /// rate counts responses within the run, and later ones that are no slower than usual
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
        help_heading = "Load"
    )]
    pub(crate) burst: u32,
    /// Simulated clients, each with its own socket or connection and at most 61,440 open queries
    /// [default: 10]
    #[arg(long, short, value_name = "N", help_heading = "Load")]
    pub(crate) clients: Option<u32>,
    /// Time after which a query without a response has timed out
    #[arg(long, default_value = "5s", value_name = "TIME", value_parser = duration,
          help_heading = "Load")]
    pub(crate) timeout: Duration,

    /// How long to offer load [default: 10s, unless --queries or --loops is given]
    #[arg(long, short = 'l', value_name = "TIME", value_parser = duration, help_heading = "Length")]
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
        help_heading = "Length"
    )]
    pub(crate) queries: Option<u64>,
    /// End after each question was asked this many times
    #[arg(long, value_name = "N", help_heading = "Length")]
    pub(crate) loops: Option<u64>,

    /// Worker threads [default: one per CPU, half as many if the target is on this host]
    #[arg(long, value_name = "N", help_heading = "Generator")]
    pub(crate) workers: Option<u32>,
    /// Processes to spread the workers over [default: as many as the open file limit requires]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1_024),
        help_heading = "Generator"
    )]
    pub(crate) processes: Option<u32>,
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
        value_name = "ADDRESS[/BITS]",
        value_delimiter = ',',
        help_heading = "Generator"
    )]
    pub(crate) local_address: Vec<String>,
    /// First source port; client n uses this port plus n
    #[arg(
        long,
        default_value_t = 0,
        value_name = "PORT",
        help_heading = "Generator"
    )]
    pub(crate) local_port: u16,
    /// Size of the sockets' send and receive buffers
    #[arg(long, value_name = "BYTES", help_heading = "Generator")]
    pub(crate) socket_buffer: Option<u32>,
    /// Disable UDP GSO and GRO
    #[arg(long, help_heading = "Generator")]
    pub(crate) no_offload: bool,
    /// Timestamp datagrams to show where time is spent: in the generator, on the wire and in the
    /// server, or until a response is read. UDP only; disables GSO and GRO
    #[arg(long, default_value = "off", help_heading = "Generator",
          value_parser = none_or("off", "No timestamps", StampSource::ALL))]
    pub(crate) timestamps: Chosen<StampSource>,
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
    #[arg(long, value_name = "NAME", help_heading = "Generator")]
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
    /// Put into the record what a server or a host tells of itself meanwhile: auto (what is found
    /// of a target on this host), or a profile and where it is asked, such as
    /// bind=http://127.0.0.1:8053/, process=named, host (see docs/observing.md); may be repeated
    #[arg(
        long,
        value_name = "auto|PROFILE=WHERE[,KEY=VALUE...]",
        help_heading = "Output"
    )]
    pub(crate) observe: Vec<String>,
    /// Show no progress on standard error
    #[arg(long, short, help_heading = "Output")]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) conditions: ConditionArguments,
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

/// Flags of `throng schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArguments {
    /// What to print the schema of
    #[arg(default_value = "record", value_enum)]
    pub(crate) of: SchemaOf,
}

/// What has a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    /// The run record
    Record,
    /// Scenario files
    Scenario,
    /// What `throng capacity` found
    Capacity,
    /// What `throng ramp` showed
    Ramp,
    /// What `throng compare` found
    Compare,
    /// What `throng compare-transports` found
    CompareTransports,
    /// The metrics by name and unit, as a table in Markdown
    Metrics,
    /// What --observe asks of each product, as tables in Markdown
    Observations,
}

/// Flags of `throng compare-transports`: its own, and those of each run.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("server", |arg| arg
    .value_name("[TRANSPORT=]HOST|IP[:PORT],...")
    .help("Server under test, for all transports or for one [default: the built-in responder]")))]
#[command(mut_arg("names", |arg| arg
    .value_name("FILE")
    .help("Questions, one `name type` a line")))]
#[command(mut_arg("transport", |arg| arg
    .hide(true)
    .default_value(IN_TURN)
    .value_parser(only_transports)))]
#[command(mut_arg("record", |arg| arg.hide(true).value_parser(only_records)))]
#[command(mut_arg("format", |arg| arg.help("Format of the comparison on standard output")))]
pub(crate) struct CompareTransportsArguments {
    /// Transports to compare, in order; the first is the baseline
    #[arg(
        long,
        default_value = "udp,tcp,dot",
        value_name = "udp|tcp|dot|doh2|doh3|doq,...",
        value_delimiter = ',',
        help_heading = "Comparison"
    )]
    pub(crate) transports: Vec<Transport>,
    /// Ports of the server that differ from the transport's default
    #[arg(
        long,
        value_name = "TRANSPORT=PORT,...",
        value_delimiter = ',',
        help_heading = "Comparison"
    )]
    pub(crate) port: Vec<String>,
    /// Runs of each transport, in turn, with the order reversed every other time
    #[arg(
        long,
        default_value_t = 1,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1_000),
        help_heading = "Comparison"
    )]
    pub(crate) repeat: u32,
    /// Keep every run record (JSON) in this folder, as udp-1.json and so on
    #[arg(long, value_name = "FOLDER", help_heading = "Comparison")]
    pub(crate) records: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) run: RunArguments,
}

/// Stands for the transport of a run where each transport has its turn.
const IN_TURN: &str = "each in turn";

/// The transport of a single run means nothing where each has its turn.
fn only_transports(text: &str) -> Result<Transport, String> {
    match text == IN_TURN {
        true => Ok(Transport::Udp),
        false => Err("several are compared: use --transports".into()),
    }
}

/// One file cannot keep the records of several runs.
fn only_records(_: &str) -> Result<PathBuf, String> {
    Err("there are several records: use --records FOLDER".into())
}

/// The simulated network of `--driver sim`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
#[command(next_help_heading = "Simulation (--driver sim)")]
pub(crate) struct SimulationArguments {
    /// One-way delay
    #[arg(long, default_value = "1ms", value_name = "TIME", value_parser = duration)]
    pub(crate) sim_delay: Duration,
    /// Maximum of a uniform jitter that is added to the delay
    #[arg(long, default_value = "0ms", value_name = "TIME", value_parser = duration)]
    pub(crate) sim_jitter: Duration,
    /// Share of datagrams and segments lost, each way
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) sim_loss: f64,
    /// Share of datagrams that arrive twice
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) sim_duplicate: f64,
    /// Share of datagrams overtaken by later ones
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) sim_reorder: f64,
    #[command(flatten)]
    pub(crate) server: ServerModelArguments,
}

/// Behaviour of the built-in responder in self-tests and simulations.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
#[command(next_help_heading = "Built-in responder (self-test and simulation)")]
pub(crate) struct SelfTestBehaviour {
    #[command(flatten)]
    pub(crate) behaviour: BehaviourArguments,
}

/// What a responder does beside answering.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
pub(crate) struct BehaviourArguments {
    /// Time from query to response: 5ms, uniform:1ms..10ms, exponential:5ms
    #[arg(long, value_name = "DELAY", value_parser = delay)]
    pub(crate) delay: Option<::responder::Delay>,
    /// Share of responses that are not sent
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) loss: f64,
    /// Shares of responses with an RCODE, such as SERVFAIL=0.01,REFUSED=0.1
    #[arg(long, value_name = "RCODE=SHARE[,...]")]
    pub(crate) rcodes: Option<String>,
    /// Share of responses that are truncated (TC=1)
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) truncate: f64,
    /// Share of responses that are sent twice
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) duplicate: f64,
    /// Share of responses with a wrong ID
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) wrong_id: f64,
    /// Share of responses with another question
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) wrong_question: f64,
    /// Share of responses that consist of random bytes
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) garbage: f64,
    /// Share of responses of 64 KB
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) oversize: f64,
    /// Share of queries over HTTP or QUIC whose stream is reset instead of answered
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) reset_streams: f64,
    /// Shares of HTTP requests answered with a status alone, such as 429=0.1,503=0.01
    #[arg(long, value_name = "STATUS=SHARE[,...]")]
    pub(crate) http_statuses: Option<String>,
    /// Share of QUIC connections that are asked to prove their address (Retry)
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) quic_retry: f64,
    /// Share of QUIC connections that are offered no version they support (Version Negotiation)
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) quic_version_negotiation: f64,
    /// Share of QUIC connections that are refused
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) quic_refuse: f64,
    /// Share of QUIC connections whose first datagrams are not answered
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) quic_ignore: f64,
    /// Period in which nothing is answered, such as at=3s,for=1s,every=10s; may be repeated
    #[arg(long, value_name = "STALL", value_parser = stall)]
    pub(crate) stall: Vec<::responder::Stall>,
    /// Answer at most this many queries a second: 37000; further ones queue (then=delay, the
    /// default, with queue=10000 before it drops), or are dropped (then=drop, with burst=5ms)
    #[arg(long, value_name = "QPS[,then=delay|drop][,...]")]
    pub(crate) ceiling: Option<String>,
    /// Accept at most this many TCP, DoT and DoH/2 connections at a time
    #[arg(long, value_name = "N")]
    pub(crate) tcp_clients: Option<u32>,
    /// Close a connection that has been idle this long
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) idle_timeout: Option<Duration>,
    /// End each connection after this many queries, as in 100:close (close, reset, half-close,
    /// stop-reading, tls-alert, goaway, error=CODE; over QUIC, reset is a stateless reset)
    #[arg(long, value_name = "N:HOW")]
    pub(crate) end_after: Option<String>,
}

/// Flags of `throng responder`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub(crate) struct ResponderArguments {
    /// Where to listen: udp:127.0.0.1:5300, tcp:[::1]:53, dot:127.0.0.1:853, doq:127.0.0.1:853,
    /// doh2:127.0.0.1:443, doh3:127.0.0.1:443, doh2+http:127.0.0.1:80 (without TLS); port 0 is a
    /// free one
    #[arg(long, value_name = "TRANSPORT:IP:PORT", required = true, value_delimiter = ',',
          value_parser = listen)]
    pub(crate) listen: Vec<Listen>,
    /// Path of DoH
    #[arg(long, default_value = "/dns-query", value_name = "PATH")]
    pub(crate) doh_path: String,
    /// Concurrent HTTP requests per DoH client
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    pub(crate) doh_streams: u32,
    /// Concurrent queries on a DoQ or DoH/3 connection
    #[arg(long, default_value_t = QUIC_STREAMS_MAX, value_name = "N")]
    pub(crate) quic_streams: u32,
    /// Answer DoQ queries with a message ID other than 0, as kxdpgun sends them, instead of closing
    /// their connection (RFC 9250, section 4.3.3)
    #[arg(long)]
    pub(crate) doq_any_id: bool,
    /// Stop the streams of DoQ queries (STOP_SENDING) as hickory 0.26 does, which makes clients
    /// close the connection (RFC 9250, section 4.3.3)
    #[arg(long)]
    pub(crate) doq_stop_sending: bool,
    /// Allow a QUIC connection only --quic-streams streams in all, as Knot DNS does
    #[arg(long)]
    pub(crate) quic_streams_final: bool,
    /// Answer from this zone file instead of for any name
    #[arg(long, value_name = "FILE")]
    #[serde(with = "paths::option")]
    pub(crate) zone: Option<PathBuf>,
    /// Origin of relative names in the zone file, unless it sets $ORIGIN
    #[arg(long, value_name = "NAME", requires = "zone")]
    pub(crate) origin: Option<String>,
    /// TTL of synthesised records, seconds
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub(crate) ttl: u32,
    /// Certificate chain for TLS (PEM); without it a self-signed certificate is generated
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    #[serde(with = "paths::option")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// Key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    #[serde(with = "paths::option")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Write the self-signed certificate (PEM) here, for clients to verify
    #[arg(long, value_name = "FILE", conflicts_with = "tls_certificate")]
    #[serde(with = "paths::option")]
    pub(crate) write_certificate: Option<PathBuf>,
    /// Processes that listen together, each with one worker per CPU, for more connections than one
    /// process may have open files; only the process that started a session can resume it
    #[arg(long, default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub(crate) processes: u32,
    /// CPUs to use, with one worker on each
    #[arg(long, value_name = "N[,N...]", value_delimiter = ',')]
    pub(crate) cpus: Vec<usize>,
    /// Disable UDP GSO and GRO
    #[arg(long)]
    pub(crate) no_offload: bool,
    /// How data is sent and received: epoll, io_uring, auto for the faster one that the kernel
    /// allows, or AF_XDP for the datagrams of an interface
    #[arg(long, default_value = DriverChoice::AUTO,
          value_parser = none_or(DriverChoice::AUTO, FASTER, &DRIVERS_OF_SERVERS))]
    pub(crate) driver: Chosen<DriverKind>,
    /// Network interface that --driver xdp listens on
    #[arg(long, value_name = "NAME")]
    pub(crate) interface: Option<InterfaceName>,
    /// Stop after this time
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) behaviour: BehaviourArguments,
    #[command(flatten)]
    pub(crate) tls: ServerTlsArguments,
}

/// Flags of `throng names`.
#[derive(Debug, Args)]
pub(crate) struct NamesArguments {
    #[command(subcommand)]
    pub(crate) set: NameSet,
}

/// Sets of names.
#[derive(Debug, Subcommand)]
pub(crate) enum NameSet {
    /// test-record-1..N.<zone> A, as in Red Hat's measurements of BIND in IdM
    Records {
        /// How many
        #[arg(long, default_value_t = 1_000, value_name = "N")]
        count: u32,
        /// Zone of the records
        #[arg(long, default_value = "throng.test", value_name = "NAME")]
        zone: String,
        /// TTL of the records, seconds
        #[arg(long, default_value_t = 1, value_name = "SECONDS")]
        ttl: u32,
        /// What to write
        #[arg(long, default_value = "names", value_enum)]
        form: RecordForm,
        /// Shuffle the names with this seed
        #[arg(long, value_name = "SEED")]
        shuffle: Option<u64>,
    },
    /// Existing, missing and external names, as in Northflank's measurements of CoreDNS
    Services {
        /// Existing services
        #[arg(long, default_value_t = 500, value_name = "N")]
        existing: u32,
        /// Services that do not exist
        #[arg(long, default_value_t = 500, value_name = "N")]
        missing: u32,
        /// External names
        #[arg(long, default_value_t = 100, value_name = "N")]
        external: u32,
        /// TTL of the records, seconds
        #[arg(long, default_value_t = 5, value_name = "SECONDS")]
        ttl: u32,
        /// What to write
        #[arg(long, default_value = "names", value_enum)]
        form: ServiceForm,
        /// Shuffle the names with this seed
        #[arg(long, value_name = "SEED")]
        shuffle: Option<u64>,
    },
    /// Shuffle the lines of a names file
    Shuffle {
        /// The file; `-` is standard input
        #[arg(value_name = "FILE|-")]
        file: PathBuf,
        /// Seed of the order
        #[arg(long, default_value_t = 1, value_name = "N")]
        seed: u64,
    },
}

/// Forms of the record set.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RecordForm {
    /// Questions for --names
    Names,
    /// Zone file
    Zone,
    /// RFC 2136 updates for `throng dnsperf -u`
    Updates,
    /// RFC 2136 updates for nsupdate
    Nsupdate,
    /// `ipa dnsrecord-add` commands
    Ipa,
}

/// Forms of the service set.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ServiceForm {
    /// Questions for --names
    Names,
    /// Zone file of the existing services
    Zone,
    /// Kubernetes manifests of the existing services
    Manifests,
}

/// Flags of `throng report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Run records, and folders of them; `-` is one on standard input
    #[arg(value_name = "RECORD|FOLDER|-", required = true)]
    pub(crate) records: Vec<PathBuf>,
    /// Write the report here instead of to standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write it even where a symbolic link is in its place
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Format of the report [default: by the extension of --output, else text]
    #[arg(long, value_enum)]
    pub(crate) format: Option<ReportFormat>,
}

/// Form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For a terminal (.txt)
    Text,
    /// A self-contained page with charts (.html)
    Html,
    /// GitHub-flavoured Markdown (.md)
    Markdown,
    /// One run: a row per interval, and a total; several: a row per run (.csv)
    Csv,
    /// One run: its record; several: their figures (.json)
    Json,
    /// The metrics schema of DNS-OARC, one object per line (.jsonl)
    DnsMetrics,
}

/// Flags of `throng merge`.
#[derive(Debug, Args)]
pub(crate) struct MergeArguments {
    /// The run records
    #[arg(value_name = "RECORD", required = true)]
    pub(crate) records: Vec<PathBuf>,
    /// Merge even if they are not of one concurrent load on one target, and mark the result; and
    /// write --output even where a symbolic link is in its place
    #[arg(long)]
    pub(crate) force: bool,
    /// Write the merged record here instead of to standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Flags of `throng completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionArguments {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Form of questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NamesFormat {
    /// One `name type` a line
    Text,
    /// Whole messages, each with a two-byte length prefix
    Stream,
}

/// What `auto` is among the drivers.
const FASTER: &str = "The faster one for the load, of those that the kernel allows";

/// What sends and receives the data of the responder: it has no part in a simulation.
const DRIVERS_OF_SERVERS: [DriverKind; 3] = [DriverKind::Epoll, DriverKind::Uring, DriverKind::Xdp];

/// A value of a setting, or that it is left out. (clap takes an `Option` for a flag that may be
/// missing; this one has a default that has a name.)
pub(crate) type Chosen<T> = Option<T>;

/// Reads one of `values`, which help and completions list.
fn one_of<T: Named + Send + Sync>(values: &'static [T]) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(listed(values)).try_map(|text| T::named(&text))
}

/// As [`one_of`], beside a word for none of them.
fn none_or<T: Named + Send + Sync>(
    none: &'static str,
    meaning: &'static str,
    values: &'static [T],
) -> impl TypedValueParser<Value = Chosen<T>> {
    let none = PossibleValue::new(none).help(meaning);
    let all = [none].into_iter().chain(listed(values));
    // What has no value of its own is the word for none.
    PossibleValuesParser::new(all).map(|text| T::named(&text).ok())
}

fn listed<T: Named>(values: &'static [T]) -> impl Iterator<Item = PossibleValue> {
    let values = values.iter();
    values.map(|value| PossibleValue::new(value.name()).help(value.meaning()))
}

/// Form of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Human-readable
    #[default]
    Text,
    /// The run record
    Json,
    /// One row per interval, and a total
    Csv,
}

/// Form of a result that is one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DocumentFormat {
    /// Human-readable
    Text,
    /// One object
    Json,
}

fn duration(text: &str) -> Result<Duration, String> {
    ::responder::behaviour::parse_duration(text).map_err(|error| error.to_string())
}

/// Length of an interval. What is too short is refused as soon as it is read: in an experiment,
/// before its first run.
fn interval(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        length if length < ::load::plan::INTERVAL_MIN => {
            Err("it is less than 1ms, give 1ms or more".to_owned())
        }
        length => Ok(length),
    }
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(format!("`{text}` is not of the form cpu=2")),
    }
}

fn delay(text: &str) -> Result<::responder::Delay, String> {
    text.parse()
        .map_err(|error: ::responder::behaviour::BehaviourError| error.to_string())
}

fn stall(text: &str) -> Result<::responder::Stall, String> {
    text.parse()
        .map_err(|error: ::responder::behaviour::BehaviourError| error.to_string())
}

/// How DoH/2 without TLS is written.
pub(crate) const DOH2_HTTP: &str = "doh2+http";

/// One value of `--listen`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Listen {
    pub(crate) transport: Transport,
    pub(crate) address: SocketAddr,
    /// DoH/2 without TLS.
    pub(crate) is_http: bool,
}

fn listen(text: &str) -> Result<Listen, String> {
    let form = || format!("`{text}` is not of the form udp:127.0.0.1:5300");
    if text.parse::<SocketAddr>().is_ok() {
        return Err(format!("no transport, as in udp:{text}"));
    }
    let (transport, address) = text.split_once(':').ok_or_else(form)?;
    let is_http = transport == DOH2_HTTP;
    Ok(Listen {
        transport: match is_http {
            true => Transport::Doh2,
            false => transport.parse()?,
        },
        address: address.parse().map_err(|_| form())?,
        is_http,
    })
}
