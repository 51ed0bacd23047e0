//! Flags of `throng ping`, `eval` and `trace`: their own, and those of `throng run` that mean
//! something for a query now and then.

use std::path::PathBuf;

use clap::{Arg, Args, ValueEnum};

use super::{DocumentFormat, RunArguments};

/// Flags of `throng run` that all three commands take.
const OF_ALL: [&str; 11] = [
    "server",
    "allow-public",
    "no-recursion",
    "edns-size",
    "dnssec",
    "edns-option",
    "timeout",
    "local-address",
    "socket-buffer",
    "help",
    "version",
];
/// Those that ping and eval take too, which are runs.
const OF_RUNS: [&str; 14] = [
    "transport",
    "no-preflight",
    "edns-padding",
    "allow-plain-padding",
    "edns-keepalive",
    "tsig",
    "tsig-file",
    "queries-per-connection",
    "tcp-fast-open",
    "driver",
    "interval",
    "record",
    "label",
    "format",
];
/// Headings of flags that ping and eval take, all of them.
const HEADINGS_OF_RUNS: [&str; 2] = ["TLS", "DNS over HTTPS"];

/// Name and types, and what all three commands have in common.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", |arg| arg.long("run-format").hide(true)))]
pub(crate) struct ProbeArguments {
    /// What to ask for
    #[arg(value_name = "NAME", required = true)]
    pub(crate) name: String,
    /// Types to ask for, in turn
    #[arg(
        long = "type",
        default_value = "A",
        value_name = "TYPE[,TYPE...]",
        value_delimiter = ',',
        help_heading = "Questions"
    )]
    pub(crate) types: Vec<String>,
    #[command(flatten)]
    pub(crate) run: RunArguments,
}

/// Flags of `throng ping`.
#[derive(Clone, Debug, Args)]
#[command(mut_args(of_run))]
#[command(mut_arg("interval", |arg| arg
    .help("Time from query to query, whatever the server does")))]
pub(crate) struct PingArguments {
    /// Queries to send; 0 until Ctrl-C
    #[arg(long, default_value_t = 10, value_name = "N", help_heading = "Length")]
    pub(crate) count: u64,
    #[command(flatten)]
    pub(crate) form: Form<PingFormat>,
    #[command(flatten)]
    pub(crate) probe: ProbeArguments,
}

/// Flags of `throng eval`.
#[derive(Clone, Debug, Args)]
#[command(mut_args(of_run))]
#[command(mut_arg("interval", |arg| arg
    .default_value("100ms")
    .help("Time from query to query of each server; the servers are asked evenly in between")))]
pub(crate) struct EvalArguments {
    /// File with servers, one a line; `#` begins a comment
    #[arg(long, value_name = "FILE", help_heading = "Target")]
    pub(crate) servers: Option<PathBuf>,
    /// Queries for each server
    #[arg(
        long,
        default_value_t = 20,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=1_000),
        help_heading = "Length"
    )]
    pub(crate) count: u64,
    /// Fastest first, instead of in the order given
    #[arg(long, help_heading = "Output")]
    pub(crate) sorted: bool,
    #[command(flatten)]
    pub(crate) form: Form<EvalFormat>,
    #[command(flatten)]
    pub(crate) probe: ProbeArguments,
}

/// Flags of `throng trace`.
#[derive(Clone, Debug, Args)]
#[command(mut_args(of_all))]
#[command(mut_arg("timeout", |arg| arg.default_value("1s").help("Wait for each query")))]
pub(crate) struct TraceArguments {
    /// Give up beyond that many hops
    #[arg(
        long,
        default_value_t = 30,
        value_name = "N",
        value_parser = clap::value_parser!(u8).range(1..),
        help_heading = "Length"
    )]
    pub(crate) max_hops: u8,
    /// Distance of the first hop that is looked for
    #[arg(
        long,
        default_value_t = 1,
        value_name = "N",
        value_parser = clap::value_parser!(u8).range(1..),
        help_heading = "Length"
    )]
    pub(crate) first_hop: u8,
    /// Queries for each distance
    #[arg(
        long,
        default_value_t = 3,
        value_name = "N",
        value_parser = clap::value_parser!(u8).range(1..=10),
        help_heading = "Length"
    )]
    pub(crate) probes: u8,
    #[command(flatten)]
    pub(crate) form: Form<DocumentFormat>,
    #[command(flatten)]
    pub(crate) probe: ProbeArguments,
}

/// `--format` of each command, in the place of that of `throng run`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Form<F: ValueEnum + Send + Sync + 'static> {
    /// Form of the result on standard output
    #[arg(
        long = "format",
        id = "form",
        value_name = "FORMAT",
        default_value = "text",
        value_enum,
        help_heading = "Output"
    )]
    pub(crate) format: F,
}

/// Forms of responses one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PingFormat {
    /// For people
    Text,
    /// An object a line: each response as it comes, at last the statistics
    Json,
}

/// Forms of servers side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EvalFormat {
    /// For people
    Text,
    /// GitHub-flavoured
    Markdown,
    /// One row a server
    Csv,
    /// Everything that was found
    Json,
}

/// Hides the flags of `throng run` that ping and eval have no use for.
fn of_run(arg: Arg) -> Arg {
    let heading = arg.get_help_heading().unwrap_or_default();
    let name = arg.get_long().unwrap_or_default();
    match HEADINGS_OF_RUNS.contains(&heading) || OF_RUNS.contains(&name) {
        true => arg,
        false => of_all(arg),
    }
}

/// Hides the flags of `throng run` that none of the commands has a use for.
fn of_all(arg: Arg) -> Arg {
    let is_taken = OF_ALL.contains(&arg.get_long().unwrap_or_default());
    match is_own(&arg) || is_taken {
        true => arg,
        false => arg.hide(true),
    }
}

/// True if one of the commands has defined the flag itself.
fn is_own(arg: &Arg) -> bool {
    const OWN: [&str; 9] = [
        "name",
        "types",
        "count",
        "form",
        "servers",
        "sorted",
        "max_hops",
        "first_hop",
        "probes",
    ];
    OWN.contains(&arg.get_id().as_str())
}
