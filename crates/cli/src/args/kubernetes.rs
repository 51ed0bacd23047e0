//! Flags of a run whose load is generated in Kubernetes.

use clap::Args;
use settings::Kubernetes;

use crate::failure::Failure;

/// Agents unless told.
const AGENTS: u32 = 3;

/// A fleet in Kubernetes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Kubernetes")]
pub(crate) struct KubernetesArguments {
    /// Generate the load by pods of the cluster that kubectl knows, and remove them afterwards
    #[arg(long)]
    pub(crate) kubernetes: bool,
    /// Agents, each a pod [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub(crate) agents: Option<u32>,
    /// Begin with as few as these if no more come [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub(crate) min_agents: Option<u32>,
    /// Namespace for the pods [default: that of kubectl]
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Image with this program, as nodes pull it; `deploy/image` makes one
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// CPUs that each agent has, neither more nor less [default: 1]
    #[arg(long, value_name = "CPUS", value_parser = milli)]
    pub(crate) agent_cpus: Option<u32>,
    /// Memory that each agent has [default: 512Mi]
    #[arg(long, value_name = "QUANTITY")]
    pub(crate) agent_memory: Option<String>,
    /// Only nodes with this label; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) node_selector: Vec<String>,
    /// Nodes with this taint too; may be repeated
    #[arg(long, value_name = "KEY[=VALUE][:EFFECT]")]
    pub(crate) toleration: Vec<String>,
    /// No node that has a pod with this label, such as the target's; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) away_from: Vec<String>,
    /// Give agents the network of their node, not one of their pod
    #[arg(long)]
    pub(crate) host_network: bool,
}

/// Thousandths of a CPU.
fn milli(text: &str) -> Result<u32, String> {
    let cpus: f64 = text.parse().map_err(|_| "it is no number".to_owned())?;
    match (0.001..=1024.0).contains(&cpus) {
        true => Ok((cpus * 1_000.0).round() as u32),
        false => Err("an agent has 0.001 to 1024 CPUs".to_owned()),
    }
}

impl KubernetesArguments {
    /// The fleet that they ask for, if any.
    ///
    /// # Errors
    /// There is no image.
    pub(crate) fn asked(&self) -> Result<Option<Kubernetes>, Failure> {
        if !self.kubernetes {
            return Ok(None);
        }
        let image = self.image.clone().ok_or_else(|| {
            Failure::usage(
                "--kubernetes needs --image",
                "`deploy/image` makes an image with this program; push it to where nodes pull it",
            )
        })?;
        Ok(Some(Kubernetes {
            agents: self.agents.unwrap_or(AGENTS),
            agents_min: self.min_agents,
            namespace: self.namespace.clone(),
            image,
            cpus_milli: self.agent_cpus.unwrap_or(1_000),
            memory: self
                .agent_memory
                .clone()
                .unwrap_or_else(|| "512Mi".to_owned()),
            node_selector: self.node_selector.clone(),
            tolerations: self.toleration.clone(),
            away_from: self.away_from.clone(),
            host_network: self.host_network,
        }))
    }
}
