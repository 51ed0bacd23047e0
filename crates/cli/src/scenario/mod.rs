//! Scenario files: groups of clients, targets, events and sweeps.
//!
//! A group is a run of its own as far as flags go: those at the top of the file, those of its
//! table, and those of the command line, the later ones before the earlier. So every flag of
//! `throng run` has its key, with the same values, the same checks and the same errors.

mod events;
mod file;
mod groups;
mod keys;
mod schema;
mod sweep;
#[cfg(test)]
mod tests;
mod totals;

use std::path::Path;
use std::process::ExitCode;

use measure::RunRecord;

use crate::args::RunArguments;
use crate::conditions::{Conditions, exit_code};
use crate::failure::Failure;
use crate::inputs;
use crate::records::{self, Destination, Links};
use crate::run;
use crate::signals;
use file::ScenarioFile;
use sweep::Point;

pub(crate) use file::{Reader, kind, scalar};
pub(crate) use groups::{Group, share_rounds};
pub(crate) use keys::{Given, beside, given, nearest};
pub(crate) use schema::schema;

/// The runs of a scenario: the points of its sweep, each with its groups of clients.
fn runs(
    path: Option<&Path>,
    arguments: &RunArguments,
) -> Result<Vec<(Point, Vec<Group>)>, Failure> {
    match path {
        Some(path) => runs_of(&read(path)?, &arguments.given),
        None => runs_of(&ScenarioFile::of_flags(&arguments.given), &[]),
    }
}

fn runs_of(
    file: &ScenarioFile,
    command_line: &[Given],
) -> Result<Vec<(Point, Vec<Group>)>, Failure> {
    let mut runs = Vec::new();
    for point in sweep::points(file)? {
        let groups = groups::compile(file, &point, command_line)?;
        runs.push((point, groups));
    }
    Ok(runs)
}

/// How many groups the runs have of a scenario with this text.
pub(crate) fn groups_in(path: &Path, text: &str) -> Result<usize, Failure> {
    let runs = runs_of(&file::parse(path, text)?, &[])?;
    Ok(runs.iter().map(|(_, groups)| groups.len()).sum())
}

fn read(path: &Path) -> Result<ScenarioFile, Failure> {
    let text = inputs::text(path).map_err(|error| {
        Failure::usage(
            format!("cannot read the scenario {}: {error}", path.display()),
            "give a TOML file; there are some in the folder scenarios",
        )
    })?;
    file::parse(path, &text)
}

/// Runs a scenario: once, or once for each point of its sweep. Without one, runs the groups that
/// the flags make.
pub(crate) fn execute(path: Option<&Path>, arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let runs = runs(path, arguments)?;
    let interrupt = signals::watch(|| {
        tell!("ending the run; waiting for open queries (interrupt again to abort)");
    });
    let mut in_vain = false;
    let (mut printed, mut all_checks) = (String::new(), Vec::new());
    let first = runs.first().and_then(|(_, groups)| groups.first());
    let conditions = match first {
        Some(group) => Conditions::of_run(&group.output)?,
        None => Conditions::default(),
    };
    for (point, groups) in &runs {
        let first = &groups[0].output;
        let destination = (first.record.as_deref())
            .map(|path| {
                let links = Links::with_force(first.force);
                Destination::check("--record", &point.file(path), links)
            })
            .transpose()?;
        if !point.is_only() {
            tell!("{point}");
        }
        let record = run::measure_groups(groups, &interrupt)?;
        let rendered = |record: &RunRecord| records::render(record, first.format);
        let text = records::hand_over(&record, destination.as_ref(), rendered)?;
        printed.push_str(&text);
        all_checks.extend(conditions.check_run(&record));
        in_vain |= run::is_failure(&record);
        if record.ended_by == measure::record::EndedBy::Interrupted {
            break;
        }
    }
    let has_failed = conditions.conclude("throng run", &all_checks, &printed)?;
    Ok(exit_code(in_vain, has_failed))
}
