//! Flags of `throng fleet`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::values::duration;

/// Agents that dial their lead.
#[derive(Debug, Args)]
pub(crate) struct FleetArguments {
    #[command(subcommand)]
    pub(crate) command: FleetCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Make keys for a lead and its agents, in a new folder
    Keys(KeysArguments),
    /// Generate a share of the load of a `throng run --listen`, which this agent dials
    Agent(FleetAgentArguments),
}

/// Flags of `throng fleet keys`.
#[derive(Debug, Args)]
#[command(
    after_help = "The lead needs lead.pem, lead.key and ca.pem; agents need agent.pem, agent.key \
    and ca.pem. Whoever has these can take part in a run, so make keys for each fleet, and delete \
    them afterwards. The key of the authority is not kept."
)]
pub(crate) struct KeysArguments {
    /// Folder to make
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}

/// Flags of `throng fleet agent`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 its share is done; 1 it failed; 2 wrong usage, or the lead could \
    not be reached in time; 95 refused: unknown certificate, another version, or a number that is \
    taken; 96 the run had begun without it; 97 the connection with the lead ended, or the lead was \
    silent for 10 s; 98 it heard of the start too late; 130 or 143 SIGINT or SIGTERM: it has \
    reported what it had done."
)]
pub(crate) struct FleetAgentArguments {
    /// Where the lead listens
    #[arg(value_name = "HOST:PORT")]
    pub(crate) lead: String,
    /// Folder with agent.pem, agent.key and ca.pem, made by `throng fleet keys`
    #[arg(long, value_name = "FOLDER")]
    pub(crate) keys: PathBuf,
    /// Number of this agent, from 0 [default: $JOB_COMPLETION_INDEX]
    #[arg(long, value_name = "N")]
    pub(crate) index: Option<u32>,
    /// Name of this agent in the record [default: the host's]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// How long to try to reach the lead
    #[arg(long, default_value = "5m", value_name = "TIME", value_parser = duration)]
    pub(crate) patience: Duration,
}
