//! Flags of `throng ping`, `eval` and `trace`: their own, and those of `throng run` that mean
//! something for a query now and then.

use std::path::PathBuf;

use clap::{Arg, Args, ValueEnum};

use super::flags::{self, Calls};
use super::run::RunArguments;
use super::values::{DocumentFormat, count, count_within, duration};

/// Name and types, and what all three commands have in common.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", |arg| arg.long("run-format").hide(true)))]
pub(crate) struct ProbeArguments {
    /// Name to query
    #[arg(value_name = "NAME", required = true)]
    pub(crate) name: String,
    /// QTYPEs to query, in turn
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
    .value_parser(duration)
    .default_value("1s")
    .help("Time between queries, whatever the server does")))]
pub(crate) struct PingArguments {
    /// Queries to send; 0 continues until Ctrl-C
    #[arg(long, default_value_t = 10, value_name = "N", help_heading = "Length",
          value_parser = count::<u64>)]
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
    .value_parser(duration)
    .default_value("100ms")
    .help("Time between queries to each server; the servers take turns at equal distances")))]
pub(crate) struct EvalArguments {
    /// File with servers, one per line; `#` starts a comment
    #[arg(long, value_name = "FILE", help_heading = "Target")]
    pub(crate) servers: Option<PathBuf>,
    /// Queries for each server
    #[arg(
        long,
        default_value_t = 20,
        value_name = "N",
        value_parser = count_within::<u64>(1..=1_000),
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
#[command(mut_arg("timeout", |arg| arg.default_value("1s").help("Time to wait for a response to \
    each query")))]
pub(crate) struct TraceArguments {
    /// Maximum number of hops
    #[arg(
        long,
        default_value_t = 30,
        value_name = "N",
        value_parser = clap::value_parser!(u8).range(1..),
        help_heading = "Length"
    )]
    pub(crate) max_hops: u8,
    /// First hop to probe
    #[arg(
        long,
        default_value_t = 1,
        value_name = "N",
        value_parser = clap::value_parser!(u8).range(1..),
        help_heading = "Length"
    )]
    pub(crate) first_hop: u8,
    /// Queries per hop
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
    /// Format of the result on standard output
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
    /// Human-readable
    Text,
    /// One object per line: each response as it arrives, the statistics last
    Json,
}

/// Forms of servers side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EvalFormat {
    /// Human-readable
    Text,
    /// GitHub-flavoured
    Markdown,
    /// One row per server
    Csv,
    /// Everything that was found
    Json,
}

/// The flags of a run as ping and eval have them.
fn of_run(arg: Arg) -> Arg {
    flags::called(arg, Calls::Runs)
}

/// The flags of a run as trace has them.
fn of_all(arg: Arg) -> Arg {
    flags::called(arg, Calls::All)
}
