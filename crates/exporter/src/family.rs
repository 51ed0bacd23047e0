//! Metric families, independent of any format.

use crate::buckets::Buckets;

/// All samples of one metric.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    /// Its name, without the `_total` of a counter.
    pub(crate) name: &'static str,
    /// What it is, one line.
    pub(crate) help: &'static str,
    /// What its values are.
    pub(crate) kind: Kind,
    /// A value for each set of labels.
    pub(crate) samples: Vec<Sample>,
}

/// What the values of a metric are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Classic and native.
    Histogram,
}

/// One value.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) labels: Vec<Label>,
    pub(crate) value: Value,
}

/// Name and value of a label.
pub(crate) type Label = (&'static str, String);

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Count(u64),
    Real(f64),
    Histogram(Box<Buckets>),
}

/// What has become of scrapes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrapeCounts {
    /// Scrapes that were answered with metrics.
    pub served: u64,
    /// Connections above the limits, answered with 503 or closed at once.
    pub refused: u64,
    /// Connections closed because a scraper was too slow.
    pub timed_out: u64,
}

impl Family {
    /// A family without values.
    pub(crate) fn new(name: &'static str, help: &'static str, kind: Kind) -> Family {
        Family {
            name,
            help,
            kind,
            samples: Vec::new(),
        }
    }

    /// With a further value.
    pub(crate) fn with(mut self, labels: Vec<Label>, value: Value) -> Family {
        self.samples.push(Sample { labels, value });
        self
    }

    /// Its name in a sample.
    pub(crate) fn sample_name(&self) -> String {
        match self.kind {
            Kind::Counter => format!("{}_total", self.name),
            Kind::Gauge | Kind::Histogram => self.name.to_owned(),
        }
    }

    /// The unit that its name ends in.
    pub(crate) fn unit(&self) -> Option<&'static str> {
        let has = |unit: &&str| self.name.ends_with(&format!("_{unit}"));
        ["seconds", "bytes"].into_iter().find(has)
    }
}

impl Value {
    /// As a number; a histogram has none.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Value::Count(count) => Some(*count as f64),
            Value::Real(number) => Some(*number),
            Value::Histogram(_) => None,
        }
    }
}
