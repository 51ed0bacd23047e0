//! Conclusions from a complete record.

use crate::interval::Interval;
use crate::intervals;
use crate::limit::{Limit, Verdict};
use crate::record::RunRecord;
use crate::rules::{judge, rules_of_agents};
use crate::steady_state::SteadyState;
use crate::summary::Summary;

impl RunRecord {
    /// Adds up the intervals and draws the conclusions: stability over time, verdict and summary.
    /// To be called after any other part of the record has changed.
    pub fn conclude(&mut self) {
        intervals::note_open(&mut self.intervals);
        self.total = Interval::total(&self.intervals);
        self.steady_state = SteadyState::found(self);
        self.verdict = match self.merged_by_force.as_slice() {
            [] => judge(self),
            reasons => Verdict {
                limit: Limit::Unknown,
                evidence: (reasons.iter())
                    .map(|reason| format!("merged by force, its rates never existed: {reason}"))
                    .collect(),
                ..Verdict::default()
            },
        };
        let limits = rules_of_agents(self);
        for (agent, rule) in self.agents.iter_mut().zip(limits) {
            agent.limited_by = rule.map(str::to_owned);
        }
        self.summary = Some(Summary::of(self));
    }
}
