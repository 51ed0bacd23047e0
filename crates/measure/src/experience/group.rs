//! Clients that are alike, and what was measured of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ClientExperience;
use crate::histogram::Histogram;
use crate::interval::Interval;
use crate::scenario::ScenarioRecord;
use crate::script::ScriptRecord;
use crate::timeline::Timeline;

/// One group of clients in a run. A plain run has a single one, named [`GroupRecord::PLAIN`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupRecord {
    /// Its name; no two groups of a run have the same.
    pub name: String,
    /// Its clients.
    pub clients: u64,
    /// Figures of its clients; those of the whole run, such as its length, are the same in all
    /// groups.
    pub scenario: ScenarioRecord,
    /// Every measured query of the group and how it ended; the totals of all groups add up
    /// to that of the run.
    pub total: Interval,
    /// Its queries over time; none if it is the only group, or in a record of a version that did
    /// not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// How its clients fared; none if no statistics of single clients were kept.
    pub experience: Option<ClientExperience>,
    /// The record of its scripts; none without a script.
    pub script: Option<ScriptRecord>,
}

impl GroupRecord {
    /// What ended all of its clients, if an error in their script did.
    pub fn script_failure(&self) -> Option<&str> {
        let failures = &self.script.as_ref()?.failures;
        if failures.total == 0 || failures.total < self.clients {
            return None;
        }
        let first = failures.messages.first();
        Some(first.map_or("it does not say why", |failure| failure.message.as_str()))
    }

    /// Name of the one group of a plain run.
    pub const PLAIN: &str = "clients";

    /// Adds the same group of another worker or generator, whose clients come after these.
    pub fn merge(&mut self, other: &GroupRecord) {
        self.clients += other.clients;
        self.total.merge(&other.total);
        Timeline::join(&mut self.timeline, other.timeline.as_ref());
        self.scenario.merge(other.scenario.clone());
        match (&mut self.experience, &other.experience) {
            (Some(own), Some(other)) => own.merge(other),
            // Statistics of a part of the clients would pass for those of all.
            (own, _) => *own = None,
        }
        match (&mut self.script, &other.script) {
            (Some(own), Some(other)) => own.merge(other),
            (own, other) => *own = own.take().or_else(|| other.clone()),
        }
    }

    /// Latency of the queries that were not the first after idleness of their client; none if that
    /// is not known.
    pub fn warm_latency(&self) -> Option<Histogram> {
        let experience = self.experience.as_ref()?;
        let latency = &self.total.distributions.latency;
        Some(latency.without(&experience.first_after_idle))
    }

    /// Checks that the group agrees with itself.
    ///
    /// # Errors
    /// Names the group and what does not add up, with both numbers.
    pub fn check(&self) -> Result<(), String> {
        let in_group = |reason: String| format!("group {}: {reason}", self.name);
        if let Some(timeline) = &self.timeline {
            timeline.check(&self.total).map_err(in_group)?;
        }
        let Some(experience) = &self.experience else {
            return Ok(());
        };
        experience.check().map_err(in_group)?;
        let responses = self.total.counts.responses;
        let of_clients = experience.responses.sum_ns();
        if of_clients != u128::from(responses) {
            return Err(in_group(format!(
                "{responses} responses, but {of_clients} to its clients"
            )));
        }
        if experience.clients() != self.clients {
            return Err(in_group(format!(
                "{} clients, but figures of {}",
                self.clients,
                experience.clients()
            )));
        }
        let after_idle = experience.first_after_idle.count();
        if after_idle > responses {
            return Err(in_group(format!(
                "{responses} responses, but {after_idle} to queries after idleness"
            )));
        }
        Ok(())
    }
}

/// Adds groups of another worker or generator by their names; a new name is a new group.
pub fn merge_groups(groups: &mut Vec<GroupRecord>, others: Vec<GroupRecord>) {
    for other in others {
        match groups.iter_mut().find(|group| group.name == other.name) {
            Some(group) => group.merge(&other),
            None => groups.push(other),
        }
    }
}
