//! What the record says of parts on other hosts.

use std::collections::BTreeMap;
use std::time::Duration;

use measure::RunRecord;
use measure::merge::{merge_agents, merge_parts};
use measure::record::AgentClock;

use super::clocks::{Clocks, Offset};
use super::parent::Parts;

/// The parts of a run, as agents if they are on other hosts.
pub(super) struct Agents {
    /// When the measured run began, by the parent's wall clock.
    began: Duration,
    /// None of those on this host.
    each: Vec<Option<Agent>>,
}

/// An agent, by its name.
struct Agent {
    name: String,
    at_start: Option<Offset>,
    clock: Option<AgentClock>,
}

impl Agents {
    /// At the start: the parts begin to measure then, by the parent's wall clock.
    pub(super) fn at_start(parts: &Parts, clocks: &Clocks, began: Duration, now_ns: u64) -> Self {
        let one = |part: usize| {
            Some(Agent {
                name: parts.host(part)?.to_owned(),
                at_start: clocks.offset(part, now_ns),
                clock: None,
            })
        };
        Agents {
            began,
            each: (0..parts.count() as usize).map(one).collect(),
        }
    }

    /// What is known of their clocks by now.
    pub(super) fn look(&mut self, clocks: &Clocks, now_ns: u64) {
        for (part, agent) in self.each.iter_mut().enumerate() {
            let Some(agent) = agent else { continue };
            let offsets = agent.at_start.zip(clocks.offset(part, now_ns));
            agent.clock = offsets.map(|(start, end)| AgentClock {
                start_bound_ns: start.bound_ns,
                end_bound_ns: end.bound_ns,
                drift_ns: i64::try_from(end.offset_ns - start.offset_ns).unwrap_or(i64::MAX),
            });
        }
    }

    /// One record of what all parts measured. What this host's kernel counted is that of all parts
    /// that are on it.
    pub(super) fn merged(
        &self,
        mut records: Vec<RunRecord>,
        kernel: BTreeMap<String, u64>,
    ) -> Option<RunRecord> {
        if self.each.iter().all(Option::is_none) {
            let mut merged = merge_parts(records)?;
            merged.network.kernel = kernel;
            merged.network.kernel_of_hosts.clear();
            return Some(merged);
        }
        for (record, agent) in records.iter_mut().zip(&self.each) {
            for (of_record, agent) in record.agents.iter_mut().zip(agent) {
                // Nobody knows how far their wall clocks are apart.
                of_record.began_us = u64::try_from(self.began.as_micros()).unwrap_or(u64::MAX);
                of_record.name = Some(agent.name.clone());
                of_record.clock = agent.clock;
            }
            for worker in record.workers.iter_mut().filter(|_| agent.is_some()) {
                worker.agent = Some(0);
            }
        }
        merge_agents(records)
    }
}
