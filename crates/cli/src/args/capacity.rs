//! Flags of `throng capacity`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, Args, ValueEnum};

use super::flags::{self, Asker};
use super::run::RunArguments;
use super::values::{count_within, duration, refusal};

/// The flags of a run as this command has them.
fn of_search(arg: Arg) -> Arg {
    flags::shown(arg, Asker::Capacity)
}

/// Flags of `throng capacity`: its own, and those of each trial.
#[derive(Clone, Debug, Args)]
#[command(mut_args(of_search))]
#[command(mut_arg("timeout", |arg| arg.default_value("1s")))]
#[command(mut_arg("interval", |arg| arg.default_value("200ms")))]
#[command(mut_arg("format", |arg| arg.help("Format of the result on standard output")))]
#[command(mut_arg("undecided", super::compare::undecided_result))]
#[command(mut_arg("junit", super::compare::junit_of_result))]
pub(crate) struct CapacityArguments {
    /// What to search for
    #[arg(
        long,
        default_value = "rate",
        value_enum,
        help_heading = "Capacity search"
    )]
    pub(crate) search: SearchFor,
    /// Queries a second of each client, with --search clients
    #[arg(long, value_name = "QPS", help_heading = "Capacity search")]
    pub(crate) rate_per_client: Option<String>,
    /// Maximum share of the offered queries without a response
    #[arg(
        long,
        default_value = "0.1%",
        value_name = "SHARE",
        value_parser = share,
        help_heading = "Capacity search"
    )]
    pub(crate) max_loss: f64,
    /// Highest 99th percentile of the latency
    #[arg(
        long,
        default_value = "10ms",
        value_name = "TIME",
        value_parser = duration,
        help_heading = "Capacity search"
    )]
    pub(crate) max_p99: Duration,
    /// Minimum share of responses with an RCODE of --goodput
    #[arg(
        long,
        default_value = "99.9%",
        value_name = "SHARE",
        value_parser = share,
        help_heading = "Capacity search"
    )]
    pub(crate) min_goodput: f64,
    /// First rate, or number of clients, to try [default: 1k, or 10 clients]
    #[arg(long, value_name = "N", help_heading = "Capacity search")]
    pub(crate) start: Option<String>,
    /// Highest rate, or number of clients, to try [default: 10M, or 1M clients; simulated: 1M, or
    /// 100k clients]
    #[arg(long, value_name = "N", help_heading = "Capacity search")]
    pub(crate) max: Option<String>,
    /// How close the highest pass and the lowest failure must be
    #[arg(
        long,
        default_value = "1%",
        value_name = "SHARE",
        value_parser = share,
        help_heading = "Capacity search"
    )]
    pub(crate) precision: f64,
    /// How often to search for the limit; the answer is the median
    #[arg(
        long, alias = "rounds",
        default_value_t = 3,
        value_name = "N",
        value_parser = count_within::<u32>(1..=100),
        help_heading = "Capacity search"
    )]
    pub(crate) repeat: u32,
    /// How long each trial offers load
    #[arg(
        long,
        default_value = "2s",
        value_name = "TIME",
        value_parser = duration,
        help_heading = "Capacity search"
    )]
    pub(crate) trial_duration: Duration,
    /// Start no trial that would not end within this time
    #[arg(
        long,
        default_value = "2m",
        value_name = "TIME",
        value_parser = duration,
        help_heading = "Capacity search"
    )]
    pub(crate) max_duration: Duration,
    /// Keep the record of every trial and the answer (JSON) in this folder
    #[arg(long, value_name = "FOLDER", help_heading = "Capacity search")]
    pub(crate) records: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) run: RunArguments,
}

/// What to search for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SearchFor {
    /// The highest rate
    Rate,
    /// The highest number of clients
    Clients,
}

/// A share as `0.1%` or `0.001`.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let is_plain = (number.bytes()).all(|octet| octet.is_ascii_digit() || octet == b'.');
    let value = number.parse::<f64>().ok().filter(|_| is_plain);
    value
        .map(|value| value / unit)
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| {
            refusal(
                format_args!("`{text}` is not a share"),
                "give a share such as 0.1% or 0.001",
            )
        })
}
