//! Limits of a run, and the verdict. The judgement is in `verdict`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What limited a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// The limit.
    pub limit: Limit,
    /// Why, one sentence each, the decisive one first.
    pub evidence: Vec<String>,
    /// What to do next, one short sentence each.
    pub advice: Vec<String>,
}

/// What limited the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The target.
    Server,
    /// A rule or a limit on the rate, of the target or of a device before it.
    Policy,
    /// This tool or the host it ran on.
    Generator,
    /// Drops on the path, as far as this host can see them.
    Network,
    /// The number of queries allowed in flight.
    Outstanding,
    /// The requested rate.
    Rate,
    /// The figures allow no conclusion.
    #[default]
    Unknown,
}

impl Limit {
    /// The name as in the record.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Server => "server",
            Limit::Policy => "policy",
            Limit::Generator => "generator",
            Limit::Network => "network",
            Limit::Outstanding => "outstanding",
            Limit::Rate => "rate",
            Limit::Unknown => "unknown",
        }
    }

    /// True if the target, or what decides before it which queries it gets, was the limit.
    pub fn is_of_target(self) -> bool {
        matches!(self, Limit::Server | Limit::Policy)
    }

    /// True if the figures of a run that it limited may say nothing about the target.
    pub fn is_doubtful(self) -> bool {
        matches!(self, Limit::Generator | Limit::Unknown)
    }

    /// The limit as the beginning of a result, without full stop.
    pub fn headline(self) -> &'static str {
        match self {
            Limit::Server => "Limit: server",
            Limit::Policy => "Limit: policy, not capacity",
            Limit::Generator => "Limit: generator, not the server",
            Limit::Network => "Limit: network",
            Limit::Outstanding => "Limit: outstanding, not the server",
            Limit::Rate => "Limit: rate, the server kept up",
            Limit::Unknown => "Undecided: limit unknown",
        }
    }

    /// What the limit means for the figures of a run, as a sentence without full stop.
    pub fn meaning(self) -> &'static str {
        match self {
            Limit::Server => "The figures are those of the target",
            Limit::Policy => {
                "A rule or a limit on the rate set the figures; the target may be able to do more"
            }
            Limit::Generator => "The figures are those of this tool or its host, not of the target",
            Limit::Network => "Queries or responses were dropped on the path",
            Limit::Outstanding => {
                "No more queries were allowed in flight; the target may be able to do more"
            }
            Limit::Rate => "The target kept up with the load asked for; its own limit is higher",
            Limit::Unknown => {
                "The record does not show what set the rate; it need not be a limit of the target"
            }
        }
    }
}
