//! What flags say about the result of a run.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::compare::ConditionArguments;
use super::paths;
use super::run::RunArguments;
use super::values::Format;

/// Where the result of a run goes, and what is said of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Output {
    #[serde(with = "paths::option")]
    pub(crate) record: Option<PathBuf>,
    pub(crate) force: bool,
    pub(crate) format: Format,
    pub(crate) metrics: Option<SocketAddr>,
    #[serde(default)]
    pub(crate) grafana: Option<String>,
    #[serde(default)]
    pub(crate) details: bool,
    #[serde(default)]
    pub(crate) tui: bool,
    #[serde(default)]
    pub(crate) web: Option<SocketAddr>,
    pub(crate) quiet: bool,
    pub(crate) conditions: ConditionArguments,
}

impl Output {
    /// As the flags of a run say.
    pub(crate) fn of(flags: &RunArguments) -> Self {
        Output {
            record: flags.record.clone(),
            force: flags.force,
            format: flags.format,
            metrics: flags.metrics,
            grafana: flags.grafana.clone(),
            details: flags.details,
            tui: flags.tui,
            web: flags.web,
            quiet: flags.quiet,
            conditions: flags.conditions.clone(),
        }
    }
}
