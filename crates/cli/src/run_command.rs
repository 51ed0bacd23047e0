//! `throng run`: one run, or one for each point of a scenario's sweep, and what is printed of it.

use std::process::ExitCode;

use measure::RunRecord;

use crate::args::RunCommand;
use crate::conditions::{Conditions, exit_code};
use crate::failure::Failure;
use crate::records::{self, Destination, Links};
use crate::run;
use crate::run::group::Group;
use crate::scenario::{self, Point};
use crate::signals;

/// Runs and prints.
pub(crate) fn execute(command: &RunCommand) -> Result<ExitCode, Failure> {
    execute_points(&scenario::runs(command.scenario.as_deref(), &command.run)?)
}

/// Runs these groups of clients once, and prints.
pub(crate) fn execute_groups(groups: Vec<Group>) -> Result<ExitCode, Failure> {
    execute_points(&[(Point::default(), groups)])
}

/// Runs once for each point of a sweep.
fn execute_points(runs: &[(Point, Vec<Group>)]) -> Result<ExitCode, Failure> {
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
    for (point, groups) in runs {
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
