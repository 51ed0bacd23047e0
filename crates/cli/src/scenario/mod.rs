//! Scenario files: groups of clients, targets, events and sweeps.
//!
//! A group is a run of its own as far as flags go: those at the top of the file, those of its
//! table, and those of the command line, the later ones before the earlier. So every flag of
//! `throng run` has its key, with the same values, the same checks and the same errors.

mod events;
mod file;
mod groups;
pub(crate) mod keys;
pub(crate) mod schema;
mod sweep;
#[cfg(test)]
mod tests;
mod totals;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use crate::args::{Given, RunArguments, RunCommand};
use crate::failure::Failure;
use crate::habits;
use crate::inputs;
use crate::run::group::Group;
use file::ScenarioFile;

pub(crate) use file::{Reader, Trust, kind, scalar};
pub(crate) use keys::{beside, nearest};
pub(crate) use sweep::Point;

/// A scenario file that a run is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    path: &'a Path,
    trust: Trust,
}

impl<'a> Source<'a> {
    /// That of `throng run`, if it has one.
    ///
    /// # Errors
    /// The user trusts another file.
    pub(crate) fn of_command(command: &'a RunCommand) -> Result<Option<Source<'a>>, Failure> {
        let Some(path) = command.scenario.as_deref() else {
            return Ok(None);
        };
        let trust = match command.trust.as_deref() {
            None => Trust::Load,
            Some(trusted) if is_same_file(trusted, path) => Trust::Everything,
            Some(trusted) => {
                let what = format!("--trust {} is not the scenario", trusted.display());
                let hint = format!("write --trust {}, or leave it out", path.display());
                return Err(Failure::usage(what, hint));
            }
        };
        Ok(Some(Source { path, trust }))
    }

    /// One that an experiment names: what the user decides is in the experiment itself.
    pub(crate) fn of_experiment(path: &'a Path) -> Source<'a> {
        Source {
            path,
            trust: Trust::Load,
        }
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    one == other || real(one).is_some_and(|path| Some(path) == real(other))
}

/// The runs that flags ask for, with a scenario or without: the points of its sweep, each with its
/// groups of clients.
pub(crate) fn runs(
    source: Option<Source<'_>>,
    arguments: &RunArguments,
) -> Result<Vec<(Point, Vec<Group>)>, Failure> {
    match source {
        Some(source) => runs_of(&read(source)?, &arguments.given),
        None if arguments.profile.profile_mix => {
            runs_of(&ScenarioFile::of_flags(&arguments.given), &[])
        }
        None => Ok(vec![(Point::default(), vec![Group::plain(arguments)?])]),
    }
}

/// As [`runs`], where there is to be one.
pub(crate) fn only_run(
    source: Option<Source<'_>>,
    arguments: &RunArguments,
) -> Result<Vec<Group>, Failure> {
    let mut runs = runs(source, arguments)?;
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
    let runs = runs_of(&file::parse(path, text, Trust::Everything)?, &[])?;
    Ok(runs.iter().map(|(_, groups)| groups.len()).sum())
}

/// The flags that a scenario says anything about, and those for all of its groups.
pub(crate) struct Stated {
    pub(crate) names: BTreeSet<String>,
    pub(crate) top: Vec<Given>,
}

/// What a scenario states; none if it cannot be read, which the run will say.
pub(crate) fn stated(path: &Path) -> Option<Stated> {
    let trust = Trust::Everything;
    let file = read(Source { path, trust }).ok()?;
    let inner = [&file.clients, &file.events].into_iter().flatten();
    let tables = inner.chain(&file.sweep).chain([&file.top]);
    let names = tables.flat_map(|table| table.flags.iter().map(|given| given.name.clone()));
    let server = (!file.targets.is_empty()).then(|| "server".to_owned());
    let clients = (!file.clients.is_empty()).then(|| "clients".to_owned());
    Some(Stated {
        names: names.chain(server).chain(clients).collect(),
        top: file.top.flags,
    })
}

fn read(Source { path, trust }: Source<'_>) -> Result<ScenarioFile, Failure> {
    let text = inputs::text(path).map_err(|error| unreadable(path, &error))?;
    file::parse(path, &text, trust)
}

/// Why a scenario cannot be read; a server in its place belongs to a flag.
fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let name = path.display().to_string();
    if error.kind() != io::ErrorKind::NotFound {
        return Failure::usage(
            format!("cannot read the scenario {name}: {error}"),
            "give a TOML file; there are some in the folder scenarios",
        );
    }
    if name.starts_with('+') {
        let behind = || format!("write it behind a name in --names FILE: a.example A {name}");
        let cure = habits::dig_option(&name).unwrap_or_else(behind);
        return Failure::usage(format!("`{name}` is an option of dig"), cure);
    }
    let server = name.trim_start_matches('@');
    let cure = match habits::is_server(&name) {
        true => format!("to measure a server give --server {server}"),
        false if name.contains('/') || name.ends_with(".toml") => {
            "give a TOML file; there are some in the folder scenarios".to_owned()
        }
        false => format!("give a TOML file; a server is --server {name}"),
    };
    Failure::usage(format!("there is no scenario file `{name}`"), cure)
}
