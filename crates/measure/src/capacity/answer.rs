//! What a search has found, and what was the limit.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::search::Search;
use super::{CapacityPlan, EndedBy, Found, Trial, TrialOutcome};
use crate::notation::latency;
use crate::statistics::Bootstrap;
use crate::verdict::Limit;

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The highest value that was sustained; none if none was.
    pub value: Option<f64>,
    /// The target may sustain more: something else ended the search.
    pub is_lower_bound: bool,
    /// The limit is probably not below; none if nothing passed.
    pub low: Option<f64>,
    /// The limit is probably not above; none if nothing failed, or the generator did.
    pub high: Option<f64>,
    /// Coverage of `low` to `high`: they are ends of bootstrap intervals of the median of what
    /// passed and of what failed. None if there was one round or none.
    pub confidence: Option<f64>,
    /// What kept the value from being higher.
    pub limit: Limit,
    /// How that is known.
    pub evidence: Vec<String>,
    /// What to do next, one short sentence each.
    pub advice: Vec<String>,
}

impl Answer {
    /// What `found` amounts to.
    pub fn of(plan: &CapacityPlan, found: &Found<'_>) -> Self {
        let mut answer = match found.search.rounds().is_empty() {
            true => so_far(found),
            false => of_rounds(found.search),
        };
        // The trial just above what was sustained says why it is not more.
        let above = |trial: &&Trial| {
            trial.outcome != TrialOutcome::Passed
                && answer.value.is_none_or(|value| trial.value > value)
        };
        let failed = found.trials.iter().filter(above);
        let nearest = failed.min_by(|a, b| a.value.total_cmp(&b.value));
        match nearest {
            Some(trial) => answer.blame(trial, plan),
            None => answer.without_failure(plan, found.ended_by),
        }
        answer
    }

    fn blame(&mut self, trial: &Trial, plan: &CapacityPlan) {
        let at = plan.search.sought.text(trial.value);
        self.evidence = vec![format!("at {at}: {}", trial.breaches.join("; "))];
        let is_told = matches!(
            trial.limit,
            Limit::Generator | Limit::Network | Limit::Server
        );
        self.limit = match trial.limit {
            told if is_told => told,
            // Everything was answered and sent in time, only not as soon as asked for.
            _ => Limit::Server,
        };
        if is_told {
            self.evidence.push(trial.evidence.clone());
        }
        if self.limit != Limit::Server {
            self.advice.clone_from(&trial.advice);
        }
        if self.limit == Limit::Generator {
            self.is_lower_bound = true;
            self.high = None;
            if let Some(late) = trial.send_lateness_p99_ns {
                let late = latency(late as f64);
                let words = format!("queries left up to {late} late (p99)");
                if !self.evidence.iter().any(|line| line.contains(&words)) {
                    self.evidence.push(words);
                }
            }
        }
    }

    fn without_failure(&mut self, plan: &CapacityPlan, ended_by: EndedBy) {
        self.is_lower_bound = self.value.is_some();
        let max = plan.search.sought.text(plan.search.max);
        let (limit, evidence, advice) = match ended_by {
            EndedBy::RangeEnd => (
                Limit::Rate,
                format!("{max} is the most that was to be tried, and it passed"),
                "raise --max",
            ),
            EndedBy::Time => (
                Limit::Unknown,
                "the time was over before anything failed".into(),
                "give it more time: --max-duration",
            ),
            EndedBy::Interrupted => (
                Limit::Unknown,
                "interrupted before anything failed".into(),
                "let it run to its end",
            ),
            _ => (
                Limit::Unknown,
                "nothing failed that could be tried".into(),
                "see the notes",
            ),
        };
        self.limit = limit;
        self.evidence = vec![evidence];
        self.advice = vec![advice.into()];
    }
}

fn blank() -> Answer {
    Answer {
        value: None,
        is_lower_bound: false,
        low: None,
        high: None,
        confidence: None,
        limit: Limit::Unknown,
        evidence: Vec::new(),
        advice: Vec::new(),
    }
}

/// Before the first round is done there is what has passed and what has failed.
fn so_far(found: &Found<'_>) -> Answer {
    let (low, high) = found.search.so_far();
    Answer {
        value: low,
        low,
        high,
        ..blank()
    }
}

fn of_rounds(search: &Search) -> Answer {
    let rounds = search.rounds();
    let passed: Vec<f64> = rounds.iter().map(|round| round.passed).collect();
    let failed: Vec<f64> = rounds.iter().map(|round| round.failed).collect();
    let (low, _) = interval(&passed);
    let (_, high) = interval(&failed);
    Answer {
        value: Some(search.median_passed()),
        low: Some(low),
        high: Some(high),
        confidence: (rounds.len() > 1).then_some(CONFIDENCE),
        ..blank()
    }
}

/// How likely the interval holds the limit.
const CONFIDENCE: f64 = 0.95;

/// Seeds the bootstrap: the same rounds have the same interval.
const SEED: u64 = 0x6361_7061_6369_7479; // "capacity"

/// Where the median lies, by bootstrap; of a single value that value.
fn interval(values: &[f64]) -> (f64, f64) {
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let bootstrap = Bootstrap {
        level: CONFIDENCE,
        ..Bootstrap::default()
    };
    match bootstrap.median(values, &mut generator) {
        Some(interval) => (interval.low, interval.high),
        None => {
            let only = values.first().copied().unwrap_or(0.0);
            (only, only)
        }
    }
}
