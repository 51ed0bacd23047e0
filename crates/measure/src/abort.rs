//! Conditions that end a run early (`--abort-if`): `loss > 5%`, `p99 > 50ms for 5s`.
//!
//! A condition is met as soon as it holds in each of the newest intervals within its time, and in
//! all of them merged; without a time, in the newest interval alone. Merging adds counts and merges
//! histograms: no percentile is averaged. A condition is not met in an interval without any query
//! due, open or ended, nor in one in which its metric has no value, such as a percentile without a
//! response. Intervals of the warm-up are ignored.

use crate::aborted::Aborted;
use crate::condition::{Bound, Check, Condition, ConditionError, Criterion, Operator, Outcome};
use crate::interval::Interval;
use crate::metric::{Metric, Unit};
use crate::notation;

#[cfg(test)]
mod tests;

/// A condition that ends a run early.
#[derive(Clone, Debug, PartialEq)]
pub struct AbortCondition {
    /// All of it, with its time.
    condition: Condition,
    metric: Metric,
    operator: Operator,
    bound: f64,
    /// How long it has to hold; none for one interval.
    hold_ns: Option<u64>,
}

impl AbortCondition {
    /// Reads it.
    ///
    /// # Errors
    /// It cannot be parsed, would end a run because it is good, or its metric has no value during a
    /// run.
    pub fn parse(text: &str) -> Result<AbortCondition, ConditionError> {
        let text = text.trim();
        let (bounded, hold_ns) = match position_of_for(text) {
            None => (text, None),
            Some(at) => (&text[..at], Some(Condition::parse_hold(text, at)?)),
        };
        let condition = Condition::abort_if(text, bounded.trim_end())?;
        let Criterion::Bounded {
            metric,
            operator,
            bound: Bound::Value(bound),
        } = condition.criterion
        else {
            return Err(ConditionError {
                what: format!("`{text}`: a run that goes on shows no change"),
                hint: "give a value without a sign, as in 'p99 > 50ms for 5s'".into(),
            });
        };
        let is_part = condition.part.is_some();
        let is_known = |it: Metric| {
            is_known_in_intervals(it) && !(is_part && it.name().starts_with("service."))
        };
        if !is_known(metric) {
            let known = Metric::ALL.iter().copied().filter(|it| is_known(*it));
            let known: Vec<&str> = known.map(Metric::name).collect();
            let (name, of) = match is_part {
                true => (condition.subject(metric), "groups in intervals"),
                false => (metric.name().to_owned(), "intervals"),
            };
            return Err(ConditionError {
                what: format!("`{text}`: {name} cannot end a run early"),
                hint: format!("metrics of {of} are {}", known.join(", ")),
            });
        }
        Ok(AbortCondition {
            condition,
            metric,
            operator,
            bound,
            hold_ns,
        })
    }

    /// The same as a condition, with its time.
    pub fn condition(&self) -> &Condition {
        &self.condition
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.condition.text
    }

    /// How long it has to hold; none for one interval.
    pub fn hold_ns(&self) -> Option<u64> {
        self.hold_ns
    }

    /// Its result for a run that ended as `aborted` says.
    pub fn check(&self, aborted: Option<&Aborted>) -> Check {
        let condition = self.condition.clone();
        match aborted.filter(|it| it.condition == self.text()) {
            Some(aborted) => Check {
                condition,
                outcome: Outcome::Failed,
                found: format!("{}, the run was ended", aborted.found()),
            },
            None => Check {
                condition,
                outcome: Outcome::Passed,
                found: "it did not end the run".into(),
            },
        }
    }

    /// The value in an interval if the condition holds there.
    fn value_if_met(&self, interval: &Interval, goodput_rcodes: &[u16]) -> Option<f64> {
        let value = self.metric.of_interval(interval, goodput_rcodes)?;
        self.operator.holds(value, self.bound).then_some(value)
    }
}

