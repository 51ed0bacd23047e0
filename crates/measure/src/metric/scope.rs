//! The scope of a metric: a run, or a part of it.

use std::borrow::Cow;

use super::Metric;
use crate::counts::{Connections, Counts};
use crate::experience::ClientExperience;
use crate::histogram::Histogram;
use crate::interval::{ConnectionTimes, Distributions, Interval, PathTimes, per};
use crate::record::RunRecord;
use crate::scenario::ScenarioRecord;

/// A run, or a part of it. Rates of a part are over its length, those of a run over its window.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    interval: &'a Interval,
    goodput_rcodes: &'a [u16],
    /// What was asked for, where that is known of a part.
    scenario: Option<&'a ScenarioRecord>,
    /// The whole run; none for a part.
    run: Option<&'a RunRecord>,
}

impl<'a> Scope<'a> {
    pub(super) fn run(run: &'a RunRecord) -> Self {
        Scope {
            run: Some(run),
            ..Scope::part(run, &run.total)
        }
    }

    pub(super) fn part(run: &'a RunRecord, interval: &'a Interval) -> Self {
        Scope {
            scenario: Some(&run.scenario),
            ..Scope::interval_of(interval, &run.scenario.goodput_rcodes)
        }
    }

    pub(super) fn interval_of(interval: &'a Interval, goodput_rcodes: &'a [u16]) -> Self {
        Scope {
            interval,
            goodput_rcodes,
            scenario: None,
            run: None,
        }
    }

    pub(super) fn interval(&self) -> &Interval {
        self.interval
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.interval.counts
    }

    /// Of a run, those set up before it and during warm-up included, as the text and the set-up
    /// times have them.
    pub(super) fn connections(&self) -> Cow<'a, Connections> {
        match self.run {
            Some(run) => Cow::Owned(run.connections()),
            None => Cow::Borrowed(&self.interval.counts.connections),
        }
    }

    pub(super) fn distributions(&self) -> &Distributions {
        &self.interval.distributions
    }

    pub(super) fn latency(&self) -> &Histogram {
        &self.interval.distributions.latency
    }

    pub(super) fn path(&self) -> &PathTimes {
        &self.interval.distributions.path
    }

    /// What only a whole run tells.
    pub(super) fn of_run(&self, of: fn(&RunRecord) -> Option<f64>) -> Option<f64> {
        self.run.and_then(of)
    }

    /// Ratio of a figure in the last quarter of a run's intervals to that in the first; none with
    /// fewer than four intervals.
    pub(super) fn drift(&self, metric: Metric) -> Option<f64> {
        let run = self.run?;
        let whole: Vec<&Interval> = run.whole_intervals().collect();
        let quarter = whole.len() / 4;
        if quarter == 0 {
            return None;
        }
        let value = |part: &[&Interval]| {
            let part = Interval::joined(part.iter().copied());
            metric.of_part(run, &part).filter(|value| *value > 0.0)
        };
        let first = value(&whole[..quarter])?;
        Some(value(&whole[whole.len() - quarter..])? / first)
    }

    /// A number of events of a part, or the rate of the run.
    pub(super) fn rate(&self, events: u64, of_run: fn(&RunRecord) -> f64) -> Option<f64> {
        Some(match self.run {
            Some(run) => of_run(run),
            None => self.interval.per_second(events),
        })
    }

    pub(super) fn goodput(&self) -> u64 {
        self.counts().goodput(self.goodput_rcodes)
    }

    /// A share of the queries of a run, or of those that ended in a part of it.
    pub(super) fn share_of_ends(&self, some: u64) -> Option<f64> {
        let counts = self.counts();
        let all = match self.run {
            Some(_) => counts.offered,
            None => counts.lost() + counts.responses,
        };
        (all > 0).then(|| per(some as f64, all as f64))
    }

    pub(super) fn of_rcode(&self, rcode: usize) -> Option<f64> {
        count(self.counts().rcodes.by_rcode[rcode])
    }

    pub(super) fn share_of_rcode(&self, rcode: usize) -> Option<f64> {
        self.share_of_responses(self.counts().rcodes.by_rcode[rcode])
    }

    /// A share of all responses; none without a response.
    pub(super) fn share_of_responses(&self, some: u64) -> Option<f64> {
        let all = self.counts().responses;
        (all > 0).then(|| per(some as f64, all as f64))
    }

    pub(super) fn of_rcodes_beside(&self, named: [usize; 4]) -> Option<f64> {
        let rcodes = &self.counts().rcodes;
        let named: u64 = named.iter().map(|rcode| rcodes.by_rcode[*rcode]).sum();
        count(rcodes.total().saturating_sub(named))
    }

    /// Responses at that attempt and the given number of further ones.
    pub(super) fn at_attempts(&self, first: usize, number: usize) -> Option<f64> {
        let by_attempt = &self.counts().stub.responses_by_attempt;
        count(by_attempt.iter().skip(first).take(number).sum())
    }

    pub(super) fn in_flight(&self) -> Option<f64> {
        Some(match self.run {
            Some(run) => run.mean_in_flight(),
            None => self.interval.mean_in_flight(),
        })
    }

    pub(super) fn usable(&self) -> Option<f64> {
        let scenario = self.scenario?;
        count(scenario.usable(&self.connections()))
    }

    pub(super) fn cpu_ns_per_response(&self) -> Option<f64> {
        let responses = self.counts().responses;
        (responses > 0).then(|| self.interval.cpu_ns as f64 / responses as f64)
    }

    pub(super) fn wire_octets_per_query(&self) -> Option<f64> {
        let is_ipv6 = self.scenario?.target.starts_with('[');
        let (wire, sent) = (&self.counts().wire, self.counts().sent);
        let octets = wire.sent_octets(is_ipv6) + wire.received_octets(is_ipv6);
        (sent > 0 && !wire.is_empty()).then(|| octets as f64 / sent as f64)
    }

    pub(super) fn stamps_missing(&self) -> Option<f64> {
        self.scenario?.timestamps?;
        let stamps = self.counts().stamps;
        count(stamps.missing + stamps.implausible)
    }

    /// The median of the first of these times that there are any of; of a run, of all connections.
    /// Handshakes of one run are those of TLS over TCP or those of QUIC.
    pub(super) fn set_up(&self, either: fn(&ConnectionTimes) -> [&Histogram; 2]) -> Option<f64> {
        let median = |times: &ConnectionTimes| {
            let each = either(times).into_iter();
            each.filter_map(|times| percentile(times, 0.5)).next()
        };
        match self.run {
            Some(run) => median(&run.connection_times()),
            None => median(&self.interval.distributions.connections),
        }
    }

    pub(super) fn of_clients(&self, of: fn(&ClientExperience) -> Option<f64>) -> Option<f64> {
        of(&self.run?.experience()?)
    }
}

pub(super) fn count(number: u64) -> Option<f64> {
    Some(number as f64)
}

pub(super) fn percentile(times: &Histogram, p: f64) -> Option<f64> {
    times.percentile(p).map(|ns| ns as f64)
}

pub(super) fn min(times: &Histogram) -> Option<f64> {
    times.min_ns().map(|ns| ns as f64)
}

pub(super) fn mean(times: &Histogram) -> Option<f64> {
    times.mean_ns()
}

pub(super) fn max(times: &Histogram) -> Option<f64> {
    times.max_ns().map(|ns| ns as f64)
}
