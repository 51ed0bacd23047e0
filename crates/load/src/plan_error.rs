//! What is wrong with a setting of a plan.

use std::fmt;

/// A setting that cannot be used, or that contradicts another.
///
/// Shown as `clients: at least one is needed, not 0`; settings have the names of their options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// The setting, such as `clients` or `queries-per-connection`.
    pub setting: &'static str,
    /// What is wrong with it.
    pub what: String,
    /// What to do about it.
    pub hint: String,
}

impl PlanError {
    pub(crate) fn new(
        setting: &'static str,
        what: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        PlanError {
            setting,
            what: what.into(),
            hint: hint.into(),
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.setting, self.what)
    }
}

impl std::error::Error for PlanError {}
