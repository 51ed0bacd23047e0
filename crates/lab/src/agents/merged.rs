//! One record of what all agents measured.

use std::collections::BTreeMap;
use std::time::Duration;

use agents::{Outcome, Place};
use measure::merge::{merge_local_agents, merge_remote_agents};
use measure::{EndedBy, RunRecord};

use crate::run::{RunRequest, record};

/// When the measured run began, since 1970, and what the lead's kernel has counted since.
pub(super) type Counted = (Duration, BTreeMap<String, u64>);

/// The record of a run that agents at these places have made; it began at that time since 1970.
/// `kernel` is what this host's kernel counted, for all agents that are on it. None without
/// records.
pub(super) fn merged(
    groups: &[RunRequest],
    places: &[Place],
    outcome: Outcome,
    (began, kernel): Counted,
) -> Option<RunRecord> {
    let mut records = outcome.records;
    for record in records.iter_mut().filter(|it| it.agents.len() == 1) {
        record.workers.iter_mut().for_each(|it| it.agent = Some(0));
    }
    if records.len() > 1 {
        for (record, series) in records.iter_mut().zip(outcome.series) {
            for agent in &mut record.agents {
                agent.series = Some(series.clone());
            }
        }
    }
    let mut merged = match places.iter().all(|it| *it == Place::Here) {
        true => {
            let mut merged = merge_local_agents(records)?;
            merged.network.kernel = kernel;
            merged.network.kernel_of_hosts.clear();
            merged
        }
        false => {
            let agents = places.iter().zip(&outcome.clocks);
            for (record, (place, clock)) in records.iter_mut().zip(agents) {
                let Place::Host(name) = place else { continue };
                for agent in &mut record.agents {
                    // The offset between the wall clocks is unknown, so all have the same start.
                    agent.began_us = u64::try_from(began.as_micros()).unwrap_or(u64::MAX);
                    agent.name = Some(name.clone());
                    agent.clock = *clock;
                }
            }
            merge_remote_agents(records)?
        }
    };
    let mut intervals = outcome.intervals;
    if outcome.degraded.is_some() {
        merged.ended_by = EndedBy::AgentLost;
        intervals.end_accounts();
    }
    record::finish(&mut merged, groups, intervals);
    if let Some(degraded) = outcome.degraded {
        let warnings = degraded.warnings(merged.measured_ns, merged.agent_count);
        merged.warnings.splice(0..0, warnings);
        merged.degraded = Some(degraded);
    }
    Some(merged)
}
