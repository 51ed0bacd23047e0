//! Conditions on a comparison.

use super::{AbComparison, Finding, MetricRecord};
use crate::condition::{Bound, Check, Condition, Criterion, Operator, Outcome};
use crate::metric::Metric;

impl AbComparison {
    /// Checks a condition. A value is that of B; a change that may be noise decides nothing.
    pub fn check(&self, condition: &Condition) -> Check {
        match condition.criterion {
            Criterion::Slower(metric) => self.check_slower(condition, metric),
            Criterion::Bounded {
                metric,
                operator,
                bound,
            } => match (bound, self.of(metric)) {
                (Bound::Value(bound), found) => {
                    let value = found.and_then(|found| found.b.median);
                    condition.check_value(metric, operator, bound, value)
                }
                (_, None) => {
                    let found = format!("{} was not compared", metric.name());
                    condition.outcome(condition.without_evidence(), found)
                }
                (bound, Some(found)) => match self.of_generator() {
                    Some(sides) if metric.is_of_target() => {
                        let found = format!("{}: {sides} measured the generator", metric.name());
                        condition.outcome(Outcome::Undecided, found)
                    }
                    _ => check_change(condition, operator, bound, found),
                },
            },
        }
    }

    fn check_slower(&self, condition: &Condition, metric: Option<Metric>) -> Check {
        let (finding, found) = match metric {
            None => (self.finding, self.headline()),
            Some(metric) => match self.of(metric) {
                Some(found) => (found.finding, format!("{} {}", metric.name(), words(found))),
                None => {
                    let found = format!("{} was not compared", metric.name());
                    (Finding::CannotTell, found)
                }
            },
        };
        let outcome = match finding {
            Finding::Slower | Finding::Mixed => Outcome::Failed,
            Finding::Same | Finding::Faster => Outcome::Passed,
            Finding::CannotTell => Outcome::Undecided,
        };
        condition.outcome(outcome, found)
    }
}

/// `+9.8 % (+9.0 to +10.6 %): slower`.
fn words(found: &MetricRecord) -> String {
    let show = |change| found.metric.show_change(change);
    let change = found.change.map_or_else(|| "unknown".into(), show);
    let interval = match (found.change_low, found.change_high) {
        (Some(low), Some(high)) => format!(" ({} to {})", show(low), show(high)),
        _ => String::new(),
    };
    format!("{change}{interval}: {}", found.words())
}

fn check_change(
    condition: &Condition,
    operator: Operator,
    bound: Bound,
    found: &MetricRecord,
) -> Check {
    let words = format!("{} {}", found.metric.name(), words(found));
    let (Some(change), Some(middle)) = (found.change, found.a.median) else {
        return condition.outcome(condition.without_evidence(), words);
    };
    let bound = match bound {
        Bound::Change(bound) | Bound::Value(bound) => bound,
        Bound::Difference(difference) => difference / middle,
    };
    let as_it_must_be = operator.holds(change, bound) == condition.is_required();
    let is_told = matches!(found.finding, Finding::Slower | Finding::Faster);
    let outcome = match (as_it_must_be, is_told) {
        (true, _) => Outcome::Passed,
        (false, true) => Outcome::Failed,
        (false, false) => Outcome::Undecided,
    };
    condition.outcome(outcome, words)
}
