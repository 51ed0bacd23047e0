//! `throng run`: one run, or one for each point of a scenario's sweep, and what is printed of it.

use std::process::ExitCode;

use lab::live::{Live, Place};
use measure::{EndedBy, RunRecord};
use report::Source as Made;

use crate::args::RunCommand;
use crate::conditions::{Conditions, exit_code};
use crate::failure::{ABORTED, Failure};
use crate::records::{self, CheckpointFile, Destination, Links};
use crate::reports::page_of_runs;
use crate::run::group::Group;
use crate::run::{self, Runner};
use crate::scenario::{self, Point, Source};
use crate::signals::{self, Interrupt};
use crate::views::Views;

/// Runs and prints.
pub(crate) fn execute(command: &RunCommand) -> Result<ExitCode, Failure> {
    let mut runs = scenario::runs(Source::of_command(command)?, &command.run)?;
    let points = runs.len() as u64;
    for group in runs.iter_mut().flat_map(|(_, groups)| groups) {
        group.runs = points;
    }
    execute_points(&runs, &watch(), "run")
}

/// Runs these groups of clients once for `command`, and prints.
pub(crate) fn execute_groups(groups: Vec<Group>, command: &str) -> Result<ExitCode, Failure> {
    execute_points(&[(Point::default(), groups)], &watch(), command)
}

/// Watches for signals, as a command that makes runs.
pub(crate) fn watch() -> Interrupt {
    signals::watch(|| {
        tell!("ending the run; waiting for open queries (interrupt again to abort)");
    })
}

/// Runs once for each point of a sweep, with agents that last for all of them.
fn execute_points(
    runs: &[(Point, Vec<Group>)],
    interrupt: &Interrupt,
    command: &str,
) -> Result<ExitCode, Failure> {
    let first = runs.first().and_then(|(_, groups)| groups.first());
    let is_quiet = first.is_some_and(|group| group.output.quiet);
    let live = Live::default();
    // Until the end of the command: a result that waits for its reader can still be scraped.
    let asked = first.map(|it| it.output.views.clone()).unwrap_or_default();
    let views = Views::begin(&live, &asked, command)?;
    let runner = Runner::new(interrupt, &live, is_quiet);
    let mut made = Vec::new();
    let keep = |record: &RunRecord, file: String| {
        if views.has_page() {
            made.push(Made::new(file, record.clone()));
        }
    };
    let concluded = make_points(runs, &runner, true, keep)?;
    views.finish(|| page_of_runs(made));
    Ok(concluded.exit_code())
}

/// How runs went that were made.
pub(crate) struct Concluded {
    /// One of them got nothing, or not all that it did is in its result.
    in_vain: bool,
    /// A condition of `--abort-if` ended one early.
    was_aborted: bool,
    /// The result of one is not as a condition demands.
    has_failed: bool,
}

impl Concluded {
    /// What is wrong with them, in short: more was printed.
    pub(crate) fn failure(&self) -> Option<&'static str> {
        match (self.in_vain, self.was_aborted, self.has_failed) {
            (true, ..) => Some("no response came, or not all that was done is in the result"),
            (_, true, _) => Some("a condition of --abort-if ended it early"),
            (_, _, true) => Some("a condition failed"),
            (false, false, false) => None,
        }
    }

    /// What is not in the result comes before what ended it, and that before what it is.
    fn exit_code(&self) -> ExitCode {
        match self.was_aborted && !self.in_vain {
            true => ExitCode::from(ABORTED),
            false => exit_code(self.in_vain, self.has_failed),
        }
    }
}

/// Runs once for each point of a sweep, prints, and hands each record to `keep` with the name of
/// its file. `is_all` if no further run of `runner` follows.
pub(crate) fn make_points(
    runs: &[(Point, Vec<Group>)],
    runner: &Runner<'_>,
    is_all: bool,
    mut keep: impl FnMut(&RunRecord, String),
) -> Result<Concluded, Failure> {
    let live = runner.live;
    let (mut in_vain, mut was_aborted) = (false, false);
    let (mut printed, mut results) = (String::new(), Vec::new());
    let conditions = Conditions::of_runs(runs.iter().map(|(_, groups)| groups.as_slice()))?;
    for (number, (point, groups)) in (1..).zip(runs) {
        let first = &groups[0].output;
        let file = first.record.as_deref().map(|path| point.file(path));
        let destination = (file.as_deref())
            .map(|file| Destination::check("--record", file, Links::with_force(first.force)))
            .transpose()?;
        if !point.is_only() {
            tell!("{point}");
        }
        let name = match point.is_only() {
            true => String::new(),
            false => point.to_string(),
        };
        live.begin(Place::new(name, number, Some(runs.len() as u64)));
        // Virtual time takes none that anything could be lost in.
        let kept = destination
            .as_ref()
            .filter(|_| !groups[0].run.is_simulated());
        let mut kept = kept.and_then(|it| CheckpointFile::begin(live, it));
        if is_all && number == runs.len() as u64 {
            runner.note_last();
        }
        let record = run::measure_groups(groups, runner);
        if let Some(kept) = &mut kept {
            kept.stop();
        }
        let mut record = record.map_err(|failure| conditions.fail("throng run", failure))?;
        record.conditions = conditions.check_run(&record);
        let rendered = |record: &RunRecord| {
            records::render(record, first.format, first.details, file.as_deref())
        };
        let text = records::hand_over(&record, destination.as_ref(), rendered)?;
        printed.push_str(first.format.excerpt(&text));
        let name = destination.as_ref().map(Destination::name);
        keep(&record, name.unwrap_or_else(|| format!("run {number}")));
        results.extend(record.conditions.iter().cloned());
        in_vain |= run::is_failure(&record);
        was_aborted |= record.aborted.is_some();
        if was_aborted || record.ended_by == EndedBy::Interrupted {
            break;
        }
    }
    if is_all {
        // Before anything is printed, which may wait for a reader.
        runner.end();
    }
    let has_failed = conditions.gate.conclude("throng run", &results, &printed)?;
    Ok(Concluded {
        in_vain,
        was_aborted,
        has_failed,
    })
}
