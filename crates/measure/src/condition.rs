//! Conditions on a result, for scripts and CI: `p99 > 5ms`, `qps < -5%`, `slower`.
//!
//! A number with a sign is a change from A to B, which needs a comparison: `+10%` of what it was,
//! or `+1ms` more; of shares such as the loss, `+0.1%` is in points. One without a sign is a value.
//! `slower` and `p99 slower` ask what a comparison found, and are met only by differences that are
//! no noise. `p99[phones] > 5ms` is about one group of clients, `p99[dot] > 5ms` about all groups
//! over one transport.

use crate::metric::{Better, Metric, Unit};
use crate::record::RunRecord;

mod parse;
mod part;
mod starts;
#[cfg(test)]
mod tests;

pub use crate::outcome::{ConditionRecord, Outcome};
pub use starts::{Holding, Holds};

/// A condition and what it means if it is met.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// As it was written.
    pub text: String,
    /// Meaning of a met condition.
    pub purpose: Purpose,
    /// What it says.
    pub criterion: Criterion,
    /// The group of clients or the transport that it is about; none for the whole run.
    pub part: Option<String>,
}

/// Meaning of a met condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// `--fail-if`: the command fails.
    FailIf,
    /// `--require`: the result is as it must be.
    Require,
    /// `--abort-if`: the run ends early.
    AbortIf,
}

/// What a condition says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Criterion {
    /// A metric is above or below a bound.
    Bounded {
        /// The metric.
        metric: Metric,
        /// How it has to stand to the bound.
        operator: Operator,
        /// The bound.
        bound: Bound,
    },
    /// A metric, or any of them, was found to be slower.
    Slower(Option<Metric>),
}

/// How a figure stands to a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// The threshold of a figure, in the unit of its metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// The figure itself.
    Value(f64),
    /// How much of what it was it changed by: 0.1 is 10 % more. Of shares: by how much it changed.
    Change(f64),
    /// By how much it changed.
    Difference(f64),
}

/// What is wrong with a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionError {
    /// The condition, the column, and what is wrong there.
    pub what: String,
    /// The cure.
    pub hint: String,
}

/// The result of a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The condition.
    pub condition: Condition,
    /// Whether it is as it must be.
    pub outcome: Outcome,
    /// What was found, in words.
    pub found: String,
}

impl Operator {
    /// True if `figure` stands so to `bound`.
    pub fn holds(self, figure: f64, bound: f64) -> bool {
        match self {
            Operator::Less => figure < bound,
            Operator::LessOrEqual => figure <= bound,
            Operator::Greater => figure > bound,
            Operator::GreaterOrEqual => figure >= bound,
        }
    }

    /// True if it asks for a figure above the bound.
    fn is_upward(self) -> bool {
        matches!(self, Operator::Greater | Operator::GreaterOrEqual)
    }

    fn opposite(self) -> &'static str {
        match self {
            Operator::Less => ">=",
            Operator::LessOrEqual => ">",
            Operator::Greater => "<=",
            Operator::GreaterOrEqual => "<",
        }
    }
}

impl Condition {
    /// The condition of `--fail-if`: the run fails if it is met.
    ///
    /// # Errors
    /// It cannot be understood, or would fail a result because it is good.
    pub fn fail_if(text: &str) -> Result<Condition, ConditionError> {
        let (criterion, part) = parse::criterion(text)?;
        let condition = Condition {
            text: text.trim().to_owned(),
            purpose: Purpose::FailIf,
            criterion,
            part,
        };
        condition.refuse_if_good()?;
        Ok(condition)
    }

    /// The condition of `--require`: the run fails if it is not met.
    ///
    /// # Errors
    /// It cannot be understood.
    pub fn require(text: &str) -> Result<Condition, ConditionError> {
        let (criterion, part) = parse::criterion(text)?;
        if let Criterion::Slower(_) = criterion {
            return Err(ConditionError {
                what: format!("`{text}` cannot be required"),
                hint: "--fail-if slower is the opposite".into(),
            });
        }
        Ok(Condition {
            text: text.trim().to_owned(),
            purpose: Purpose::Require,
            criterion,
            part,
        })
    }

    /// The condition `bounded` of `--abort-if`, whose whole text has a time too.
    pub(crate) fn abort_if(text: &str, bounded: &str) -> Result<Condition, ConditionError> {
        let (criterion, part) = parse::criterion(bounded)?;
        let condition = Condition {
            text: text.to_owned(),
            purpose: Purpose::AbortIf,
            criterion,
            part,
        };
        condition.refuse_if_good()?;
        Ok(condition)
    }

