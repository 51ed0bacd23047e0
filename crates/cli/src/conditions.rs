//! `--fail-if` and `--require`: read before anything starts, checked on the result.

use std::path::Path;
use std::process::ExitCode;

use measure::RunRecord;
use measure::condition::{Check, Condition, ConditionError, Outcome};

use crate::args::Output;
use crate::args::compare::ConditionArguments;
use crate::failure::{CONDITION_FAILED, Failure};
use crate::records::{Destination, Links};

/// The conditions of one command.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    conditions: Vec<Condition>,
    junit: Option<Destination>,
    /// True if what is undecided fails.
    is_strict: bool,
}

impl Conditions {
    /// Those of a comparison.
    pub(crate) fn of_comparison(
        arguments: &ConditionArguments,
        (is_strict, links): (bool, Links),
    ) -> Result<Self, Failure> {
        let mut conditions = Vec::new();
        for text in &arguments.fail_if {
            conditions.push(read("--fail-if", Condition::fail_if(text))?);
        }
        for text in &arguments.require {
            conditions.push(read("--require", Condition::require(text))?);
        }
        let junit = |path: &Path| Destination::check("--junit", path, links);
        Ok(Conditions {
            junit: arguments.junit.as_deref().map(junit).transpose()?,
            conditions,
            is_strict,
        })
    }

    /// Those of a run, which has nothing to be compared with.
    pub(crate) fn of_run(output: &Output) -> Result<Self, Failure> {
        let links = Links::with_force(output.force);
        let conditions = Conditions::of_comparison(&output.conditions, (false, links))?;
        let change = conditions
            .conditions
            .iter()
            .find(|it| it.needs_comparison());
        match change {
            Some(condition) => Err(Failure::usage(
                format!("{}: a run alone shows no change", condition.as_flag()),
                "give a value without a sign, as in 'p99 > 5ms'; throng compare takes changes",
            )),
            None => Ok(conditions),
        }
    }

    /// Checks them on a run.
    pub(crate) fn check_run(&self, record: &RunRecord) -> Vec<Check> {
        let each = self.conditions.iter();
        each.map(|condition| condition.check_run(record)).collect()
    }

    /// Checks them on a comparison.
    pub(crate) fn check_comparison(&self, comparison: &measure::AbComparison) -> Vec<Check> {
        let each = self.conditions.iter();
        each.map(|condition| comparison.check(condition)).collect()
    }

    /// Says on standard error what came of each, and writes the file for CI; true if one failed.
    /// `printed` is what the command printed.
    pub(crate) fn conclude(
        &self,
        command: &str,
        checks: &[Check],
        printed: &str,
    ) -> Result<bool, Failure> {
        for check in checks {
            tell!("{}", check.line());
        }
        if let Some(junit) = &self.junit {
            junit.write_text(&report::junit::render(command, checks, printed))?;
        }
        let fails = |check: &Check| match check.outcome {
            Outcome::Passed => false,
            Outcome::Failed => true,
            Outcome::Undecided => self.is_strict,
        };
        Ok(checks.iter().any(fails))
    }
}

/// The exit code of a run: no response at all comes before a condition that failed.
pub(crate) fn exit_code(in_vain: bool, has_failed: bool) -> ExitCode {
    match (in_vain, has_failed) {
        (true, _) => ExitCode::from(1),
        (false, true) => ExitCode::from(CONDITION_FAILED),
        (false, false) => ExitCode::SUCCESS,
    }
}

fn read(flag: &str, condition: Result<Condition, ConditionError>) -> Result<Condition, Failure> {
    condition.map_err(|error| Failure::usage(format!("{flag} {}", error.what), error.hint))
}
