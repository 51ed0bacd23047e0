//! A criterion held against the starts of a cell: so far as they vary, a figure is an interval.

use super::{Bound, Criterion, Operator};
use crate::metric::{Metric, Unit};
use crate::statistics::{ConfidenceInterval, Nested, welch};

/// Starts that are ever advised.
const STARTS_MAX: f64 = 10_000.0;

/// The result of a criterion over the starts of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Holding {
    /// Whether it holds.
    pub holds: Holds,
    /// What was found, in words.
    pub found: String,
    /// About how many starts would decide, where these do not.
    pub starts_needed: Option<u64>,
}

/// Whether a criterion holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// In all of the interval.
    Yes,
    /// In no part of it.
    No,
    /// In a part of it, or there is none.
    CannotTell,
}

impl Criterion {
    /// Holds it against a cell. A change is one from the cell `against`.
    pub fn of_starts(&self, cell: &Nested, against: Option<&Nested>, level: f64) -> Holding {
        let &Criterion::Bounded {
            metric,
            operator,
            bound,
        } = self
        else {
            return cannot_tell("a word, no number: give a bound".to_owned());
        };
        let estimate = match (bound, against) {
            (Bound::Value(_), _) => Estimate::of_value(cell),
            (_, None) => return cannot_tell("a change of nothing: no cell to compare".to_owned()),
            (Bound::Difference(_), Some(against)) => Estimate::of_difference(against, cell, level),
            (Bound::Change(_), Some(against)) => match metric.unit() {
                Unit::Share => Estimate::of_difference(against, cell, level),
                _ => Estimate::of_change(against, cell, level),
            },
        };
        match estimate {
            Some(estimate) => estimate.held_against(metric, operator, bound),
            None => cannot_tell(format!(
                "{}: fewer than two starts, or a figure of 0",
                metric.name()
            )),
        }
    }
}

fn cannot_tell(found: String) -> Holding {
    Holding {
        holds: Holds::CannotTell,
        found,
        starts_needed: None,
    }
}

/// A figure of a cell, or its change, as far as its starts tell.
struct Estimate {
    value: f64,
    interval: ConfidenceInterval,
    /// Starts of the cell.
    starts: usize,
}

impl Estimate {
    fn of_value(cell: &Nested) -> Option<Estimate> {
        Some(Estimate {
            value: cell.mean,
            interval: cell.interval?,
            starts: cell.means.len(),
        })
    }

    fn of_difference(from: &Nested, to: &Nested, level: f64) -> Option<Estimate> {
        Some(Estimate {
            value: to.mean - from.mean,
            interval: from.difference_to(to, level)?,
            starts: to.means.len(),
        })
    }

    /// By the logarithms: a ratio of two figures varies by factors.
    fn of_change(from: &Nested, to: &Nested, level: f64) -> Option<Estimate> {
        let logarithms = |nested: &Nested| -> Option<Vec<f64>> {
            let means = nested.means.iter();
            means.map(|mean| (*mean > 0.0).then(|| mean.ln())).collect()
        };
        let test = welch(&logarithms(from)?, &logarithms(to)?, level)?;
        let change = |logarithm: f64| logarithm.exp() - 1.0;
        Some(Estimate {
            value: change(test.difference),
            interval: test.interval.map(change),
            starts: to.means.len(),
        })
    }

    fn held_against(&self, metric: Metric, operator: Operator, bound: Bound) -> Holding {
        let (number, show): (f64, &dyn Fn(f64) -> String) = match bound {
            Bound::Value(number) => (number, &|value| metric.show(value)),
            Bound::Change(number) => (number, &|value| metric.show_change(value)),
            Bound::Difference(number) => (number, &|value| {
                let sign = if value < 0.0 { "-" } else { "+" };
                format!("{sign}{}", metric.show(value.abs()))
            }),
        };
        let ends = [self.interval.low, self.interval.high];
        let holds = match ends.map(|end| operator.holds(end, number)) {
            [true, true] => Holds::Yes,
            [false, false] => Holds::No,
            _ => Holds::CannotTell,
        };
        let [low, high] = ends.map(show);
        let is_open = holds == Holds::CannotTell;
        Holding {
            holds,
            found: format!("{} {} ({low} to {high})", metric.name(), show(self.value)),
            starts_needed: is_open.then(|| self.starts_needed(number)).flatten(),
        }
    }

