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

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crate::args::RunArguments;
use crate::failure::{Failure, print};
use crate::records::{self, Destination};
use crate::run;
use crate::signals;

pub(crate) use groups::Group;
pub(crate) use keys::{Given, given};
pub(crate) use schema::schema;

/// Runs a scenario: once, or once for each point of its sweep.
pub(crate) fn execute(path: &Path, arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::usage(
            format!("cannot read the scenario {}: {error}", path.display()),
            "give a TOML file; there are some in the folder scenarios",
        )
    })?;
    let file = file::parse(path, &text)?;
    let points = sweep::points(&file)?;
    let mut runs = Vec::new();
    for point in &points {
        let groups = groups::compile(&file, point, &arguments.given)?;
        runs.push((point, groups));
    }
    let interrupt = signals::watch(|| {
        eprintln!("ending the run; waiting for open queries (again to abort)");
    });
    let mut in_vain = false;
    for (point, groups) in &runs {
        let first = &groups[0].arguments;
        let destination = (first.record.as_deref())
            .map(|path| Destination::check("--record", &point.file(path)))
            .transpose()?;
        if !point.is_only() {
            eprintln!("{point}");
        }
        let record = run::measure_groups(groups, &interrupt)?;
        if let Some(destination) = &destination {
            destination.write(&record)?;
        }
        print(&records::render(&record, first.format))?;
        in_vain |= run::was_in_vain(&record);
        if record.ended_by == measure::record::EndedBy::Interrupted {
            break;
        }
    }
    Ok(match in_vain {
        false => ExitCode::SUCCESS,
        true => ExitCode::from(1),
    })
}
