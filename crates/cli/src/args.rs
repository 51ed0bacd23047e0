//! The commands and their flags; help, man page and completions are made from these definitions.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ::responder::QUIC_STREAMS_MAX;
use clap::{Args, Parser, Subcommand, ValueEnum};
use proto::Transport;
use serde::{Deserialize, Serialize};
use settings::{DriverChoice, DriverKind, InterfaceName};

pub(crate) use behaviour::BehaviourArguments;
use capacity::CapacityArguments;
use ceiling::CeilingArguments;
use compare::AbArguments;
use doctor::DoctorArguments;
use experiment::{ExperimentArguments, HistoryArguments};
use fit::FitArguments;
use fleet::FleetArguments;
pub(crate) use given::Given;
use init::InitArguments;
use lab::LabArguments;
use line::LineArguments;
pub(crate) use output::{Output, Views};
use probe::{EvalArguments, PingArguments, TraceArguments};
use ramp::RampArguments;
use replay::ReplayArguments;
pub(crate) use run::{NamesFormat, RunArguments, RunCommand};
pub(crate) use serve::ServeArguments;
pub(crate) use tls::{ClientCertificatePolicy, ServerTlsArguments, TlsArguments};
pub(crate) use values::{Chosen, DocumentFormat, Format};
use values::{FASTER, count, count_from, count_within, length, none_or, refusal};

mod behaviour;
pub(crate) mod capacity;
pub(crate) mod ceiling;
pub(crate) mod compare;
pub(crate) mod connections;
pub(crate) mod doctor;
pub(crate) mod doh;
pub(crate) mod endpoint;
pub(crate) mod experiment;
pub(crate) mod fit;
pub(crate) mod flags;
pub(crate) mod fleet;
mod given;
pub(crate) mod init;
pub(crate) mod lab;
pub(crate) mod line;
#[cfg(test)]
mod one_name;
mod output;
mod paths;
pub(crate) mod population;
pub(crate) mod probe;
pub(crate) mod profile;
pub(crate) mod questions;
pub(crate) mod ramp;
pub(crate) mod replay;
mod run;
mod serve;
pub(crate) mod server_model;
pub(crate) mod sockets;
pub(crate) mod stub;
mod tls;
pub(crate) mod values;

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
    /// Replay a capture or query log, each client with its own queries and timing
    Replay(Box<ReplayArguments>),
    /// Decide whether B is slower than A, from records or from alternating runs
    Compare(Box<AbArguments>),
    /// Measure the same load over several transports, and what each step costs
    CompareTransports(Box<CompareTransportsArguments>),
    /// Find the highest rate that a server sustains, or the most clients
    Capacity(Box<CapacityArguments>),
    /// Raise the rate until the server fails or a limit is reached
    Ramp(Box<RampArguments>),
    /// Query a server repeatedly, and show each response with its time
    Ping(Box<PingArguments>),
    /// Query several servers in turn, and rank them by latency
    Eval(Box<EvalArguments>),
    /// Show the path to a server, hop by hop, with DNS queries
    Trace(Box<TraceArguments>),
    /// Run each combination of a matrix several times, in random order
    Experiment(ExperimentArguments),
    /// List recorded runs, show one, follow a metric over versions
    History(HistoryArguments),
    /// Show the records of a folder in browsers: reports, comparisons, trends
    ///
    /// Read only. Exit codes: 0 after Ctrl-C, SIGTERM or SIGHUP; 2 if there is no such folder or
    /// the address cannot be used
    Serve(ServeArguments),
    /// Run a command with its agents in Kubernetes or on hosts that dial its lead
    Fleet(FleetArguments),
    /// Answer queries: a synthetic target with programmable behaviour
    Responder(Box<ResponderArguments>),
    /// Start real servers to measure, list them, end them
    Lab(Box<LabArguments>),
    /// Connect two network namespaces with delay, jitter, loss or a rate limit
    Line(Box<LineArguments>),
    /// Make sets of names to query, and the zones that answer them
    Names(NamesArguments),
    /// Fit a profile of the clients in captures and query logs
    Fit(FitArguments),
    /// Report on run records, as text, HTML with charts, Markdown, CSV or JSON
    Report(ReportArguments),
    /// Diagnose what limits load, on this host or in records, and how to fix it
    Doctor(DoctorArguments),
    /// Merge run records of several generators exactly
    Merge(MergeArguments),
    /// Check scripts for --script
    Script(ScriptArguments),
    /// Write a commented scenario or experiment: capacity, SLA, regression and others
    Init(InitArguments),
    /// Show the defaults in force, from files and environment variables
    Config(ConfigArguments),
    /// Print the JSON Schemas of records, scenarios and other documents
    Schema(SchemaArguments),
    /// Measure the generator alone, for `bench/run`; people use `throng doctor --ceiling`
    #[command(hide = true)]
    Ceiling(CeilingArguments),
    /// Print the manual page (roff), or write a page for each command
    Man(ManArguments),
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

