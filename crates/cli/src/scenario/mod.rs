//! Scenario files: groups of clients, targets, events and sweeps.
//!
//! A group is a run of its own as far as flags go: those at the top of the file, those of its
//! table, and those of the command line, the later ones before the earlier. So every flag of
//! `throng run` has its key, with the same values, the same checks and the same errors.

mod events;
mod file;
mod groups;
pub(crate) mod keys;
mod schema;
mod sweep;
#[cfg(test)]
mod tests;
mod totals;

use std::path::Path;

use crate::args::{Given, RunArguments};
use crate::failure::Failure;
use crate::inputs;
use crate::run::group::Group;
use file::ScenarioFile;

pub(crate) use file::{Reader, kind, scalar};
pub(crate) use keys::{beside, nearest};
pub(crate) use schema::schema;
pub(crate) use sweep::Point;

/// The runs that flags ask for, with a scenario or without: the points of its sweep, each with its
/// groups of clients.
pub(crate) fn runs(
    path: Option<&Path>,
    arguments: &RunArguments,
) -> Result<Vec<(Point, Vec<Group>)>, Failure> {
    match path {
        Some(path) => runs_of(&read(path)?, &arguments.given),
        None if arguments.profile.profile_mix => {
            runs_of(&ScenarioFile::of_flags(&arguments.given), &[])
        }
        None => Ok(vec![(Point::default(), vec![Group::plain(arguments)?])]),
    }
}

/// As [`runs`], where there is to be one.
pub(crate) fn only_run(
    path: Option<&Path>,
    arguments: &RunArguments,
) -> Result<Vec<Group>, Failure> {
    let mut runs = runs(path, arguments)?;
    match runs.len() {
        1 => Ok(runs.remove(0).1),
        points => Err(Failure::usage(
            format!("its sweep is {points} runs, and one is needed"),
            "leave [sweep] out of the scenario and vary the flag from outside",
        )),
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
