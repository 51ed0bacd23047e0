//! The figures of a run by name: what is compared, and what conditions are about.
//!
//! A metric of an [`Interval`] is that of the events in it, so that it can be computed of any part
//! of a run. Percentiles come from merged histograms, as everywhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::interval::{ConnectionTimes, Interval, per};
use crate::notation;
use crate::record::RunRecord;

mod parts;

pub use parts::{LatencyFigure, LatencyPart, PartMetric};

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Queries scheduled a second.
    Offered,
    /// Responses a second: those that [`RunRecord::responses_achieved`] counts.
    Qps,
    /// Those with an RCODE of the goodput set.
    Goodput,
    /// Share of the queries with a response.
    Answered,
    /// Share of the queries without a response.
    Loss,
    /// The shortest latency from the scheduled instant.
    Min,
    /// Mean latency from the scheduled instant.
    Mean,
    /// Its median.
    P50,
    /// Its 90th percentile.
    P90,
    /// Its 95th percentile.
    P95,
    /// Its 99th percentile.
    P99,
    /// Its 99.9th percentile.
    #[serde(rename = "p99.9")]
    P999,
    /// The longest latency.
    Max,
    /// Median of TCP connection set-up.
    Connect,
    /// Median of full TLS or QUIC handshakes.
    Handshake,
    /// CPU time of the generator for each response.
    Cpu,
    /// A figure of a part of the latency, which timestamps tell: `wire.p99`.
    #[serde(untagged)]
    Part(PartMetric),
}

/// What a metric is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Events a second.
    PerSecond,
    /// A share of a whole, 0 to 1.
    Share,
    /// Nanoseconds.
    Nanoseconds,
}

impl Unit {
    /// Its name.
    pub fn words(self) -> &'static str {
        match self {
            Unit::PerSecond => "a second",
            Unit::Share => "0 to 1",
            Unit::Nanoseconds => "nanoseconds",
        }
    }
}

impl Metric {
    /// Those that need no timestamps; see [`Metric::every`].
    pub const ALL: [Metric; 16] = [
        Metric::Offered,
        Metric::Qps,
        Metric::Goodput,
        Metric::Answered,
        Metric::Loss,
        Metric::Min,
        Metric::Mean,
        Metric::P50,
        Metric::P90,
        Metric::P95,
        Metric::P99,
        Metric::P999,
        Metric::Max,
        Metric::Connect,
        Metric::Handshake,
        Metric::Cpu,
    ];

    /// All metrics there are.
    pub fn every() -> impl Iterator<Item = Metric> {
        let parts = PartMetric::every().map(Metric::Part);
        Metric::ALL.into_iter().chain(parts)
    }

