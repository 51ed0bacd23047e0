//! How queries of an open loop are spread over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Named;

/// How open-loop arrivals are spread over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Process {
    /// Equally spaced.
    #[default]
    Constant,
    /// Exponential gaps: a Poisson process, as many independent clients together make.
    Poisson,
}

impl Named for Process {
    const WHAT: &'static str = "arrival";
    const ALL: &'static [Self] = &[Process::Constant, Process::Poisson];

    fn name(self) -> &'static str {
        match self {
            Process::Constant => "constant",
            Process::Poisson => "poisson",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Process::Constant => "Equally spaced",
            Process::Poisson => "Exponential gaps, as many independent clients make",
        }
    }
}