    /// The time behind the word `for`, which begins at that byte, in nanoseconds.
    pub(crate) fn parse_hold(text: &str, at: usize) -> Result<u64, ConditionError> {
        parse::hold(text, at)
    }

    /// True if it must hold, false if it must not.
    pub(crate) fn is_required(&self) -> bool {
        self.purpose == Purpose::Require
    }

    fn refuse_if_good(&self) -> Result<(), ConditionError> {
        match self.criterion {
            Criterion::Bounded {
                metric, operator, ..
            } if metric.better() != Better::Neither
                && operator.is_upward() == metric.is_better_higher() =>
            {
                let sense = match metric.is_better_higher() {
                    true => "high",
                    false => "low",
                };
                let (whole, opposite) = (&self.text, operator.opposite());
                let (verb, hint) = match self.purpose {
                    Purpose::AbortIf => (
                        "end a run",
                        format!("--abort-if takes what must not be, with `{opposite}`"),
                    ),
                    Purpose::FailIf | Purpose::Require => (
                        "fail a result",
                        format!(
                            "--require '{whole}' says what must hold; --fail-if takes what must \
                             not, with `{opposite}`"
                        ),
                    ),
                };
                let name = metric.name();
                Err(ConditionError {
                    what: format!(
                        "`{whole}` would {verb} because its {name} is {sense}, which is good"
                    ),
                    hint,
                })
            }
            _ => Ok(()),
        }
    }

    /// True if it is about a change, and so needs two sides.
    pub fn needs_comparison(&self) -> bool {
        !matches!(
            self.criterion,
            Criterion::Bounded {
                bound: Bound::Value(_),
                ..
            }
        )
    }

    /// Checks it on a single run. One that needs a comparison is undecided.
    pub fn check_run(&self, record: &RunRecord) -> Check {
        let Criterion::Bounded {
            metric,
            operator,
            bound: Bound::Value(bound),
        } = self.criterion
        else {
            let found = "a single run shows no change".into();
            return self.outcome(Outcome::Undecided, found);
        };
        let value = match &self.part {
            None => metric.of(record),
            Some(part) => part::interval_of(part, record)
                .and_then(|interval| metric.of_part(record, &interval)),
        };
        self.check_value(metric, operator, bound, value)
    }

    /// Checks a bound on a value that was measured, or was not.
    pub(crate) fn check_value(
        &self,
        metric: Metric,
        operator: Operator,
        bound: f64,
        value: Option<f64>,
    ) -> Check {
        match value {
            Some(value) => {
                let found = format!("{} is {}", self.subject(metric), metric.show(value));
                let as_it_must_be = operator.holds(value, bound) == self.is_required();
                let outcome = match as_it_must_be {
                    true => Outcome::Passed,
                    false => Outcome::Failed,
                };
                self.outcome(outcome, found)
            }
            None => {
                let needs = metric.needs();
                let needs = needs.map_or_else(String::new, |what| format!(": it takes {what}"));
                let found = format!("{} was not measured{needs}", self.subject(metric));
                self.outcome(self.without_evidence(), found)
            }
        }
    }

    /// Its metric, with the part of the run that it is about: `p99`, `p99[dot]`.
    pub(crate) fn subject(&self, metric: Metric) -> String {
        match &self.part {
            None => metric.name().to_owned(),
            Some(part) => format!("{}[{part}]", metric.name()),
        }
    }

    /// The result without a measurement: a requirement then fails.
    pub(crate) fn without_evidence(&self) -> Outcome {
        match self.is_required() {
            true => Outcome::Failed,
            false => Outcome::Undecided,
        }
    }

    pub(crate) fn outcome(&self, outcome: Outcome, found: String) -> Check {
        Check {
            condition: self.clone(),
            outcome,
            found,
        }
    }

    /// Its flag.
    pub fn flag(&self) -> &'static str {
        match self.purpose {
            Purpose::FailIf => "--fail-if",
            Purpose::Require => "--require",
            Purpose::AbortIf => "--abort-if",
        }
    }

    /// The flag and the condition, as on a command line.
    pub fn as_flag(&self) -> String {
        format!("{} '{}'", self.flag(), self.text)
    }
}

impl From<Check> for ConditionRecord {
    fn from(check: Check) -> Self {
        ConditionRecord {
            condition: check.condition.as_flag(),
            outcome: check.outcome,
            found: check.found,
        }
    }
}
