//! Diagnoses what limits DNS load on a host or in a run, with the exact cure.
//!
//! [`of_host`] judges the readings of a host, [`of_run`] one run, [`of_runs`] several runs
//! together. Each [`Diagnosis`] has the observation, why it matters, and the cure; for runs, only
//! with evidence in the record. Nothing is read here: `throng doctor` passes in the readings, and
//! reports on runs use the same code.

use schemars::JsonSchema;
use serde::Serialize;

mod connections;
mod cure;
#[cfg(test)]
mod expect;
mod files;
mod host;
mod interface;
mod kernel;
mod processor;
mod reading;
mod several;
#[cfg(test)]
mod tests;

pub use crate::rules::connections::{CERTIFICATE_EXPIRED, CERTIFICATE_NOT_YET_VALID};
pub use crate::rules::of_run;
pub use cure::{Cure, Place};
pub use host::of_host;
pub(crate) use kernel::BUSY_POLL_US;
pub(crate) use processor::{STEAL_PROBLEM, STEAL_WARNING};
pub use reading::{Aim, HostReading, Interface};
pub use several::of_runs;

/// How bad something is; the later, the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing to be done; what is offered may be tried.
    Ok,
    /// It could not be read, or does not tell.
    Unknown,
    /// It may get in the way.
    Warning,
    /// It is in the way, or was.
    Problem,
}

impl State {
    /// The word that is printed, and that JSON has.
    pub fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Unknown => "unknown",
            State::Warning => "warning",
            State::Problem => "problem",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnosis {
    /// What was looked at, in a few words that do not change: `open files`.
    pub topic: String,
    /// How bad it is.
    pub state: State,
    /// What was seen, with its figures; no full stop.
    pub seen: String,
    /// Why that matters to DNS load; no full stop.
    pub matters: String,
    /// What to do, each by itself unless the words say otherwise.
    pub cures: Vec<Cure>,
}

impl Diagnosis {
    /// One without a cure.
    pub fn new(
        topic: impl Into<String>,
        state: State,
        seen: impl Into<String>,
        matters: impl Into<String>,
    ) -> Self {
        Diagnosis {
            topic: topic.into(),
            state,
            seen: seen.into(),
            matters: matters.into(),
            cures: Vec::new(),
        }
    }

    /// The same with one cure more.
    #[must_use]
    pub fn cure(mut self, cure: Cure) -> Self {
        self.cures.push(cure);
        self
    }

    /// The same with these cures more.
    #[must_use]
    pub fn cures(mut self, cures: impl IntoIterator<Item = Cure>) -> Self {
        self.cures.extend(cures);
        self
    }
}

/// The worst state of all; ok where there is none.
pub fn worst(diagnoses: &[Diagnosis]) -> State {
    let states = diagnoses.iter().map(|diagnosis| diagnosis.state);
    states.max().unwrap_or(State::Ok)
}
