//! `throng run`: one run, or one for each point of a scenario's sweep, and what is printed of it.

use std::path::Path;
use std::process::ExitCode;

use measure::RunRecord;

use crate::args::RunArguments;
use crate::conditions::{Conditions, exit_code};
use crate::failure::Failure;
use crate::records::{self, Destination, Links};
use crate::run;
use crate::run::group::Group;
use crate::scenario;
use crate::signals;

/// Runs and prints.
pub(crate) fn execute(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    if arguments.profile.profile_mix {
        return execute_scenario(None, arguments);
    }
    execute_group(&Group::plain(arguments)?)
}

/// Runs a group of clients that is alone, and prints.
pub(crate) fn execute_group(group: &Group) -> Result<ExitCode, Failure> {
    let output = &group.output;
    let conditions = Conditions::of_run(output)?;
    let destination = Destination::of_record(output)?;
    let interrupt = signals::watch(|| {
        tell!("ending the run; waiting for open queries (interrupt again to abort)");
    });
    let record = run::measure(group, &interrupt)?;
    let rendered = |record: &RunRecord| records::render(record, output.format);
    let text = records::hand_over(&record, destination.as_ref(), rendered)?;
    let checks = conditions.check_run(&record);
    let has_failed = conditions.conclude("throng run", &checks, &text)?;
    Ok(exit_code(run::is_failure(&record), has_failed))
}

/// Runs a scenario: once, or once for each point of its sweep. Without one, runs the groups that
/// the flags make.
pub(crate) fn execute_scenario(
    path: Option<&Path>,
    arguments: &RunArguments,
) -> Result<ExitCode, Failure> {
    let runs = scenario::runs(path, arguments)?;
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
