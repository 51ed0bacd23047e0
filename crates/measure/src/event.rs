//! Operations on the target during a run, as recorded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that was done to the target. Instants are in nanoseconds since the start of the
/// measured run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// The operation, such as `reload`.
    pub name: String,
    /// When it began.
    pub began_ns: u64,
    /// When it was done.
    pub ended_ns: u64,
    /// For how long no process of the server was there to answer; none if one always was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_ns: Option<u64>,
    /// Why it could not be done; none if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Event {
    /// How long it took, in nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.began_ns)
    }

    /// Checks that it agrees with itself.
    ///
    /// # Errors
    /// It ended before it began.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.ended_ns < self.began_ns {
            true => Err(format!("the event `{}` ended before it began", self.name)),
            false => Ok(()),
        }
    }
}
