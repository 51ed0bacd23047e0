//! Flags of `throng experiment` and `throng history`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use measure::metric::Metric;

use super::compare::Undecided;
use super::values::{DocumentFormat, Format, count, count_from, list_format, refusal};

/// Arguments of `throng experiment`.
#[derive(Debug, Args)]
pub(crate) struct ExperimentArguments {
    #[command(subcommand)]
    pub(crate) command: ExperimentCommand,
}

/// What can be done with an experiment.
#[derive(Debug, Subcommand)]
pub(crate) enum ExperimentCommand {
    /// Make the runs that are still missing; after Ctrl-C or a crash, repeat the command to
    /// continue
    Run(ExperimentRun),
    /// Show what would be run, in which order, without running anything
    Plan {
        /// The experiment, a TOML file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        extent: Extent,
    },
    /// Compare the cells: intervals, spread between starts and between runs, and the smallest
    /// detectable difference
    Results {
        /// Folder of the experiment's records
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
        /// What is compared, as `throng history` has it
        #[arg(long, value_name = "METRIC", default_value = "qps", value_parser = metric)]
        metric: Metric,
        /// Format of the results
        #[arg(long, default_value = "text", value_enum)]
        format: DocumentFormat,
    },
    /// Check published statements against the cells: supported, not supported or inconclusive
    Claims(ClaimsArguments),
}

/// Flags of `throng experiment claims`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ClaimsArguments {
    /// Folder of the experiment's records
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// The statements, each with its conditions (TOML)
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Format of the list
    #[arg(long, default_value = "text", value_enum)]
    pub(crate) format: ClaimsFormat,
    /// Exit with code 3 if a claim is not supported
    #[arg(long, value_name = "FINDING", value_enum)]
    pub(crate) fail_if: Option<FailingClaim>,
    /// Whether inconclusive claims fail the command too, with --fail-if [default: pass]
    #[arg(long, value_enum)]
    pub(crate) undecided: Option<Undecided>,
    /// Write the findings to this file as JUnit XML, with --fail-if
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write --junit even where a symbolic link is in its place
    #[arg(long, requires = "junit")]
    pub(crate) force: bool,
}

/// The finding that fails a list of claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailingClaim {
    /// A condition of the claim is met in no part of its interval
    NotSupported,
}

/// Flags of `throng experiment run`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExperimentRun {
    /// The experiment, a TOML file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Folder for records, logs and index; the file's name without its suffix if left out
    #[arg(long, short, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) extent: Extent,
    /// Serve metrics of the runs for Prometheus at this address (see docs/watching.md)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Annotate the runs, with their verdicts and outages, in the Grafana at this URL; the token is
    /// read from GRAFANA_TOKEN (see docs/grafana.md)
    #[arg(long, value_name = "URL")]
    pub(crate) grafana: Option<String>,
    /// Show the runs on the whole terminal while they go on; ? lists the keys
    #[arg(long)]
    pub(crate) tui: bool,
    /// Show the runs as a page for browsers at this address while they go on, and the report at the
    /// end; the page's address is printed
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) web: Option<SocketAddr>,
    /// Permit changes to workloads of a cluster (`change` of a [[server]]); each is restored after
    /// its start
    #[arg(long)]
    pub(crate) allow_change: bool,
}

/// How much of an experiment is run.
#[derive(Clone, Debug, Args)]
pub(crate) struct Extent {
    /// Runs of each cell, whatever the file says
    #[arg(long, alias = "repetitions", value_name = "N", value_parser = count_from::<u32>(1))]
    pub(crate) repeat: Option<u32>,
    /// Try the file before hours are spent on it: two starts of the first and the last cell, with
    /// runs of a second
    #[arg(long)]
    pub(crate) short: bool,
}

/// Form of a list of claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClaimsFormat {
    /// Human-readable
    Text,
    /// A table in GitHub-flavoured Markdown
    Markdown,
    /// One document; `throng schema experiment-claims` describes it
    Json,
}

/// Arguments of `throng history`.
#[derive(Debug, Args)]
pub(crate) struct HistoryArguments {
    #[command(subcommand)]
    pub(crate) command: HistoryCommand,
}

/// Which records are meant.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// Folder with run records, searched with its subfolders
    #[arg(
        long = "records",
        alias = "in",
        value_name = "FOLDER",
        default_value = "."
    )]
    pub(crate) folder: PathBuf,
    /// Only runs that match: transport, clients, target, limit, throng, or a label
    #[arg(long = "where", value_name = "NAME=VALUE", value_parser = condition)]
    pub(crate) conditions: Vec<history::Condition>,
}

/// Questions to the history.
#[derive(Debug, Subcommand)]
pub(crate) enum HistoryCommand {
    /// List the runs, the earliest first
    List {
        #[command(flatten)]
        selection: Selection,
        /// Only the last N of them
        #[arg(long, value_name = "N", value_parser = count::<usize>)]
        last: Option<usize>,
        /// Format of the output
        #[arg(long, default_value = "text", value_name = "FORMAT", value_parser = list_format())]
        format: Format,
    },
    /// Show one run
    Show {
        /// Number of the run in the list, or name of its record in the folder
        #[arg(value_name = "RUN")]
        run: String,
        #[command(flatten)]
        selection: Selection,
        /// Format of the output
        #[arg(long, default_value = "text", value_enum)]
        format: Format,
    },
    /// Follow a metric over versions, or over whatever else differs between runs
    Trend {
        /// qps, goodput, loss, mean, p50, p99, max, connect, handshake, cpu, timeouts and others,
        /// which `throng schema metrics` lists
        #[arg(value_name = "METRIC", value_parser = metric)]
        metric: Metric,
        /// What to group the runs by: a label, or throng, transport, clients, target, limit
        #[arg(long, value_name = "NAME", default_value = "throng")]
        by: String,
        #[command(flatten)]
        selection: Selection,
        /// Format of the output
        #[arg(long, default_value = "text", value_name = "FORMAT", value_parser = list_format())]
        format: Format,
    },
}

fn metric(text: &str) -> Result<Metric, String> {
    Metric::named(text).ok_or_else(|| {
        let metrics = Metric::names();
        refusal("not a metric", format_args!("metrics are {metrics}"))
    })
}

fn condition(text: &str) -> Result<history::Condition, String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| refusal("not of the form NAME=VALUE", "such as transport=tcp"))?;
    Ok(history::Condition {
        name: name.to_owned(),
        value: value.to_owned(),
    })
}
