//! The messages of `io.prometheus.client`, as far as they are sent: each `MetricFamily` with its
//! length before it. Histograms have classic and native buckets.

use prost::Message;

use crate::buckets::{BOUNDS_NS, Buckets, SCHEMA, ZERO_THRESHOLD};
use crate::family;
use crate::family::{Kind, Value};

const NS_PER_SECOND: f64 = 1e9;

/// Numbers of `MetricType`.
const COUNTER: i32 = 0;
const GAUGE: i32 = 1;
const HISTOGRAM: i32 = 4;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MetricFamily {
    #[prost(string, optional, tag = "1")]
    pub(crate) name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(crate) help: Option<String>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) kind: Option<i32>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) metric: Vec<Metric>,
    #[prost(string, optional, tag = "5")]
    pub(crate) unit: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Metric {
    #[prost(message, repeated, tag = "1")]
    pub(crate) label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    pub(crate) gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    pub(crate) counter: Option<Number>,
    #[prost(message, optional, tag = "7")]
    pub(crate) histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LabelPair {
    #[prost(string, optional, tag = "1")]
    pub(crate) name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(crate) value: Option<String>,
}

/// `Gauge` and `Counter` alike.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Number {
    #[prost(double, optional, tag = "1")]
    pub(crate) value: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Histogram {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) sample_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    pub(crate) sample_sum: Option<f64>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) bucket: Vec<Bucket>,
    #[prost(sint32, optional, tag = "5")]
    pub(crate) schema: Option<i32>,
    #[prost(double, optional, tag = "6")]
    pub(crate) zero_threshold: Option<f64>,
    #[prost(uint64, optional, tag = "7")]
    pub(crate) zero_count: Option<u64>,
    #[prost(message, repeated, tag = "12")]
    pub(crate) positive_span: Vec<BucketSpan>,
    #[prost(sint64, repeated, tag = "13")]
    pub(crate) positive_delta: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Bucket {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) cumulative_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    pub(crate) upper_bound: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BucketSpan {
    #[prost(sint32, optional, tag = "1")]
    pub(crate) offset: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    pub(crate) length: Option<u32>,
}

/// All families as messages.
pub(crate) fn encode(families: &[family::Family]) -> Vec<u8> {
    let mut octets = Vec::new();
    for family in families {
        octets.extend(message(family).encode_length_delimited_to_vec());
    }
    octets
}

fn message(family: &family::Family) -> MetricFamily {
    MetricFamily {
        name: Some(family.sample_name()),
        help: Some(family.help.to_owned()),
        kind: Some(match family.kind {
            Kind::Counter => COUNTER,
            Kind::Gauge => GAUGE,
            Kind::Histogram => HISTOGRAM,
        }),
        metric: (family.samples.iter())
            .map(|sample| metric(family.kind, sample))
            .collect(),
        unit: family.unit().map(str::to_owned),
    }
}

fn metric(kind: Kind, sample: &family::Sample) -> Metric {
    let labels = sample.labels.iter();
    let labels = labels.map(|(name, value)| LabelPair {
        name: Some((*name).to_owned()),
        value: Some(value.clone()),
    });
    let number = sample
        .value
        .number()
        .map(|value| Number { value: Some(value) });
    Metric {
        label: labels.collect(),
        gauge: number.clone().filter(|_| kind == Kind::Gauge),
        counter: number.filter(|_| kind == Kind::Counter),
        histogram: match &sample.value {
            Value::Histogram(buckets) => Some(histogram(buckets)),
            Value::Count(_) | Value::Real(_) => None,
        },
    }
}

fn histogram(buckets: &Buckets) -> Histogram {
    let classic = BOUNDS_NS.into_iter().zip(buckets.classic);
    let mut histogram = Histogram {
        sample_count: Some(buckets.count),
        sample_sum: Some(buckets.sum_seconds),
        bucket: classic
            .map(|(bound, below)| Bucket {
                cumulative_count: Some(below),
                upper_bound: Some(bound as f64 / NS_PER_SECOND),
            })
            .collect(),
        schema: Some(SCHEMA),
        zero_threshold: Some(ZERO_THRESHOLD),
        zero_count: Some(buckets.zeros),
        ..Histogram::default()
    };
    let (mut next, mut before) = (0, 0);
    for &(index, count) in &buckets.native {
        match histogram.positive_span.last_mut() {
            Some(span) if index == next => span.length = span.length.map(|it| it + 1),
            _ => histogram.positive_span.push(BucketSpan {
                // The first is counted from 0, each other from the end of the one before.
                offset: Some(index - next),
                length: Some(1),
            }),
        }
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        histogram.positive_delta.push(count - before);
        (next, before) = (index + 1, count);
    }
    histogram
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_buckets_survive_their_encoding_as_spans_and_deltas() {
        let mut values = measure::Histogram::default();
        for (ns, times) in [
            (0, 2),
            (1_000, 3),
            (1_015, 9),
            (250_000_000, 4),
            (1 << 37, 1),
        ] {
            values.record_many(ns, times);
        }
        let buckets = Buckets::new(&values);
        let family = family::Family::new("x_seconds", "X.", Kind::Histogram)
            .with(Vec::new(), Value::Histogram(Box::new(buckets.clone())));
        let octets = encode(&[family]);
        let decoded = MetricFamily::decode_length_delimited(octets.as_slice()).unwrap();
        let histogram = decoded.metric[0].histogram.clone().unwrap();
        let (mut index, mut count, mut found) = (0, 0, Vec::new());
        let mut deltas = histogram.positive_delta.iter();
        for span in &histogram.positive_span {
            index += span.offset();
            for _ in 0..span.length() {
                count += deltas.next().unwrap();
                found.push((index, u64::try_from(count).unwrap()));
                index += 1;
            }
        }
        assert_eq!(found, buckets.native);
        assert_eq!(deltas.next(), None);
        assert_eq!((histogram.zero_count(), histogram.sample_count()), (2, 19));
        assert_eq!(histogram.schema(), 5);
        assert_eq!(histogram.bucket.len(), BOUNDS_NS.len());
    }
}