    /// Its name, as in conditions and records.
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// Its name with its unit, as a key of JSON and CSV; that of a part of the latency is its name.
    pub fn key(self) -> &'static str {
        self.words().1
    }

    /// What it is.
    pub fn meaning(self) -> &'static str {
        self.words().2
    }

    /// Name, key and meaning.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Metric::Offered => ("offered", "offered_qps", "Queries scheduled"),
            Metric::Qps => ("qps", "achieved_qps", "Responses achieved"),
            Metric::Goodput => (
                "goodput",
                "goodput_qps",
                "Whole responses with an RCODE of the goodput set",
            ),
            Metric::Answered => (
                "answered",
                "answered_share",
                "Queries that got a response, of those offered",
            ),
            Metric::Loss => (
                "loss",
                "lost_share",
                "Queries without a response, of those offered",
            ),
            Metric::Min => (
                "min",
                "latency_min_ns",
                "Shortest latency from the scheduled instant",
            ),
            Metric::Mean => (
                "mean",
                "latency_mean_ns",
                "Mean latency from the scheduled instant",
            ),
            Metric::P50 => ("p50", "latency_p50_ns", "Median of that latency"),
            Metric::P90 => ("p90", "latency_p90_ns", "90th percentile of that latency"),
            Metric::P95 => ("p95", "latency_p95_ns", "95th percentile of that latency"),
            Metric::P99 => ("p99", "latency_p99_ns", "99th percentile of that latency"),
            Metric::P999 => (
                "p99.9",
                "latency_p99_9_ns",
                "99.9th percentile of that latency",
            ),
            Metric::Max => (
                "max",
                "latency_max_ns",
                "Longest latency from the scheduled instant",
            ),
            Metric::Connect => (
                "connect",
                "connect_p50_ns",
                "Median of TCP connection set-up",
            ),
            Metric::Handshake => (
                "handshake",
                "handshake_p50_ns",
                "Median of full TLS or QUIC handshakes",
            ),
            Metric::Cpu => (
                "cpu",
                "cpu_ns_per_response",
                "CPU time of the generator for each response",
            ),
            Metric::Part(part) => (
                part.name(),
                part.name(),
                "A figure of a part of the latency",
            ),
        }
    }

    /// The metric of that name.
    pub fn named(name: &str) -> Option<Metric> {
        Metric::every().find(|metric| metric.name() == name)
    }

    /// All names, as a list for people.
    pub fn names() -> String {
        format!(
            "{}; with --timestamps also min to max of parts of the latency: generator.p99, \
             wire.p99, reader.p99",
            Metric::ALL.map(Metric::name).join(", ")
        )
    }

    /// What a run needs for it to be measured, where that is not a matter of course.
    pub(crate) fn needs(self) -> Option<&'static str> {
        matches!(self, Metric::Part(_)).then_some("a run over UDP with --timestamps")
    }

    /// What it is measured in.
    pub fn unit(self) -> Unit {
        match self {
            Metric::Offered | Metric::Qps | Metric::Goodput => Unit::PerSecond,
            Metric::Answered | Metric::Loss => Unit::Share,
            _ => Unit::Nanoseconds,
        }
    }

    /// True if more of it is better.
    pub fn is_better_higher(self) -> bool {
        self.unit() == Unit::PerSecond || self == Metric::Answered
    }

    /// True if it tells of the target, and not of the generator.
    pub fn is_of_target(self) -> bool {
        match self {
            Metric::Offered | Metric::Cpu => false,
            Metric::Part(metric) => metric.part == LatencyPart::Wire,
            _ => true,
        }
    }

    /// The figure of a whole run; none if it was not measured.
    pub fn of(self, record: &RunRecord) -> Option<f64> {
        let answered = record.total.counts.responses > 0;
        let counts = &record.total.counts;
        match self {
            Metric::Offered => Some(record.offered_qps()),
            Metric::Qps => Some(record.achieved_qps()),
            Metric::Goodput => Some(record.goodput_qps()),
            Metric::Answered => {
                (counts.offered > 0).then(|| per(counts.responses as f64, counts.offered as f64))
            }
            Metric::Loss => (counts.offered > 0).then(|| record.lost_share()),
            Metric::Connect | Metric::Handshake => self.of_set_up(&record.connection_times()),
            Metric::Cpu => answered.then(|| {
                per(
                    record.total.cpu_ns as f64,
                    record.total.counts.responses as f64,
                )
            }),
            Metric::Part(metric) => metric.of(&record.total.distributions.path),
            _ => self.of_latency(&record.total.distributions.latency),
        }
    }

    /// The figure of a part of a run; none if nothing of it happened there. Losses are a share of
    /// the queries that ended in it.
    pub fn of_interval(self, interval: &Interval, goodput_rcodes: &[u16]) -> Option<f64> {
        let counts = &interval.counts;
        match self {
            Metric::Offered => Some(interval.per_second(counts.offered)),
            Metric::Qps => Some(interval.per_second(counts.responses)),
            Metric::Goodput => Some(interval.per_second(counts.goodput(goodput_rcodes))),
            Metric::Answered | Metric::Loss => {
                let ended = counts.lost() + counts.responses;
                let part = match self {
                    Metric::Loss => counts.lost(),
                    _ => counts.responses,
                };
                (ended > 0).then(|| part as f64 / ended as f64)
            }
            Metric::Connect | Metric::Handshake => {
                self.of_set_up(&interval.distributions.connections)
            }
            Metric::Cpu => {
                let answered = counts.responses > 0;
                answered.then(|| interval.cpu_ns as f64 / counts.responses as f64)
            }
            Metric::Part(metric) => metric.of(&interval.distributions.path),
            _ => self.of_latency(&interval.distributions.latency),
        }
    }

    fn of_set_up(self, times: &ConnectionTimes) -> Option<f64> {
        let median = |histogram: &Histogram| histogram.percentile(0.5).map(|ns| ns as f64);
        match self {
            Metric::Connect => median(&times.tcp_connect),
            _ => median(&times.tls_handshake).or_else(|| median(&times.quic_handshake)),
        }
    }

    fn of_latency(self, latency: &Histogram) -> Option<f64> {
        let figure = match self {
            Metric::Min => LatencyFigure::Min,
            Metric::Mean => LatencyFigure::Mean,
            Metric::P50 => LatencyFigure::P50,
            Metric::P90 => LatencyFigure::P90,
            Metric::P95 => LatencyFigure::P95,
            Metric::P99 => LatencyFigure::P99,
            Metric::P999 => LatencyFigure::P999,
            _ => LatencyFigure::Max,
        };
        figure.of(latency)
    }

    /// A value of it for people, with its unit.
    pub fn show(self, value: f64) -> String {
        match self.unit() {
            Unit::PerSecond => notation::rate(value),
            Unit::Nanoseconds => notation::latency(value),
            Unit::Share => notation::fraction(value),
        }
    }

    /// A change of it for people: of a share in points of percent, of all else in percent of what
    /// it was.
    pub fn show_change(self, change: f64) -> String {
        let (places, unit) = match self.unit() {
            Unit::Share => (2, "points"),
            _ => (1, "%"),
        };
        let number = format!("{:+.places$}", 100.0 * change);
        // No sign where the digits shown are zeroes.
        let digits = number.trim_start_matches(['+', '-']);
        match digits.chars().all(|digit| matches!(digit, '0' | '.')) {
            true => format!("{digits} {unit}"),
            false => format!("{number} {unit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn names_are_those_of_the_record_and_lead_back() {
        for metric in Metric::every() {
            assert_eq!(Metric::named(metric.name()), Some(metric));
            let json = serde_json::to_string(&metric).expect("serializes");
            assert_eq!(json, format!("\"{}\"", metric.name()));
            assert_eq!(serde_json::from_str::<Metric>(&json).ok(), Some(metric));
        }
        for unknown in ["p98", "wire", "wire.p98", "network.p99", "p99.wire"] {
            assert_eq!(Metric::named(unknown), None);
            let json = format!("\"{unknown}\"");
            assert!(serde_json::from_str::<Metric>(&json).is_err());
        }
    }

    #[test]
    fn figures_of_a_run_and_of_its_parts_agree_where_they_must() {
        let intervals = (0..4).map(|each| {
            let mut interval = example::interval(each, &[(1_000_000, 500)]);
            interval.distributions.path.network.record_many(7_000, 500);
            interval
        });
        let record = example::record(intervals.collect());
        for metric in Metric::every() {
            let whole = metric.of(&record);
            let parts = metric.of_interval(&record.total, &record.scenario.goodput_rcodes);
            assert_eq!(whole, parts, "{metric:?}");
        }
        assert_eq!(Metric::Qps.of(&record), Some(500.0));
        assert_eq!(Metric::Cpu.of(&record), Some(1e6));
        assert_eq!(Metric::Connect.of(&record), None);
        let named = |name| Metric::named(name).expect("is one").of(&record);
        assert_eq!(named("wire.max"), Some(7_000.0));
        assert_eq!(named("wire.mean"), Some(7_000.0));
        assert_eq!(named("reader.p99"), None);
        assert_eq!(Metric::Max.of(&example::record(Vec::new())), None);
    }

    #[test]
    fn values_and_changes_read_with_their_units() {
        assert_eq!(Metric::Qps.show(15_324.6), "15,324.6 qps");
        assert_eq!(Metric::P99.show(6_497_400.0), "6.497 ms");
        assert_eq!(Metric::Loss.show(0.000_01), "<0.01 %");
        assert_eq!(Metric::P99.show_change(0.0981), "+9.8 %");
        assert_eq!(Metric::Qps.show_change(-0.0001), "0.0 %");
        assert_eq!(Metric::Loss.show_change(0.0012), "+0.12 points");
    }
}
