//! Flags of `throng ramp`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, Args};

use super::capacity::share;
use super::flags::{self, Asker};
use super::run::RunArguments;
use super::values::{count, count_from, duration};

/// The flags of a run as this command has them.
fn of_ramp(arg: Arg) -> Arg {
    flags::shown(arg, Asker::Ramp)
}

/// Flags of `throng ramp`: its own, and those of its run.
#[derive(Clone, Debug, Args)]
#[command(mut_args(of_ramp))]
#[command(mut_arg("interval", |arg| arg.default_value("500ms").help("Time that each point \
    covers")))]
#[command(mut_arg("format", |arg| arg.help("Format of the result on standard output")))]
#[command(mut_arg("undecided", super::compare::undecided_result))]
#[command(mut_arg("junit", super::compare::junit_of_result))]
pub(crate) struct RampArguments {
    /// Rate at the end of the ramp
    #[arg(
        long,
        default_value = "100k",
        value_name = "QPS",
        help_heading = "Ramp"
    )]
    pub(crate) to: String,
    /// How long the rate increases
    #[arg(long, default_value = "60s", value_name = "TIME", value_parser = duration,
          help_heading = "Ramp")]
    pub(crate) over: Duration,
    /// How long to hold the final rate
    #[arg(long, default_value = "0s", value_name = "TIME", value_parser = duration,
          help_heading = "Ramp")]
    pub(crate) sustain: Duration,
    /// Stop when this many queries are outstanding
    #[arg(long, default_value_t = 65_536, value_name = "N", help_heading = "Ramp",
          value_parser = count_from::<u64>(1))]
    pub(crate) max_outstanding: u64,
    /// Stop when this many queries that are due have not been sent; 0 for no limit
    #[arg(long, default_value_t = 1_000, value_name = "N", help_heading = "Ramp",
          value_parser = count::<u64>)]
    pub(crate) max_behind: u64,
    /// Stop when more than this share has no response, and report the peak before that
    #[arg(long, default_value = "100%", value_name = "SHARE", value_parser = share,
          help_heading = "Ramp")]
    pub(crate) max_loss: f64,
    /// Write the points to this file in resperf's format, for gnuplot
    #[arg(long, value_name = "FILE", help_heading = "Ramp")]
    pub(crate) plot: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) run: RunArguments,
}
