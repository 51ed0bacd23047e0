//! `--fail-if`, `--require` and `--abort-if`: read before anything starts, checked on the result.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use measure::abort::AbortCondition;
use measure::condition::{
    Bound, Check, Condition, ConditionError, ConditionRecord, Criterion, Outcome,
};
use measure::{AbComparison, RunRecord};
use report::Answer;

use crate::args::Format;
use crate::args::compare::{ConditionArguments, Undecided};
use crate::failure::{CONDITION_FAILED, Failure};
use crate::records::{Destination, Links};
use crate::run::group::Group;
use crate::streams;

/// The conditions of one command.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    conditions: Vec<Condition>,
    abort_if: Vec<AbortCondition>,
    /// What a condition that fails does, and where that is written.
    pub(crate) gate: Gate,
}

/// What the results of conditions do: they decide the exit code, and fill the file for CI.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    junit: Option<Destination>,
    /// True if what is undecided fails.
    is_strict: bool,
}

impl Gate {
    /// As `--junit` and `--undecided` say.
    pub(crate) fn new(
        junit: Option<&Path>,
        undecided: Undecided,
        links: Links,
    ) -> Result<Self, Failure> {
        let junit = junit.map(|path| Destination::check("--junit", path, links));
        Ok(Gate {
            junit: junit.transpose()?,
            is_strict: undecided == Undecided::Fail,
        })
    }

    /// As the flags of a run say.
    pub(crate) fn of(arguments: &ConditionArguments, links: Links) -> Result<Self, Failure> {
        Gate::new(arguments.junit.as_deref(), arguments.undecided, links)
    }

    fn fails(&self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Passed => false,
            Outcome::Failed => true,
            Outcome::Undecided => self.is_strict,
        }
    }

    /// As [`Gate::conclude`] for what a result decides by itself. Without `--undecided fail` it
    /// fails nothing, and without a file either it is in the result alone.
    pub(crate) fn conclude_answer(
        &self,
        answer: &Answer,
        (format, text): (Format, &str),
    ) -> Result<bool, Failure> {
        let printed = format.excerpt(text);
        match self.is_strict || self.junit.is_some() {
            true => self.conclude(answer.command(), answer.decisions(), printed),
            false => Ok(false),
        }
    }

    /// Says on standard error what came of each, and writes the file for CI; true if one failed.
    /// `printed` is what the command printed.
    pub(crate) fn conclude(
        &self,
        command: &str,
        results: &[ConditionRecord],
        printed: &str,
    ) -> Result<bool, Failure> {
        let fails = |outcome| self.fails(outcome);
        let is_annotated = streams::variable("GITHUB_ACTIONS").is_some_and(|it| it == "true");
        for result in results {
            let line = result.line();
            tell!("{line}");
            // A command of GitHub's runner, in which a percent sign begins an escape.
            if is_annotated && fails(result.outcome) {
                let line = line.replace('%', "%25").replace('\n', "%0A");
                tell!("::error title={command}::{line}");
            }
        }
        if let Some(junit) = &self.junit {
            junit.write_text(&report::junit::render(command, (results, fails), printed))?;
        }
        Ok(results.iter().any(|it| fails(it.outcome)))
    }
}

impl Conditions {
    /// Those of a comparison.
    pub(crate) fn of_comparison(
        arguments: &ConditionArguments,
        (is_strict, links): (bool, Links),
    ) -> Result<Self, Failure> {
        let mut all = Conditions::read(arguments, links)?;
        all.gate.is_strict |= is_strict;
        match all.conditions.iter().find(|it| it.part.is_some()) {
            Some(condition) => Err(Failure::usage(
                format!("{}: a comparison is of whole runs", condition.as_flag()),
                "leave out the name in brackets; throng run takes it",
            )),
            None => Ok(all),
        }
    }

    fn read(arguments: &ConditionArguments, links: Links) -> Result<Self, Failure> {
        let mut conditions = Vec::new();
        for text in &arguments.fail_if {
            conditions.push(read("--fail-if", Condition::fail_if(text))?);
        }
        for text in &arguments.require {
            conditions.push(read("--require", Condition::require(text))?);
        }
        Ok(Conditions {
            conditions,
            abort_if: Vec::new(),
            gate: Gate::of(arguments, links)?,
        })
    }