/// Arguments of `throng config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    /// Only those of this command, such as `run` or `experiment run`
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
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
    /// Experiment files
    Experiment,
    /// What `throng experiment results` shows of each cell
    ExperimentResults,
    /// What `throng experiment claims` finds
    ExperimentClaims,
    /// What `throng capacity` found
    Capacity,
    /// What `throng ramp` showed
    Ramp,
    /// What `throng compare` found
    Compare,
    /// What `throng compare-transports` found
    CompareTransports,
    /// What `throng report` says of several records
    Report,
    /// What `throng doctor` finds on a host or in records
    Doctor,
    /// The ceilings that `throng doctor --ceiling` measures
    Ceilings,
    /// The runs that `throng history list` lists
    HistoryList,
    /// The figures that `throng history trend` follows
    HistoryTrend,
    /// A line of `throng ping`
    Ping,
    /// What `throng eval` found
    Eval,
    /// The path that `throng trace` found
    Trace,
    /// What `throng line` did
    Line,
    /// The servers that `throng lab list` lists
    LabList,
    /// All commands and their flags, in Markdown
    Commands,
    /// The metrics by name and unit, as a table in Markdown
    Metrics,
    /// What --observe asks of each product, as tables in Markdown
    Observations,
    /// The rules of the verdict and the symptoms that they read, as tables in Markdown
    Verdict,
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
#[command(mut_arg("undecided", compare::undecided_result))]
#[command(mut_arg("junit", compare::junit_of_result))]
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
        value_parser = count_within::<u32>(1..=1_000),
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
        false => Err(refusal("several are compared", "use --transports")),
    }
}

