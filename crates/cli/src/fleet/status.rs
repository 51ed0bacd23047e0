//! What a lead and a command that asks it tell each other: how things are, and what is to be run.

use lab::parts::Files;
use serde::{Deserialize, Serialize};

use crate::part::{Role, Setup, Work};
use crate::run::group::Group;

/// What the lead is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// Nothing was asked of it yet.
    Idle,
    /// A run was asked for, and agents are missing.
    Gathering,
    /// A run is going on.
    Running,
    /// The last run is over.
    Over,
}

/// How things are, for commands that ask.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) phase: Phase,
    /// Runs that were begun.
    pub(crate) runs: u64,
    /// Intervals of the run that are over.
    pub(crate) intervals: u64,
    /// Agents by number; none of one that is missing.
    pub(crate) agents: Vec<Option<String>>,
}

/// The groups of a setup, as they are told to a lead.
pub(super) fn setup_of(groups: Vec<Group>) -> (Setup, Files) {
    let role = Role::Agent;
    Setup::new(Work::Run { groups, role }, None)
}