    /// Those of runs, which the first group of the first run states. Runs have nothing to be
    /// compared with.
    pub(crate) fn of_runs<'a>(
        runs: impl Iterator<Item = &'a [Group]> + Clone,
    ) -> Result<Self, Failure> {
        let Some(first) = runs.clone().find_map(|groups| groups.first()) else {
            return Ok(Conditions::default());
        };
        let links = Links::with_force(first.output.force);
        let mut all = Conditions::read(&first.output.conditions, links)?;
        if let Some(condition) = all.conditions.iter().find(|it| it.needs_comparison()) {
            return Err(Failure::usage(
                format!("{}: a run alone shows no change", condition.as_flag()),
                "give a value without a sign, as in 'p99 > 5ms'; throng compare takes changes",
            ));
        }
        all.abort_if = parse_all(&first.run.limits.abort_if)?;
        for groups in runs {
            all.check_parts(groups)?;
        }
        Ok(all)
    }

    /// Refuses those about a group of clients or a transport that the run does not have.
    fn check_parts(&self, groups: &[Group]) -> Result<(), Failure> {
        let aborting = self.abort_if.iter().map(AbortCondition::condition);
        for condition in self.conditions.iter().chain(aborting) {
            let known = groups.iter();
            let known = known.map(|group| (group.name.as_str(), group.run.transport));
            (condition.positions(known)).map_err(|error| {
                Failure::usage(format!("{} {}", condition.flag(), error.what), error.hint)
            })?;
        }
        Ok(())
    }

    /// Checks them on a run.
    pub(crate) fn check_run(&self, record: &RunRecord) -> Vec<ConditionRecord> {
        let aborted = record.aborted.as_ref();
        let aborting = self.abort_if.iter().map(|it| it.check(aborted));
        let limit = record.verdict.limit;
        let doubt = (limit.is_doubtful()).then(|| format!("the limit is {}", limit.name()));
        let each = self.conditions.iter().map(|condition| {
            let check = condition.check_run(record);
            self.with_doubt(check, doubt.as_deref())
        });
        aborting.chain(each).map(ConditionRecord::from).collect()
    }

    /// Checks them on a comparison.
    pub(crate) fn check_comparison(&self, comparison: &AbComparison) -> Vec<ConditionRecord> {
        let doubt = comparison.of_generator();
        let doubt = doubt.map(|sides| format!("{sides} measured the generator"));
        let each = self.conditions.iter().map(|condition| {
            let check = comparison.check(condition);
            match is_of_value(condition) {
                true => self.with_doubt(check, doubt.as_deref()),
                // What is found of changes has that doubt already.
                false => check,
            }
        });
        each.map(ConditionRecord::from).collect()
    }

    /// A condition that holds says nothing of the target if something else set the figures.
    fn with_doubt(&self, check: Check, doubt: Option<&str>) -> Check {
        match doubt.filter(|_| self.gate.is_strict && check.outcome == Outcome::Passed) {
            None => check,
            Some(doubt) => Check {
                outcome: Outcome::Undecided,
                found: format!("{}; {doubt}", check.found),
                ..check
            },
        }
    }

    /// Writes the file for CI where there is no result because of this failure.
    pub(crate) fn fail(&self, command: &str, failure: Failure) -> Failure {
        let Some(junit) = &self.gate.junit else {
            return failure;
        };
        let flags: Vec<String> = self.conditions.iter().map(Condition::as_flag).collect();
        let text = report::junit::render_error(command, &flags, failure.what());
        // That the file cannot be written says less than the failure itself.
        let _ = junit.write_text(&text);
        failure.in_junit()
    }
}

fn is_of_value(condition: &Condition) -> bool {
    let Criterion::Bounded { bound, .. } = condition.criterion else {
        return false;
    };
    matches!(bound, Bound::Value(_))
}

/// The exit code of a run: no response at all comes before a condition that failed.
pub(crate) fn exit_code(in_vain: bool, has_failed: bool) -> ExitCode {
    match (in_vain, has_failed) {
        (true, _) => ExitCode::from(1),
        (false, true) => ExitCode::from(CONDITION_FAILED),
        (false, false) => ExitCode::SUCCESS,
    }
}

/// The texts of `--abort-if`, which have been read.
pub(crate) fn abort_if(texts: &[String]) -> Result<Vec<String>, Failure> {
    let read = parse_all(texts)?;
    Ok(read.iter().map(|it| it.text().to_owned()).collect())
}

/// Refuses a condition that has to hold for longer than load is offered.
pub(crate) fn check_fits(texts: &[String], duration: Option<Duration>) -> Result<(), Failure> {
    let load = duration.unwrap_or(Duration::MAX);
    for condition in parse_all(texts)? {
        let hold = condition.hold_ns().map(Duration::from_nanos);
        if hold.is_some_and(|hold| hold >= load) {
            return Err(Failure::usage(
                format!(
                    "--abort-if '{}': the run lasts {load:?}, which is not longer",
                    condition.text()
                ),
                "give a shorter time after `for`, or a longer --duration",
            ));
        }
    }
    Ok(())
}

fn parse_all(texts: &[String]) -> Result<Vec<AbortCondition>, Failure> {
    let texts = texts.iter();
    let each = texts.map(|text| read("--abort-if", AbortCondition::parse(text)));
    each.collect()
}

fn read<T>(flag: &str, condition: Result<T, ConditionError>) -> Result<T, Failure> {
    condition.map_err(|error| Failure::usage(format!("{flag} {}", error.what), error.hint))
}
