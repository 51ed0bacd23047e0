//! Flags of `throng replay`: its own, and those of the run that it is.

use std::path::PathBuf;
use std::time::Duration;

use capture::Format;
use capture::replay::Prefix;
use clap::{Arg, Args};
use proto::Transport;

use super::fit::ClientChoice;
use super::flags::{self, Asker};
use super::run::RunArguments;
use super::values::duration;

/// Flags of `throng replay`: its own, and those of the run.
#[derive(Clone, Debug, Args)]
#[command(mut_args(of_replay))]
pub(crate) struct ReplayArguments {
    /// Captures (pcap, pcapng, dnstap) or query logs (BIND, Unbound, CoreDNS), oldest first; `-` is
    /// standard input
    #[arg(value_name = "CAPTURE", required = true)]
    pub(crate) captures: Vec<PathBuf>,
    /// Format of the captures [default: detected from their content]
    #[arg(
        long,
        value_name = "pcap|pcapng|dnstap|bind|unbound|coredns",
        help_heading = "Capture"
    )]
    pub(crate) capture_format: Option<Format>,
    /// Ports that the servers listen on, in packet captures
    #[arg(
        long,
        default_value = "53",
        value_name = "PORT[,PORT...]",
        value_delimiter = ',',
        help_heading = "Capture"
    )]
    pub(crate) port: Vec<u16>,
    /// What counts as a client, each with its own socket or connection
    #[arg(long, default_value = "address", value_enum, help_heading = "Capture")]
    pub(crate) client: ClientChoice,
    /// Speed of the replay relative to the capture (2, 0.1)
    #[arg(
        long,
        default_value_t = 1.0,
        value_name = "FACTOR",
        help_heading = "Capture"
    )]
    pub(crate) speed: f64,
    /// Only queries from these clients
    #[arg(
        long,
        value_name = "ADDRESS[/BITS][,...]",
        value_delimiter = ',',
        help_heading = "Capture"
    )]
    pub(crate) only_clients: Vec<Prefix>,
    /// Only queries with these QTYPEs
    #[arg(
        long,
        value_name = "QTYPE[,...]",
        value_delimiter = ',',
        value_parser = qtype,
        help_heading = "Capture"
    )]
    pub(crate) only_qtypes: Vec<u16>,
    /// Only queries for these names and those below them
    #[arg(
        long,
        value_name = "NAME[,...]",
        value_delimiter = ',',
        help_heading = "Capture"
    )]
    pub(crate) only_names: Vec<String>,
    /// Only queries that came over these transports
    #[arg(
        long,
        value_name = "TRANSPORT[,...]",
        value_delimiter = ',',
        help_heading = "Capture"
    )]
    pub(crate) only_transports: Vec<Transport>,
    /// Only queries at least this long after the first of the capture
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Capture")]
    pub(crate) from: Option<Duration>,
    /// Only queries less than this long after the first of the capture
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Capture")]
    pub(crate) until: Option<Duration>,
    #[command(flatten)]
    pub(crate) run: RunArguments,
}

fn qtype(text: &str) -> Result<u16, String> {
    proto::rr::type_from_text(text).ok_or_else(|| format!("unknown type `{text}`"))
}

/// The flags of a run as a replay has them.
fn of_replay(arg: Arg) -> Arg {
    match arg.get_long() {
        Some("duration") => arg.help("End after this time [default: with the last query]"),
        Some("queries") => arg.help("Only this many queries, the first that pass the filters"),
        Some("loops") => arg.help("Replay everything this many times [default: once]"),
        _ => flags::shown(arg, Asker::Capture),
    }
}