/// Where the word `for` begins that separates a condition from its time.
fn position_of_for(text: &str) -> Option<usize> {
    let is_word = |at: &usize| {
        let is_blank = |letter: Option<char>| letter.is_none_or(char::is_whitespace);
        is_blank(text[..*at].chars().next_back()) && is_blank(text[at + 3..].chars().next())
    };
    // Names of groups have blanks.
    let after = text.rfind(']').unwrap_or(0);
    let positions = text.rmatch_indices("for").map(|(at, _)| at);
    positions.filter(|at| *at > after).find(is_word)
}

/// True if every interval has the metric, and what holds in each of several intervals holds in all
/// of them merged. Counts do so only where more is worse, since no bound below is taken for those.
fn is_known_in_intervals(metric: Metric) -> bool {
    use Metric::{
        Answered, ConnectionLosses, ExchangeFailures, Goodput, Loss, LostQueries, Max, Mean, Min,
        NotSent, Offered, P50, P90, P95, P99, P999, P9999, Qps, Sent, ServiceMean, ServiceP50,
        ServiceP99, Timeouts, TruncatedShare,
    };
    let is_rcode = metric.name().starts_with("rcode.") && metric.unit() == Unit::Share;
    is_rcode
        || matches!(
            metric,
            Answered
                | ConnectionLosses
                | ExchangeFailures
                | Goodput
                | Loss
                | LostQueries
                | Max
                | Mean
                | Min
                | NotSent
                | Offered
                | P50
                | P90
                | P95
                | P99
                | P999
                | P9999
                | Qps
                | Sent
                | ServiceMean
                | ServiceP50
                | ServiceP99
                | Timeouts
                | TruncatedShare
        )
}

impl Aborted {
    /// The metric's name, value and window: `loss is 12.5 % from 3.00 s to 6.00 s`.
    fn found(&self) -> String {
        let value = match AbortCondition::parse(&self.condition) {
            Ok(condition) => {
                let metric = condition.metric;
                let subject = condition.condition.subject(metric);
                format!("{subject} is {}", metric.show(self.value))
            }
            // Of a version that knows other metrics.
            Err(_) => format!("the value is {}", self.value),
        };
        let [from, until] = [self.from_ns, self.until_ns].map(notation::seconds);
        format!("{value} from {from} to {until}")
    }

    /// Why the run ended, in a sentence.
    pub fn sentence(&self) -> String {
        format!(
            "--abort-if '{}' ended the run early: {}",
            self.condition,
            self.found()
        )
    }
}

/// Looks at the intervals of a run as they end, for one condition.
#[derive(Clone, Debug)]
pub struct AbortWatch {
    condition: AbortCondition,
    goodput_rcodes: Vec<u16>,
    /// The newest successive intervals in each of which the condition holds, merged: a window of
    /// any length takes the memory of one interval.
    window: Option<Interval>,
}

impl AbortWatch {
    /// Of a run that has not begun, with these RCODEs as goodput.
    pub fn new(condition: AbortCondition, goodput_rcodes: &[u16]) -> AbortWatch {
        AbortWatch {
            condition,
            goodput_rcodes: goodput_rcodes.to_vec(),
            window: None,
        }
    }

    /// Takes in the next interval of the measured run, or of the part of it that the condition is
    /// about; what was found if the run has to end.
    pub fn add_interval(&mut self, interval: &Interval) -> Option<Aborted> {
        let condition = &self.condition;
        let is_met = |it: &Interval| condition.value_if_met(it, &self.goodput_rcodes);
        if is_idle(interval) || is_met(interval).is_none() {
            self.window = None;
            return None;
        }
        interval.append_to(&mut self.window);
        let window = self.window.as_ref()?;
        let is_long_enough = window.length_ns() >= condition.hold_ns.unwrap_or(0);
        let value = is_met(window).filter(|_| is_long_enough)?;
        Some(Aborted {
            condition: condition.text().to_owned(),
            value,
            from_ns: window.start_ns,
            until_ns: window.end_ns,
        })
    }
}

/// True if no query was due, open or ended.
fn is_idle(interval: &Interval) -> bool {
    let counts = &interval.counts;
    counts.offered == 0 && counts.responses == 0 && counts.lost() == 0 && interval.in_flight_ns == 0
}
