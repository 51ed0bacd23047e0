//! Flags of `throng fleet`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::run::RunCommand;
use super::values::duration;

/// Arguments of `throng fleet`.
#[derive(Debug, Args)]
pub(crate) struct FleetArguments {
    #[command(subcommand)]
    pub(crate) command: FleetCommand,
}

/// What can be done with agents on other hosts.
#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// As `throng run`, by a fleet: with --kubernetes, --hosts or --lead
    Run(Box<FleetRunArguments>),
    /// Wait for agents, and lead them through the runs that `--lead` asks for
    Lead(LeadArguments),
    /// Generate load as one of the agents of a lead
    Agent(AgentArguments),
    /// Pass on what a lead on this host says, on standard input and output: for `--lead`
    Relay {
        /// Name of the lead
        #[arg(long, default_value = LEAD, value_name = "NAME")]
        name: String,
    },
    /// Make the keys of one fleet: a certificate for the lead, one for its agents, and the
    /// authority that has signed them
    Keys {
        /// Folder for them, which is made if need be
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// Show what a lead does: its agents, and how far its run is
    Status(LeadCommand),
    /// Follow the run of a lead, also after the command that asked for it has gone, and print its
    /// result
    Attach(FetchArguments),
    /// Print or record the result of a run that is over
    Fetch(FetchArguments),
    /// End the run of a lead, which then has a result
    Stop(LeadCommand),
    /// End a lead and its agents; in Kubernetes, remove all that is left of them
    End(LeadCommand),
    /// List the fleets in a namespace of Kubernetes
    List {
        /// The namespace [default: that of kubectl]
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
    },
    /// Print what Kubernetes needs for a run, as YAML: `kubectl apply` of it is enough
    Manifest(Box<FleetRunArguments>),
}

/// Name of a lead unless told.
const LEAD: &str = "lead";

/// Flags of `throng fleet lead`.
#[derive(Debug, Args)]
pub(crate) struct LeadArguments {
    /// Where agents dial; port 0 is a free one, which is printed
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) listen: SocketAddr,
    /// Agents of the fleet
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub(crate) agents: u32,
    /// Run with as few as these, if no more are there in time [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub(crate) min_agents: Option<u32>,
    /// How long agents may take to be there, from when a run is asked for
    #[arg(long, default_value = "5m", value_name = "TIME", value_parser = duration)]
    pub(crate) agents_within: Duration,
    /// Folder with ca.pem, lead.pem and lead.key, as `throng fleet keys` makes them
    #[arg(long, value_name = "FOLDER")]
    pub(crate) keys: PathBuf,
    /// Name by which commands on this host reach the lead
    #[arg(long, default_value = LEAD, value_name = "NAME")]
    pub(crate) name: String,
    /// End after having had nothing to do for so long; results are gone then
    #[arg(long, default_value = "1h", value_name = "TIME", value_parser = duration)]
    pub(crate) keep: Duration,
}

/// Flags of `throng fleet agent`.
#[derive(Debug, Args)]
pub(crate) struct AgentArguments {
    /// Where the lead listens
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) connect: String,
    /// Which agent this is, from 0
    // In pods of an Indexed Job, Kubernetes says it.
    #[arg(long, env = "JOB_COMPLETION_INDEX", value_name = "N")]
    pub(crate) index: u32,
    /// Folder with ca.pem, agent.pem and agent.key, as `throng fleet keys` makes them
    #[arg(long, value_name = "FOLDER")]
    pub(crate) keys: PathBuf,
    /// How long to dial a lead that is not there yet
    #[arg(long, default_value = "5m", value_name = "TIME", value_parser = duration)]
    pub(crate) patience: Duration,
}

/// Flags of `throng fleet run`.
#[derive(Debug, Args)]
pub(crate) struct FleetRunArguments {
    /// Begin the run and leave it: `throng fleet attach` follows it
    #[arg(long)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) command: RunCommand,
}

/// Which lead is meant.
#[derive(Debug, Args)]
pub(crate) struct LeadCommand {
    /// A fleet in Kubernetes, by its name
    #[arg(value_name = "FLEET", required_unless_present = "lead")]
    pub(crate) fleet: Option<String>,
    /// Its namespace [default: that of kubectl]
    #[arg(long, value_name = "NAME", requires = "fleet")]
    pub(crate) namespace: Option<String>,
    /// Command that reaches the lead, such as 'ssh gateway throng fleet relay'
    #[arg(long, value_name = "COMMAND", conflicts_with = "fleet")]
    pub(crate) lead: Option<String>,
}

/// Flags of `throng fleet attach` and `throng fleet fetch`.
#[derive(Debug, Args)]
pub(crate) struct FetchArguments {
    #[command(flatten)]
    pub(crate) lead: LeadCommand,
    /// Write the record to this file (JSON)
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Print no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