/// One file cannot keep the records of several runs.
fn only_records(_: &str) -> Result<PathBuf, String> {
    Err(refusal("there are several records", "use --records FOLDER"))
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
    /// Allow listening on public addresses, and on all addresses at once (0.0.0.0, ::)
    #[arg(long)]
    pub(crate) allow_public: bool,
    /// Most responses a second over UDP to each network (/24 of IPv4, /56 of IPv6); 1,000 where
    /// --allow-public is needed, else no limit
    #[arg(long, value_name = "RATE", conflicts_with = "no_rate_limit",
          value_parser = count_from::<u32>(1))]
    pub(crate) rate_limit: Option<u32>,
    /// Do not limit the rate of responses where --allow-public is needed
    #[arg(long)]
    pub(crate) no_rate_limit: bool,
    /// Path of DoH
    #[arg(long, default_value = "/dns-query", value_name = "PATH")]
    pub(crate) doh_path: String,
    /// Concurrent HTTP requests per DoH client
    #[arg(long, default_value_t = 1_000, value_name = "N", value_parser = count::<u32>)]
    pub(crate) doh_streams: u32,
    /// Concurrent queries on a DoQ or DoH/3 connection
    #[arg(long, default_value_t = QUIC_STREAMS_MAX, value_name = "N", value_parser = count::<u32>)]
    pub(crate) quic_streams: u32,
    /// Answer DoQ queries with a message ID other than 0, as kxdpgun sends them, instead of closing
    /// their connection (RFC 9250, section 4.3.3)
    #[arg(long)]
    pub(crate) doq_any_id: bool,
    /// Stop the streams of DoQ queries (STOP_SENDING) as hickory 0.26 does, which makes clients
    /// close the connection (RFC 9250, section 4.3.3)
    #[arg(long)]
    pub(crate) doq_stop_sending: bool,
    /// Keep at most this many MiB of unfinished queries and of responses that wait; beyond it,
    /// connections that hold most for longest are reset. All connections together have a quarter of
    /// this host's memory [default: 192]
    #[arg(long, value_name = "MIB", value_parser = count_from::<u32>(1))]
    pub(crate) memory: Option<u32>,
    /// Allow a QUIC connection only --quic-streams streams in all, as Knot DNS does
    #[arg(long)]
    pub(crate) quic_streams_final: bool,
    /// Write what was counted to this file as JSON, at the end and whenever SIGUSR1 comes
    #[arg(long, value_name = "FILE")]
    #[serde(with = "paths::option")]
    pub(crate) counters: Option<PathBuf>,
    /// Serve what is counted for Prometheus at this address (see docs/watching.md)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
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
    #[arg(
        long,
        alias = "tls-certificate",
        value_name = "FILE",
        requires = "tls_key"
    )]
    #[serde(with = "paths::option")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    #[serde(with = "paths::option")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Write the self-signed certificate (PEM) here, for clients to verify
    #[arg(long, value_name = "FILE", conflicts_with = "tls_cert")]
    #[serde(with = "paths::option")]
    pub(crate) write_certificate: Option<PathBuf>,
    /// Processes that listen together, each with one worker per CPU, for more connections than one
    /// process may have open files; only the process that started a session can resume it
    #[arg(long, default_value_t = 1, value_name = "N",
          value_parser = count_within::<u32>(1..=1_024))]
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
    /// Stop after this time; a number without a unit is seconds
    #[arg(long, value_name = "TIME", value_parser = length)]
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
        #[arg(long, default_value_t = 1_000, value_name = "N", value_parser = count::<u32>)]
        count: u32,
        /// Zone of the records
        #[arg(long, default_value = "throng.test", value_name = "NAME")]
        zone: String,
        /// TTL of the records, seconds
        #[arg(long, default_value_t = 1, value_name = "SECONDS")]
        ttl: u32,
        /// What to write
        #[arg(long, alias = "form", default_value = "names", value_enum)]
        format: RecordForm,
        /// Shuffle the names with this seed
        #[arg(long, value_name = "SEED")]
        shuffle: Option<u64>,
    },
    /// Existing, missing and external names, as in Northflank's measurements of CoreDNS
    Services {
        /// Existing services
        #[arg(long, default_value_t = 500, value_name = "N", value_parser = count::<u32>)]
        existing: u32,
        /// Services that do not exist
        #[arg(long, default_value_t = 500, value_name = "N", value_parser = count::<u32>)]
        missing: u32,
        /// External names
        #[arg(long, default_value_t = 100, value_name = "N", value_parser = count::<u32>)]
        external: u32,
        /// TTL of the records, seconds
        #[arg(long, default_value_t = 5, value_name = "SECONDS")]
        ttl: u32,
        /// What to write
        #[arg(long, alias = "form", default_value = "names", value_enum)]
        format: ServiceForm,
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
    /// Print all of one run as text, not its summary of at most 25 lines
    #[arg(long)]
    pub(crate) details: bool,
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
    /// One run of several agents: a row per agent, as CSV
    CsvAgents,
    /// The same: a row per agent and interval, as CSV
    CsvAgentIntervals,
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
    /// write --record even where a symbolic link is in its place
    #[arg(long)]
    pub(crate) force: bool,
    /// Write the merged record to this file instead of to standard output
    #[arg(long, alias = "output", short_alias = 'o', value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

/// Flags of `throng man`.
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Write a page for each command into this folder: throng.1, throng-run.1 and so on
    #[arg(long, short, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
}

/// Flags of `throng completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionArguments {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// What sends and receives the data of the responder: it has no part in a simulation.
const DRIVERS_OF_SERVERS: [DriverKind; 3] = [DriverKind::Epoll, DriverKind::Uring, DriverKind::Xdp];

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
    let form = || {
        refusal(
            format_args!("`{text}` is not of the form udp:127.0.0.1:5300"),
            "write TRANSPORT:ADDRESS:PORT, such as udp:127.0.0.1:5300",
        )
    };
    if text.parse::<SocketAddr>().is_ok() {
        return Err(refusal(
            format_args!("`{text}` has no transport"),
            format_args!("write udp:{text}"),
        ));
    }
    let (transport, address) = text.split_once(':').ok_or_else(form)?;
    // A URI names the transport in the same place.
    let address = address.strip_prefix("//").unwrap_or(address);
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
