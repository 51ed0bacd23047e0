//! A lead and its agents in Kubernetes: what is made there, and how it is asked.

mod backends;
mod calls;
mod cluster;
pub(crate) mod kubectl;
mod manifest;
mod pods;
mod refusals;
mod yaml;

pub use backends::Backend;
pub use cluster::{Cluster, ClusterError, LOG_END_LINES, LOOK_EVERY, Marked, run_of};
pub use manifest::{FleetInputs, FleetPods, objects};
pub use pods::{Pod, PodState};
pub use yaml::to_yaml;
