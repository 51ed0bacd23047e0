//! What a run by several agents does when it loses one of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Named;

/// What happens to a run of which a part is lost. The result is that of the last checkpoint of all
/// parts, if there is one; no other part takes over the load of the lost one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnAgentLoss {
    /// The others end too.
    #[default]
    End,
    /// The others go on.
    Continue,
    /// The others end, and there is no result.
    Fail,
}

impl Named for OnAgentLoss {
    const WHAT: &'static str = "way to go on";
    const ALL: &'static [Self] = &[OnAgentLoss::End, OnAgentLoss::Continue, OnAgentLoss::Fail];

    fn name(self) -> &'static str {
        match self {
            OnAgentLoss::End => "end",
            OnAgentLoss::Continue => "continue",
            OnAgentLoss::Fail => "fail",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            OnAgentLoss::End => "End the run, with the result of the last checkpoint of all",
            OnAgentLoss::Continue => {
                "Let the others go on; the result is the same, and theirs is reported separately"
            }
            OnAgentLoss::Fail => "End the run, without a result",
        }
    }
}
