//! `throng run`: one run, or one for each point of a scenario's sweep, and what is printed of it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use lab::files::{self, Access, Opening};
use lab::live::{Live, Place};
use measure::RunRecord;

use crate::args::RunCommand;
use crate::conditions::{Conditions, exit_code};
use crate::failure::Failure;
use crate::records::{self, CheckpointFile, Destination, Links};
use crate::run::group::Group;
use crate::run::{self, Runner};
use crate::scenario::{self, Point, Source};
use crate::signals::{self, Interrupt};

/// How often it is looked whether the load has begun.
const BEGUN_EVERY: Duration = Duration::from_millis(1);

/// Runs and prints.
pub(crate) fn execute(command: &RunCommand) -> Result<ExitCode, Failure> {
    let runs = scenario::runs(Source::of_command(command)?, &command.run)?;
    execute_points(&runs, &watch())
}

/// Runs these groups of clients once, and prints. That file, if it is given, is made when their
/// load begins.
pub(crate) fn execute_groups(
    groups: Vec<Group>,
    begun: Option<PathBuf>,
) -> Result<ExitCode, Failure> {
    let interrupt = watch();
    if let Some(path) = begun {
        let interrupt = interrupt.clone();
        // It ends with the process, if the run never begins.
        thread::spawn(move || {
            while !interrupt.run_has_begun() {
                thread::park_timeout(BEGUN_EVERY);
            }
            // Who waits for a file that cannot be made sees the run end.
            let _ = files::open(&path, Opening::Emptied, Access::Umask);
        });
    }
    execute_points(&[(Point::default(), groups)], &interrupt)
}

fn watch() -> Interrupt {
    signals::watch(|| {
        tell!("ending the run; waiting for open queries (interrupt again to abort)");
    })
}

/// Runs once for each point of a sweep.
fn execute_points(
    runs: &[(Point, Vec<Group>)],
    interrupt: &Interrupt,
) -> Result<ExitCode, Failure> {
    let mut in_vain = false;
    let (mut printed, mut all_checks) = (String::new(), Vec::new());
    let first = runs.first().and_then(|(_, groups)| groups.first());
    let conditions = match first {
        Some(group) => Conditions::of_run(&group.output)?,
        None => Conditions::default(),
    };
    let live = Live::default();
    let is_quiet = first.is_some_and(|group| group.output.quiet);
    let runner = Runner::new(interrupt, &live, is_quiet);
    for (number, (point, groups)) in (1..).zip(runs) {
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
        live.begin(Place {
            name: match point.is_only() {
                true => String::new(),
                false => point.to_string(),
            },
            run: number,
            of: Some(runs.len() as u64),
        });
        // Virtual time takes none that anything could be lost in.
        let kept = destination
            .as_ref()
            .filter(|_| !groups[0].run.is_simulated());
        let mut kept = kept.and_then(|it| CheckpointFile::begin(&live, it));
        if number == runs.len() as u64 {
            runner.note_last();
        }
        let record = run::measure_groups(groups, &runner);
        if let Some(kept) = &mut kept {
            kept.stop();
        }
        let record = record?;
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
