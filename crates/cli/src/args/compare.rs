//! Flags of `throng compare`, and the conditions that `throng run` takes too.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Arg, Args, ValueEnum};
use measure::Metric;
use measure::metric::Better;
use serde::{Deserialize, Serialize};

use super::values::{Format, count_within};

/// Conditions on a result.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
#[command(next_help_heading = "Conditions")]
pub(crate) struct ConditionArguments {
    /// Exit with code 3 if this is true: 'p99 > 5ms', 'loss > 0.1%', 'qps < 50k'; with
    /// --timestamps also 'wire.p99 > 5ms'; in a comparison also 'p99 > +10%' or 'slower'. May be
    /// repeated
    #[arg(long, value_name = "CONDITION", help_heading = "Conditions")]
    pub(crate) fail_if: Vec<String>,
    /// Exit with code 3 unless this is true: 'p99 < 5ms', 'goodput > 50k'. May be repeated
    #[arg(long, value_name = "CONDITION", help_heading = "Conditions")]
    pub(crate) require: Vec<String>,
    /// Whether conditions that the figures do not decide fail the command, and those of a run that
    /// hold while its limit is the generator or unknown
    #[arg(long, value_enum, default_value = "pass", help_heading = "Conditions")]
    #[serde(default)]
    pub(crate) undecided: Undecided,
    /// Write the results of the conditions to this file as JUnit XML
    #[arg(long, value_name = "FILE", help_heading = "Conditions")]
    #[serde(with = "super::paths::option")]
    pub(crate) junit: Option<PathBuf>,
}

/// `--undecided` of a command whose result is what is decided.
pub(crate) fn undecided_result(arg: Arg) -> Arg {
    arg.help("Whether a result that does not show what the target can do fails the command")
}

/// `--junit` of such a command.
pub(crate) fn junit_of_result(arg: Arg) -> Arg {
    arg.help("Write whether the result shows what the target can do to this file as JUnit XML")
}

/// What a condition does that the figures do not decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Undecided {
    /// It fails nothing
    #[default]
    Pass,
    /// It fails the command, with code 3
    Fail,
}

/// Flags of `throng compare`.
#[derive(Clone, Debug, Args)]
pub(crate) struct AbArguments {
    /// Baseline: a run record, or a folder of them
    #[arg(value_name = "A", requires = "other", required_unless_present = "a")]
    pub(crate) one: Option<PathBuf>,
    /// What to compare with A: a run record, or a folder of them
    #[arg(value_name = "B", id = "other")]
    pub(crate) other: Option<PathBuf>,

    /// Command for the runs of A: `throng run` and its flags, or the flags alone
    #[arg(
        long,
        value_name = "COMMAND",
        requires = "b",
        conflicts_with = "one",
        allow_hyphen_values = true,
        help_heading = "Runs in turn"
    )]
    pub(crate) a: Option<String>,
    /// Command for the runs of B
    #[arg(
        long,
        value_name = "COMMAND",
        requires = "a",
        allow_hyphen_values = true,
        help_heading = "Runs in turn"
    )]
    pub(crate) b: Option<String>,
    /// Runs of each, in the order A B, B A, A B and so on [default: 10]
    #[arg(
        long, alias = "rounds",
        requires = "a",
        value_name = "N",
        value_parser = count_within::<u32>(1..=1_000),
        help_heading = "Runs in turn"
    )]
    pub(crate) repeat: Option<u32>,
    /// Keep the run records here, in the folders a and b [default: throng-compare]
    #[arg(
        long,
        requires = "a",
        value_name = "FOLDER",
        help_heading = "Runs in turn"
    )]
    pub(crate) records: Option<PathBuf>,
    /// Serve metrics of the runs for Prometheus at this address: --metrics of other commands (see
    /// docs/watching.md)
    #[arg(
        long,
        requires = "a",
        value_name = "ADDRESS:PORT",
        help_heading = "Runs in turn"
    )]
    pub(crate) serve_metrics: Option<SocketAddr>,
    /// Annotate the runs, with their verdicts and outages, in the Grafana at this URL; the token is
    /// read from GRAFANA_TOKEN (see docs/grafana.md)
    #[arg(
        long,
        requires = "a",
        value_name = "URL",
        help_heading = "Runs in turn"
    )]
    pub(crate) grafana: Option<String>,
    /// Show the runs on the whole terminal while they go on; ? lists the keys
    #[arg(
        long,
        requires = "a",
        conflicts_with = "quiet",
        help_heading = "Runs in turn"
    )]
    pub(crate) tui: bool,
    /// Show the runs as a page for browsers at this address while they go on, and the comparison at
    /// the end; the page's address is printed
    #[arg(
        long,
        requires = "a",
        value_name = "ADDRESS:PORT",
        help_heading = "Runs in turn"
    )]
    pub(crate) web: Option<SocketAddr>,
    /// Show no progress on standard error
    #[arg(long, short, requires = "a", help_heading = "Runs in turn")]
    pub(crate) quiet: bool,

    /// Records of repeated runs of the same thing, whose spread is the noise
    #[arg(long, value_name = "FOLDER", help_heading = "Comparison")]
    pub(crate) noise: Option<PathBuf>,
    /// Treat changes up to this as no difference
    #[arg(
        long,
        default_value = "2%",
        value_name = "PERCENT",
        value_parser = percent,
        help_heading = "Comparison"
    )]
    pub(crate) same_within: f64,
    /// Metrics to compare [default: those measured of
    /// qps,goodput,loss,p50,p95,p99,connect,handshake,cpu]
    #[arg(
        long,
        value_name = "METRIC,...",
        value_delimiter = ',',
        value_parser = metric,
        help_heading = "Comparison"
    )]
    pub(crate) metrics: Vec<Metric>,
    /// Compare even if hosts or scenarios differ; and write --junit even where a symbolic link is
    /// in its place
    #[arg(long, help_heading = "Comparison")]
    pub(crate) force: bool,
    /// Seed of the bootstrap
    #[arg(
        long,
        default_value_t = 1,
        value_name = "N",
        help_heading = "Comparison"
    )]
    pub(crate) seed: u64,

    #[command(flatten)]
    pub(crate) conditions: ConditionArguments,
    /// Former name of `--undecided fail`
    #[arg(
        long,
        hide = true,
        conflicts_with = "undecided",
        help_heading = "Conditions"
    )]
    pub(crate) fail_undecided: bool,

    /// Format of the comparison on standard output
    #[arg(long, default_value = "text", value_enum, help_heading = "Output")]
    pub(crate) format: Format,
}

fn metric(text: &str) -> Result<Metric, String> {
    match Metric::named(text) {
        Some(metric) if metric.better() != Better::Neither => Ok(metric),
        Some(_) => Err("neither more nor less of it is better".to_owned()),
        None => Err(format!("metrics are {}", Metric::names())),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text
        .trim()
        .strip_suffix('%')
        .and_then(|number| number.trim().parse().ok());
    match number {
        Some(percent) if (0.1..=50.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("a percentage from 0.1% to 50%, such as 2%".into()),
    }
}
