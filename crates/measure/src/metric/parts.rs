//! Figures of the parts of the latency, as timestamps tell them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::histogram::Histogram;
use crate::interval::PathTimes;

/// A part of the latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LatencyPart {
    /// From the scheduled instant until the query left: waiting in the generator.
    Generator,
    /// Until the response arrived: wire and server.
    Wire,
    /// Until the generator had read it: waiting for the reader.
    Reader,
}

/// What is told of a distribution of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LatencyFigure {
    /// The shortest time.
    Min,
    /// The mean.
    Mean,
    /// The median.
    P50,
    /// The 90th percentile.
    P90,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    P99,
    /// The 99.9th percentile.
    P999,
    /// The longest time.
    Max,
}

/// A figure of a part of the latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartMetric {
    /// The part.
    pub part: LatencyPart,
    /// What is told of it.
    pub figure: LatencyFigure,
}

const FIGURES: [LatencyFigure; 8] = [
    LatencyFigure::Min,
    LatencyFigure::Mean,
    LatencyFigure::P50,
    LatencyFigure::P90,
    LatencyFigure::P95,
    LatencyFigure::P99,
    LatencyFigure::P999,
    LatencyFigure::Max,
];

/// Each part with the names of its [`FIGURES`], in their order.
const PARTS: [(LatencyPart, [&str; 8]); 3] = [
    (
        LatencyPart::Generator,
        [
            "generator.min",
            "generator.mean",
            "generator.p50",
            "generator.p90",
            "generator.p95",
            "generator.p99",
            "generator.p99.9",
            "generator.max",
        ],
    ),
    (
        LatencyPart::Wire,
        [
            "wire.min",
            "wire.mean",
            "wire.p50",
            "wire.p90",
            "wire.p95",
            "wire.p99",
            "wire.p99.9",
            "wire.max",
        ],
    ),
    (
        LatencyPart::Reader,
        [
            "reader.min",
            "reader.mean",
            "reader.p50",
            "reader.p90",
            "reader.p95",
            "reader.p99",
            "reader.p99.9",
            "reader.max",
        ],
    ),
];

impl LatencyFigure {
    /// The figure of these times, in nanoseconds; none if there are none.
    pub(super) fn of(self, times: &Histogram) -> Option<f64> {
        let share = match self {
            LatencyFigure::Min => return times.min_ns().map(|ns| ns as f64),
            LatencyFigure::Mean => return times.mean_ns(),
            LatencyFigure::Max => return times.max_ns().map(|ns| ns as f64),
            LatencyFigure::P50 => 0.5,
            LatencyFigure::P90 => 0.9,
            LatencyFigure::P95 => 0.95,
            LatencyFigure::P99 => 0.99,
            LatencyFigure::P999 => 0.999,
        };
        times.percentile(share).map(|ns| ns as f64)
    }
}

impl PartMetric {
    /// All of them.
    pub(super) fn every() -> impl Iterator<Item = PartMetric> {
        let figures = |(part, _)| FIGURES.map(|figure| PartMetric { part, figure });
        PARTS.into_iter().flat_map(figures)
    }

    /// Its name, as in conditions and records.
    pub(super) fn name(self) -> &'static str {
        PARTS[self.part as usize].1[self.figure as usize]
    }

    /// The figure of these parts, in nanoseconds; none without timestamps.
    pub(super) fn of(self, path: &PathTimes) -> Option<f64> {
        self.figure.of(match self.part {
            LatencyPart::Generator => &path.generator,
            LatencyPart::Wire => &path.network,
            LatencyPart::Reader => &path.reader,
        })
    }
}

impl Serialize for PartMetric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for PartMetric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = <Cow<'_, str>>::deserialize(deserializer)?;
        let found = PartMetric::every().find(|metric| metric.name() == name);
        found.ok_or_else(|| de::Error::custom(format!("`{name}` is no metric")))
    }
}

impl JsonSchema for PartMetric {
    fn schema_name() -> Cow<'static, str> {
        "PartMetric".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = PartMetric::every().map(PartMetric::name).collect();
        json_schema!({
            "description": "A figure of a part of the latency.",
            "type": "string",
            "enum": names,
        })
    }
}
