//! What a record keeps of the condition that ended its run early.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The condition that ended a run, and what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Aborted {
    /// As it was given to `--abort-if`.
    pub condition: String,
    /// Its metric over the window.
    pub value: f64,
    /// Start of the window in which it held, in nanoseconds since the start of the measured run.
    pub from_ns: u64,
    /// End of the window.
    pub until_ns: u64,
}
