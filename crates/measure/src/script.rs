//! What the scripts of clients did, counted and observed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// Distinct messages of failures that are kept; the rest is counted.
pub const MESSAGES_MAX: usize = 8;

/// What a [`Histogram`] counts an observed value in: thousandths, so that its range of 1 to
/// 68 * 10^9 is 0.001 to 68 million.
pub const OBSERVED_PER_UNIT: f64 = 1e3;

/// The scripts of a group of clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptRecord {
    /// Clients whose function had returned when the run ended.
    pub finished: u64,
    /// Clients whose script failed: they sent no more queries.
    pub failures: Failures,
    /// Custom metrics of scripts.
    pub metrics: Metrics,
}

impl ScriptRecord {
    /// Adds that of another worker or generator, exactly.
    pub fn merge(&mut self, other: &ScriptRecord) {
        self.finished += other.finished;
        self.failures.merge(&other.failures);
        self.metrics.merge(&other.metrics);
    }
}

/// Failures of clients, counted, with the first distinct messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Failures {
    /// All of them.
    pub total: u64,
    /// The first eight distinct messages.
    pub messages: Vec<Failure>,
}

/// One message of a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// File, line and what was wrong.
    pub message: String,
    /// Clients that ended with it.
    pub clients: u64,
}

impl Failures {
    /// Counts that many clients that failed with the same message.
    pub fn add(&mut self, message: &str, clients: u64) {
        self.total += clients;
        let known = self.messages.iter().position(|it| it.message == message);
        match known {
            Some(index) => self.messages[index].clients += clients,
            None if self.messages.len() < MESSAGES_MAX => self.messages.push(Failure {
                message: message.to_owned(),
                clients,
            }),
            None => {}
        }
    }

    fn merge(&mut self, other: &Failures) {
        let total = self.total + other.total;
        for failure in &other.messages {
            self.add(&failure.message, failure.clients);
        }
        self.total = total;
    }
}

/// Custom counters and observations of scripts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Of `count(name, n)`: the sum.
    pub counters: BTreeMap<String, f64>,
    /// Of `observe(name, value)`: the values, in thousandths.
    pub observed: BTreeMap<String, Histogram>,
}

impl Metrics {
    /// Adds values of one metric. What is negative counts as 0, what is too large as overflow.
    pub fn observe(&mut self, name: &str, values: &[f64]) {
        if !self.observed.contains_key(name) {
            self.observed
                .insert(name.to_owned(), Histogram::on_demand());
        }
        let histogram = self.observed.get_mut(name).expect("it was put there");
        for value in values {
            // The cast saturates.
            histogram.record((value * OBSERVED_PER_UNIT).round() as u64);
        }
    }

    fn merge(&mut self, other: &Metrics) {
        for (name, number) in &other.counters {
            *self.counters.entry(name.clone()).or_default() += number;
        }
        for (name, histogram) in &other.observed {
            match self.observed.get_mut(name) {
                Some(own) => own.merge(histogram),
                None => {
                    self.observed.insert(name.clone(), histogram.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_eight_messages_are_kept_and_all_are_counted() {
        let mut failures = Failures::default();
        for number in 0..100 {
            failures.add(&format!("message {}", number % 10), 1);
        }
        assert_eq!(failures.total, 100);
        assert_eq!(failures.messages.len(), MESSAGES_MAX);
        assert!(failures.messages.iter().all(|it| it.clients == 10));
        let mut both = failures.clone();
        both.merge(&failures);
        assert_eq!((both.total, both.messages[0].clients), (200, 20));
    }

    #[test]
    fn metrics_of_workers_are_merged_exactly() {
        let mut left = Metrics::default();
        left.observe("ms", &[1.0, 2.5]);
        left.counters.insert("pages".into(), 2.0);
        let mut right = Metrics::default();
        right.observe("ms", &[-1.0, 0.001]);
        right.observe("other", &[7.0]);
        right.counters.insert("pages".into(), 0.5);
        left.merge(&right);
        assert_eq!(left.counters["pages"], 2.5);
        let ms = &left.observed["ms"];
        let range = (ms.min_ns(), ms.max_ns());
        assert_eq!((ms.count(), range), (4, (Some(0), Some(2_500))));
        assert_eq!(left.observed["other"].count(), 1);
    }
}
