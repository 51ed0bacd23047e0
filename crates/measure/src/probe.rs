//! Results of a few queries to one server: the figures of `throng ping`.
//!
//! Times are service times, from sending to response; connection set-up is separate. Percentiles
//! come from the run's histogram, whose buckets are at most 0.78 % wide; least, greatest and mean
//! are exact.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counts::Counts;
use crate::histogram::Histogram;
use crate::interval::{ConnectionTimes, Interval};

/// Queries and responses of one server, and how long they took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeStatistics {
    /// Queries that were due, without those that the end of the run kept from being sent.
    pub queries: u64,
    /// Of those, queries sent.
    pub sent: u64,
    /// Of those, queries that got a response.
    pub received: u64,
    /// Queries without response, for whatever reason.
    pub lost: u64,
    /// Why queries have no response, and what else is worth telling, with how often.
    pub remarks: Vec<(String, u64)>,
    /// Responses by RCODE.
    pub rcodes: Vec<(String, u64)>,
    /// Responses with the TC bit.
    pub truncated: u64,
    /// From sending to response; none without a response.
    pub time: Option<Times>,
    /// From the attempt to a usable connection, each step apart; empty without connections.
    pub set_up: Vec<(String, Times)>,
}

/// A distribution in a few figures, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    /// How many values.
    pub count: u64,
    /// The least.
    pub min_ns: u64,
    /// The mean.
    pub mean_ns: f64,
    /// The median.
    pub median_ns: u64,
    /// The 95th percentile.
    pub p95_ns: u64,
    /// The greatest.
    pub max_ns: u64,
    /// The standard deviation.
    pub stddev_ns: f64,
}

impl Times {
    /// Those of a histogram; none if it is empty.
    pub fn of(histogram: &Histogram) -> Option<Times> {
        Some(Times {
            count: histogram.count(),
            min_ns: histogram.min_ns()?,
            mean_ns: histogram.mean_ns()?,
            median_ns: histogram.percentile(0.5)?,
            p95_ns: histogram.percentile(0.95)?,
            max_ns: histogram.max_ns()?,
            stddev_ns: histogram.stddev_ns().unwrap_or(0.0),
        })
    }
}

impl ProbeStatistics {
    /// The figures of what was measured; `connections` are those of the whole run, because they
    /// may have been set up before it.
    pub fn new(total: &Interval, connections: &ConnectionTimes) -> Self {
        let counts = &total.counts;
        let steps = connections.steps().into_iter();
        let set_up = steps.filter_map(|(name, times)| Some((name.to_owned(), Times::of(times)?)));
        let rcodes = counts.rcodes.named();
        let run_ended = counts.not_sent.run_ended;
        ProbeStatistics {
            queries: counts.offered - run_ended,
            sent: counts.sent,
            received: counts.responses,
            lost: counts.lost() - run_ended,
            remarks: remarks(counts),
            rcodes: rcodes
                .map(|(name, count)| (name.to_owned(), count))
                .collect(),
            truncated: counts.truncated,
            time: Times::of(&total.distributions.service),
            set_up: set_up.collect(),
        }
    }

    /// Share of the queries without response, 0 to 1; 0 where nothing was asked.
    pub fn loss(&self) -> f64 {
        self.lost as f64 / self.queries.max(1) as f64
    }
}

fn remarks(counts: &Counts) -> Vec<(String, u64)> {
    let failed = &counts.connections.failed;
    let all = [
        ("late responses", counts.late),
        ("duplicate responses", counts.duplicate),
        ("unexpected messages", counts.unexpected.total()),
        ("ICMP port unreachable", counts.port_unreachable),
        ("connections refused", failed.refused),
        (
            "connections reset",
            failed.reset + counts.connections.reset_by_target,
        ),
        ("connections closed before use", failed.closed),
        ("connections timed out", failed.timed_out),
        ("connections without a route", failed.unreachable),
    ];
    // Those that the end of the run left were not due for an answer.
    let mut in_time = counts.clone();
    in_time.not_sent.run_ended = 0;
    let ends: Vec<_> = in_time
        .ends()
        .map(|(end, number)| (end.words, number))
        .collect();
    let seen = all.into_iter().filter(|(_, count)| *count > 0);
    let seen = ends.into_iter().chain(seen);
    seen.map(|(what, count)| (what.to_owned(), count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_three_responses_and_a_loss_are_those_of_the_interval() {
        let mut total = Interval::default();
        (total.counts.offered, total.counts.sent) = (4, 4);
        (total.counts.responses, total.counts.timeouts) = (3, 1);
        for (ms, rcode) in [(1, 0), (2, 0), (6, 3)] {
            total.distributions.service.record(ms * 1_000_000);
            total.counts.rcodes.record(rcode);
        }
        let shown = ProbeStatistics::new(&total, &ConnectionTimes::default());
        assert_eq!((shown.sent, shown.received, shown.lost), (4, 3, 1));
        assert!((shown.loss() - 0.25).abs() < 1e-9);
        assert_eq!(shown.remarks, [("timed out".to_owned(), 1)]);
        let rcodes = [("NOERROR".to_owned(), 2), ("NXDOMAIN".to_owned(), 1)];
        assert_eq!(shown.rcodes, rcodes);
        let time = shown.time.unwrap();
        assert_eq!((time.min_ns, time.max_ns), (1_000_000, 6_000_000));
        assert!((time.mean_ns - 3e6).abs() < 1.0);
        assert!((time.median_ns as f64 / 2e6 - 1.0).abs() < 0.01);
        assert!(shown.set_up.is_empty());
    }

    #[test]
    fn without_a_response_there_is_no_time() {
        let shown = ProbeStatistics::new(&Interval::default(), &ConnectionTimes::default());
        assert_eq!(shown.time, None);
        assert_eq!(shown.loss(), 0.0);
    }
}
