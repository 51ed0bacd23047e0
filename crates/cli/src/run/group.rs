//! A group of clients: everything a run is asked of it.

use std::net::SocketAddr;
use std::sync::Arc;

use lab::groups::Rounds;
use lab::run::RunRequest;
use serde::{Deserialize, Serialize};
use settings::Run;

use super::captured::Captured;
use super::permission::MANY;
use crate::args::{Output, RunArguments};
use crate::failure::Failure;

/// Clients that are alike, and all that is asked of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Group {
    /// Its name in the record; parts of a group have the same.
    pub(crate) name: String,
    /// What it is asked for.
    pub(crate) run: Run,
    /// Where its servers are, with their names, once the lead of the run has looked that up.
    pub(crate) addresses: Option<Vec<(SocketAddr, String)>>,
    /// Where the result goes; the first group says it.
    pub(crate) output: Output,
    /// What is replayed, once the capture was read.
    #[serde(skip)]
    pub(crate) captured: Option<Arc<Captured>>,
    /// Its part of the rounds of its list.
    pub(crate) rounds: Rounds,
    /// Where the scenario says so; none for a run without scenario.
    pub(crate) place: Option<String>,
    /// How many runs of that kind the command makes, at most.
    pub(crate) runs: u64,
}

impl Group {
    /// The only group of a run without scenario.
    ///
    /// # Errors
    /// A flag that cannot be read, or that has no effect on this run.
    pub(crate) fn plain(flags: &RunArguments) -> Result<Self, Failure> {
        Ok(Group::of(flags, flags.settings()?))
    }

    /// The same where a command has changed what the flags ask for.
    pub(crate) fn of(flags: &RunArguments, run: Run) -> Self {
        Group {
            name: measure::experience::GroupRecord::PLAIN.to_owned(),
            run,
            addresses: None,
            output: Output::of(flags),
            captured: None,
            rounds: Rounds::of_all(),
            place: None,
            runs: MANY,
        }
    }

    /// The same where the command makes that number of runs.
    pub(crate) fn of_runs(self, runs: u64) -> Self {
        Group { runs, ..self }
    }

    /// Says of a failure which group it is about.
    pub(crate) fn blame(&self, failure: Failure) -> Failure {
        match &self.place {
            Some(place) => failure.of(place),
            None => failure,
        }
    }
}

/// Divides the queries of `loops` among the groups that ask the same list together.
///
/// # Errors
/// There are fewer than there are groups and targets.
pub(crate) fn share_rounds(groups: &[Group], requests: &mut [RunRequest]) -> Result<(), Failure> {
    let rounds = groups.iter();
    let rounds = rounds.map(|group| group.run.limits.loops.map(|_| &group.rounds));
    let rounds: Vec<_> = rounds.collect();
    lab::groups::share_rounds(&rounds, requests).map_err(|few| {
        let hint = "raise loops, or give each group its own";
        groups[few.first].blame(Failure::usage(few.to_string(), hint))
    })
}
