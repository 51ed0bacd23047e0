//! What flags say about the result of a run.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::compare::{AbArguments, ConditionArguments};
use super::experiment::ExperimentRun;
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
    #[serde(default)]
    pub(crate) views: Views,
    #[serde(default)]
    pub(crate) details: bool,
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
            views: flags.views(),
            details: flags.details,
            quiet: flags.quiet,
            conditions: flags.conditions.clone(),
        }
    }
}

/// What shows a command while it goes on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Views {
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) grafana: Option<String>,
    pub(crate) tui: bool,
    pub(crate) web: Option<SocketAddr>,
}

impl RunArguments {
    pub(crate) fn views(&self) -> Views {
        Views {
            metrics: self.metrics,
            grafana: self.grafana.clone(),
            tui: self.tui,
            web: self.web,
        }
    }
}

impl AbArguments {
    pub(crate) fn views(&self) -> Views {
        Views {
            metrics: self.serve_metrics,
            grafana: self.grafana.clone(),
            tui: self.tui,
            web: self.web,
        }
    }
}

impl ExperimentRun {
    pub(crate) fn views(&self) -> Views {
        Views {
            metrics: self.metrics,
            grafana: self.grafana.clone(),
            tui: self.tui,
            web: self.web,
        }
    }
}
