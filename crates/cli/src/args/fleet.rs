//! Flags of `throng fleet`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::values::{count_within, duration};

/// Load from many hosts.
#[derive(Debug, Args)]
pub(crate) struct FleetArguments {
    #[command(subcommand)]
    pub(crate) command: FleetCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Run a command of throng with agents in Kubernetes, and fetch its result
    Run(Box<FleetRunArguments>),
    /// Print what `fleet run` makes in Kubernetes, as YAML
    Manifest(Box<PodsArguments>),
    /// Follow a run in Kubernetes to its end, and fetch its result
    Attach(AttachArguments),
    /// List the runs in Kubernetes, with their pods
    Status(StatusArguments),
    /// Fetch the result of a run in Kubernetes that is over
    Fetch(AttachArguments),
    /// End a run in Kubernetes without its result, and remove all its objects
    Stop(OfRunArguments),
    /// Make keys for a lead and its agents, in a new folder
    Keys(KeysArguments),
    /// Generate a share of the load of a `throng run --listen`, which this agent dials
    Agent(FleetAgentArguments),
    /// Lead agents in a pod: run a command, and keep its result until it is fetched
    #[command(hide = true)]
    Lead(LeadArguments),
    /// Wait in a pod for agents that are started there, and end when there are no more
    #[command(hide = true)]
    Wait(WaitArguments),
    /// Print what the lead in this pod has for its client
    #[command(hide = true)]
    Result,
    /// Take an input of the lead in this pod from standard input
    #[command(hide = true)]
    Take(TakeArguments),
    /// Print a part of a file of the result
    #[command(hide = true)]
    Part(PartArguments),
    /// Let the lead in this pod end: its result is fetched
    #[command(hide = true)]
    Confirm,
    /// Ask the lead in this pod to end its command early
    #[command(hide = true)]
    Interrupt,
}

/// Flags of `throng fleet keys`.
#[derive(Debug, Args)]
#[command(
    after_help = "The lead needs lead.pem, lead.key and ca.pem; agents need agent.pem, agent.key \
    and ca.pem. Anyone who has these files can take part in a run: make keys for each fleet, \
    and delete them afterwards. The key of the CA is not kept."
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
    taken; 96 the run had begun without it; 97 the connection with the lead ended, or the lead of \
    its run was silent for 30 s; 98 it heard of the start over a second late; 130 or 143 SIGINT or \
    SIGTERM: it has reported what it had done."
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

/// Where and how lead and agents run in Kubernetes.
#[derive(Debug, Args)]
pub(crate) struct PodsArguments {
    /// Name of the run, with which those of its objects begin [default: `throng-` and 16 digits]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Namespace [default: that of the context]
    #[arg(long, short = 'n', value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Image of lead and agents, with this version of throng
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: String,
    /// Number of agents, each a pod
    #[arg(long, value_name = "N", value_parser = count_within::<u32>(1..=1_000))]
    pub(crate) agents: u32,
    /// Agents with which the run begins if not all --agents have reached their lead by the
    /// --barrier-timeout [default: all]
    #[arg(long, value_name = "N", value_parser = count_within::<u32>(1..=1_000))]
    pub(crate) min_agents: Option<u32>,
    /// How long the lead waits for its agents [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) barrier_timeout: Option<Duration>,
    /// CPUs of each pod, its request and its limit
    #[arg(long, default_value = "1", value_name = "QUANTITY")]
    pub(crate) cpus: String,
    /// Memory of each pod, its request and its limit
    #[arg(long, default_value = "512Mi", value_name = "QUANTITY")]
    pub(crate) memory: String,
    /// Label that nodes must have
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) node_selector: Vec<String>,
    /// Taint that the pods tolerate, such as `dedicated=dns:NoSchedule`
    #[arg(long, value_name = "KEY[=VALUE][:EFFECT]")]
    pub(crate) toleration: Vec<String>,
    /// Agents use the network of their nodes: fewer hops, and no isolation
    #[arg(long)]
    pub(crate) host_network: bool,
    /// How long the lead keeps its result, and Kubernetes the objects after that
    #[arg(long, default_value = "1h", value_name = "TIME", value_parser = duration)]
    pub(crate) keep: Duration,
    /// Command of throng with its flags, such as `run --server 192.0.2.1 --names names.txt`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// How Kubernetes is asked.
#[derive(Clone, Debug, Args)]
pub(crate) struct KubectlArguments {
    /// Command that asks Kubernetes, such as `oc` or `kubectl --context staging`
    #[arg(long, default_value = "kubectl", value_name = "COMMAND")]
    pub(crate) kubectl: String,
}

/// Flags of `throng fleet run`.
#[derive(Debug, Args)]
#[command(
    after_help = "The command's exit code is that of `throng COMMAND`. Ctrl-C ends the run early, \
    with its result; a second one removes everything. If this command ends before the run does, \
    `throng fleet attach NAME` goes on."
)]
pub(crate) struct FleetRunArguments {
    #[command(flatten)]
    pub(crate) pods: PodsArguments,
    #[command(flatten)]
    pub(crate) kubectl: KubectlArguments,
    #[command(flatten)]
    pub(crate) fetch: FetchArguments,
}

/// Where a result goes.
#[derive(Clone, Debug, Args)]
pub(crate) struct FetchArguments {
    /// Folder for the files that the command writes
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    pub(crate) output: PathBuf,
}

/// A run that goes on.
#[derive(Debug, Args)]
pub(crate) struct OfRunArguments {
    /// Name of the run
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Namespace [default: that of the context]
    #[arg(long, short = 'n', value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    #[command(flatten)]
    pub(crate) kubectl: KubectlArguments,
}

/// Flags of `throng fleet attach` and `throng fleet fetch`.
#[derive(Debug, Args)]
pub(crate) struct AttachArguments {
    #[command(flatten)]
    pub(crate) run: OfRunArguments,
    #[command(flatten)]
    pub(crate) fetch: FetchArguments,
}

/// Flags of `throng fleet status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Namespace [default: that of the context]
    #[arg(long, short = 'n', value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    #[command(flatten)]
    pub(crate) kubectl: KubectlArguments,
}

/// Flags of `throng fleet lead`.
#[derive(Debug, Args)]
pub(crate) struct LeadArguments {
    /// How long the result is kept for somebody to fetch it
    #[arg(long, default_value = "1h", value_name = "TIME", value_parser = duration)]
    pub(crate) keep: Duration,
    /// Folder with what the command reads, as a manifest has it
    #[arg(long, value_name = "FOLDER")]
    pub(crate) inputs: Option<PathBuf>,
    /// Command of throng with its flags
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Flags of `throng fleet wait`.
#[derive(Debug, Args)]
pub(crate) struct WaitArguments {
    /// How long no agent may have run here
    #[arg(long, default_value = "1h", value_name = "TIME", value_parser = duration)]
    pub(crate) idle: Duration,
}

/// Flags of `throng fleet part`.
#[derive(Debug, Args)]
pub(crate) struct PartArguments {
    /// Name of a file
    pub(crate) name: String,
    /// Byte from which it is wanted
    #[arg(long, default_value_t = 0)]
    pub(crate) from: u64,
}

/// Flags of `throng fleet take`.
#[derive(Debug, Args)]
pub(crate) struct TakeArguments {
    /// SHA-256 of the input, hexadecimal
    pub(crate) hash: String,
}
