//! The cost of one transport relative to another, in capacity, servers and latency.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Contender, Figures, runs};
use crate::limit::Limit;
use crate::scenario::Transports;

/// From one transport to another, by the medians of their runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// What is compared with.
    pub from: Transports,
    /// What is compared.
    pub to: Transports,
    /// Achieved rate, queries a second; none where one of the two is known as at least a rate.
    pub achieved_qps: Option<Change>,
    /// Servers needed for the rate that one server answers over `from`: the provisioning factor.
    /// None if a rate is 0, or was only the requested one.
    pub servers: Option<f64>,
    /// Why the factor is not that of the target, if it is not.
    pub doubt: Option<String>,
    /// The ranges of the achieved rates overlap: more runs may turn the order. None with a single
    /// run, which has no range.
    pub ranges_overlap: Option<bool>,
    /// Mean latency, nanoseconds.
    pub latency_mean_ns: Option<Change>,
    /// Median latency.
    pub latency_p50_ns: Option<Change>,
    /// 95th percentile of latency.
    pub latency_p95_ns: Option<Change>,
    /// 99th percentile of latency.
    pub latency_p99_ns: Option<Change>,
}

/// How a figure differs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// New less old, in the unit of the figure.
    pub difference: f64,
    /// The difference in percent of the old; none where that is 0.
    pub percent: Option<f64>,
}

impl Change {
    fn new(old: f64, new: f64) -> Self {
        let difference = new - old;
        Change {
            difference,
            percent: (old != 0.0).then(|| 100.0 * difference / old),
        }
    }
}

/// The costs of each step, then those from the first to each that is not next to it.
pub(super) fn all(transports: &[Contender], has_rate: bool) -> Vec<Cost> {
    let steps = transports.windows(2);
    let steps = steps.map(|pair| cost(&pair[0], &pair[1], has_rate));
    let from_first = transports.iter().skip(2);
    let from_first = from_first.map(|to| cost(&transports[0], to, has_rate));
    steps.chain(from_first).collect()
}

/// `has_rate`: queries came at a rate that was given.
fn cost(from: &Contender, to: &Contender, has_rate: bool) -> Cost {
    let (old, new) = (&from.median, &to.median);
    let change = |figure: fn(&Figures) -> Option<f64>| {
        let pair = figure(old).zip(figure(new));
        pair.map(|(old, new)| Change::new(old, new))
    };
    let of_rate = || has_rate.then(|| "the rate was given, and not what the target takes".into());
    let doubt = doubt(from, to).or_else(of_rate);
    let is_bound = old.achieved_is_at_least || new.achieved_is_at_least;
    let is_known = !is_bound && old.achieved_qps > 0.0 && new.achieved_qps > 0.0;
    let was_held = [from, to].iter().any(|it| it.limited_by(Limit::Rate) > 0);
    let counted = |it: &Contender| it.runs.iter().filter(|run| run.left_out.is_none()).count();
    let has_ranges = counted(from) > 1 && counted(to) > 1;
    let overlap = from.min.achieved_qps <= to.max.achieved_qps
        && to.min.achieved_qps <= from.max.achieved_qps;
    Cost {
        from: from.transport,
        to: to.transport,
        achieved_qps: (!is_bound).then(|| Change::new(old.achieved_qps, new.achieved_qps)),
        servers: (is_known && !was_held && !has_rate).then(|| old.achieved_qps / new.achieved_qps),
        doubt,
        ranges_overlap: has_ranges.then_some(overlap),
        latency_mean_ns: change(|it| it.latency_mean_ns),
        latency_p50_ns: change(|it| it.latency_p50_ns),
        latency_p95_ns: change(|it| it.latency_p95_ns),
        latency_p99_ns: change(|it| it.latency_p99_ns),
    }
}

/// Why the rates of two transports do not tell what the target can take.
fn doubt(from: &Contender, to: &Contender) -> Option<String> {
    let reasons = [
        (Limit::Rate, "held the rate asked for"),
        (Limit::Generator, "measured the generator"),
        (Limit::Policy, "met a rule or a limit"),
        (Limit::Network, "lost queries on the path"),
        (Limit::Outstanding, "had no more queries in flight"),
        (Limit::Unknown, "had no known limit"),
    ];
    let of = |contender: &Contender| {
        let found = reasons.iter().find_map(|(limit, what)| {
            let number = contender.limited_by(*limit);
            (number > 0).then_some((number, what))
        });
        found.map(|(number, what)| {
            let all = runs(contender.runs.len());
            format!("{} {what} ({number} of {all})", contender.transport)
        })
    };
    let both: Vec<String> = [from, to].into_iter().filter_map(of).collect();
    (!both.is_empty()).then(|| both.join(", "))
}
