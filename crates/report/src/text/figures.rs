//! Figures as words, for every section and table.

use measure::Histogram;
use measure::notation::{count, latency};

/// Counts with what they count, separated by commas: `5 refused, 2 reset`.
pub(crate) fn list(counts: Vec<(String, u64)>) -> String {
    let each = counts
        .iter()
        .map(|(what, number)| format!("{} {what}", count(*number)));
    each.collect::<Vec<String>>().join(", ")
}

/// A latency, or `-` where there is none.
pub(crate) fn or_dash(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".into(), |ns| latency(ns as f64))
}

/// A mean or deviation, or `-` where there is none.
fn or_dash_f64(ns: Option<f64>) -> String {
    ns.map_or_else(|| "-".into(), latency)
}

/// The figures of a distribution by name, in the order in which they are shown.
pub(crate) fn figures(histogram: &Histogram) -> [(&'static str, String); 9] {
    let p = |p| or_dash(histogram.percentile(p));
    [
        ("min", or_dash(histogram.min_ns())),
        ("mean", or_dash_f64(histogram.mean_ns())),
        ("stddev", or_dash_f64(histogram.stddev_ns())),
        ("p50", p(0.5)),
        ("p90", p(0.9)),
        ("p95", p(0.95)),
        ("p99", p(0.99)),
        ("p99.9", p(0.999)),
        ("max", or_dash(histogram.max_ns())),
    ]
}
