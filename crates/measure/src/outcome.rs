//! The result of a condition, as documents keep it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limit::Limit;

/// The result of a condition as documents keep it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConditionRecord {
    /// The condition with its flag, as on a command line.
    pub condition: String,
    /// Whether it is as it must be.
    pub outcome: Outcome,
    /// What was found, in words.
    pub found: String,
}

/// Whether a condition is as it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is.
    Passed,
    /// It is not.
    Failed,
    /// The figures do not tell.
    Undecided,
}

impl ConditionRecord {
    /// One line: what came of it, the condition, and what was found.
    pub fn line(&self) -> String {
        let outcome = match self.outcome {
            Outcome::Passed => "passed",
            Outcome::Failed => "FAILED",
            Outcome::Undecided => "undecided",
        };
        format!("{outcome}: {}: {}", self.condition, self.found)
    }

    /// Whether a search or a ramp found what it was made for, of the limit that it met.
    pub(crate) fn of_limit(
        condition: &str,
        is_decided: bool,
        (limit, evidence): (Limit, &[String]),
    ) -> Self {
        let found = format!("the limit is {}: {}", limit.name(), evidence.join("; "));
        ConditionRecord::of_result(condition, is_decided, found)
    }

    /// Whether a result says what it was measured for.
    pub(crate) fn of_result(condition: impl Into<String>, is_decided: bool, found: String) -> Self {
        ConditionRecord {
            condition: condition.into(),
            outcome: match is_decided {
                true => Outcome::Passed,
                false => Outcome::Undecided,
            },
            found,
        }
    }
}