    /// How many starts would decide: intervals get narrower with the root of their number. None of
    /// a value that is the bound itself, such as no losses where none are allowed: its interval
    /// reaches beyond it, however narrow.
    fn starts_needed(&self, number: f64) -> Option<u64> {
        let distance = (self.value - number).abs();
        if distance == 0.0 {
            return None;
        }
        let reach = match number > self.value {
            true => self.interval.high - self.value,
            false => self.value - self.interval.low,
        };
        let times = (reach / distance).powi(2);
        let starts = (self.starts as f64 * times)
            .ceil()
            .max(self.starts as f64 + 1.0);
        (starts <= STARTS_MAX).then_some(starts as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::Condition;
    use crate::statistics::{Events, Range};

    fn cell(means: &[f64]) -> Nested {
        let starts: Vec<Vec<f64>> = means.iter().map(|mean| vec![*mean]).collect();
        Nested::new(&starts, Range::Positive, 0.95).unwrap()
    }

    fn holding(condition: &str, cell: &Nested, against: Option<&Nested>) -> Holding {
        let condition = Condition::require(condition).unwrap();
        condition.criterion.of_starts(cell, against, 0.95)
    }

    #[test]
    fn a_criterion_holds_in_all_of_the_interval_or_in_none_of_it() {
        let slow = cell(&[99.0, 100.0, 101.0]);
        let fast = cell(&[198.0, 200.0, 202.0]);
        let twice = holding("qps > +80%", &fast, Some(&slow));
        assert_eq!(twice.holds, Holds::Yes);
        assert!(twice.found.starts_with("qps +100.0 % (+95."), "{twice:?}");
        assert_eq!(holding("qps < +80%", &fast, Some(&slow)).holds, Holds::No);
        assert_eq!(holding("qps > +90", &fast, Some(&slow)).holds, Holds::Yes);
        assert_eq!(holding("qps < 90", &slow, None).holds, Holds::No);
        assert_eq!(holding("qps > 90", &slow, None).holds, Holds::Yes);
    }

    #[test]
    fn what_starts_leave_open_is_told_with_how_many_would_tell() {
        // Mean 100, of t with 2 degrees of freedom 2.484 to either side.
        let three = cell(&[99.0, 100.0, 101.0]);
        let open = holding("qps > 99", &three, None);
        assert_eq!(open.holds, Holds::CannotTell);
        assert_eq!(open.starts_needed, Some(19));
        let one = holding("qps > 1", &cell(&[100.0]), None);
        assert_eq!(one.holds, Holds::CannotTell);
        assert!(one.found.contains("fewer than two starts"), "{one:?}");
        // However many there are, their interval reaches beyond 100.
        assert_eq!(holding("qps <= 100", &three, None).starts_needed, None);
        let no_base = holding("qps > +1%", &three, None);
        assert_eq!(no_base.holds, Holds::CannotTell);
    }

    #[test]
    fn a_share_that_is_the_same_at_every_start_is_no_interval_but_a_number() {
        let none = cell(&[0.0, 0.0, 0.0]);
        assert_eq!(holding("loss < 0.1%", &none, None).holds, Holds::Yes);
        // Shares change by points, so that a change from 0 is one.
        assert_eq!(
            holding("loss < +0.1%", &none, Some(&none)).holds,
            Holds::Yes
        );
        // A rate of 0 has no change in percent.
        assert_eq!(
            holding("qps < +1%", &none, Some(&none)).holds,
            Holds::CannotTell
        );
    }

    #[test]
    fn a_figure_that_varies_by_more_than_it_is_has_no_impossible_interval() {
        let rough = cell(&[1_000.0, 9_000.0, 200.0]);
        let found = holding("qps > -1000", &rough, Some(&rough));
        assert_eq!(found.holds, Holds::CannotTell);
        let found = holding("p99 > 1ns", &rough, None);
        assert!(!found.found.contains('-'), "{found:?}");
        let shares: Vec<Vec<f64>> = [0.9, 0.99, 0.2].map(|it| vec![it]).to_vec();
        let shares = Nested::new(&shares, Range::Share, 0.95).unwrap();
        assert!(shares.interval.unwrap().high < 1.0);
        assert_eq!(
            holding("server.throttled < 100%", &shares, None).holds,
            Holds::Yes
        );
    }

    #[test]
    fn a_loss_that_is_rarer_than_one_in_all_queries_is_left_open() {
        let events = Events {
            some: 0,
            all: 79_000,
        };
        let none = cell(&[0.0, 0.0, 0.0]).with_events(events);
        assert_eq!(holding("loss < 0.01%", &none, None).holds, Holds::Yes);
        let found = holding("loss < 0.0002%", &none, None);
        assert_eq!(found.holds, Holds::CannotTell);
        assert_eq!(found.found, "loss 0 % (0 % to <0.01 %)");
        // The same against itself: it may have become more or less by what neither excludes.
        let change = holding("loss < +0.0002%", &none, Some(&none));
        assert_eq!(change.holds, Holds::CannotTell);
    }
}
