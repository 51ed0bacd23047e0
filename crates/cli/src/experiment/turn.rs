//! One run of an experiment, in a process of its own.

use std::fs;
use std::process::{Command, ExitStatus, Stdio};

use measure::RunRecord;
use measure::metric::Metric;
use measure::record::EndedBy;

use super::cells::{Run, Turn};
use super::file::Experiment;
use super::folder::Folder;
use super::gate;
use super::hooks::{Hooks, Shell};
use crate::child;
use crate::failure::Failure;
use crate::signals::Interrupt;

/// Hooks, run, hooks; its figures in a line.
pub(super) fn make(
    experiment: &Experiment,
    turn: &Turn,
    folder: &Folder,
    interrupt: &Interrupt,
) -> Result<String, Failure> {
    let log = folder.hooks_log()?;
    let shell = Shell {
        experiment: &experiment.name,
        turn,
        log: &log,
        interrupt,
    };
    let all: Vec<&Hooks> = [&experiment.hooks].into_iter().chain(&turn.hooks).collect();
    let made = (all.iter())
        .try_for_each(|hooks| shell.before(hooks))
        .and_then(|()| runs(experiment, turn, folder, interrupt));
    // The last that was set up is the first that is cleaned up.
    all.iter().rev().for_each(|hooks| shell.after(hooks));
    made
}

/// All runs of one start; the figures of the last.
fn runs(
    experiment: &Experiment,
    turn: &Turn,
    folder: &Folder,
    interrupt: &Interrupt,
) -> Result<String, Failure> {
    let server = turn.server.as_ref();
    let started = server.map(|it| it.start(&turn.flags)).transpose()?;
    if let Some((server, started)) = server.zip(started.as_ref()) {
        gate::check(server, started, &turn.flags, interrupt)?;
    }
    let further = started.as_ref().map_or(&[][..], |it| &it.flags);
    let mut figures = String::new();
    for run in Run::all(turn, experiment.runs_per_start) {
        figures = make_one(&run, further, folder, interrupt)?;
    }
    Ok(figures)
}

fn make_one(
    run: &Run<'_>,
    further: &[String],
    folder: &Folder,
    interrupt: &Interrupt,
) -> Result<String, Failure> {
    let unfinished = folder.unfinished(run);
    let status = start_and_wait(run, further, folder, interrupt)?;
    let (turn, name) = (run.turn, run.name());
    let failed = |why: String| Failure::in_operation(format!("{turn}: {why}; see logs/{name}.txt"));
    let text = fs::read_to_string(&unfinished)
        .map_err(|_| failed(format!("the run left no record ({status})")))?;
    let record = RunRecord::from_json(&text).map_err(&failed)?;
    if record.ended_by == EndedBy::Interrupted {
        return Err(failed("it was interrupted".to_owned()));
    }
    if !status.success() {
        return Err(failed(format!("the run failed ({status})")));
    }
    fs::rename(&unfinished, folder.record(run)).map_err(|error| failed(error.to_string()))?;
    Ok(figures(&record))
}

fn start_and_wait(
    run: &Run<'_>,
    further: &[String],
    folder: &Folder,
    interrupt: &Interrupt,
) -> Result<ExitStatus, Failure> {
    let (turn, record) = (run.turn, folder.unfinished(run));
    let cannot = |error: std::io::Error| {
        Failure::in_operation(format!("cannot start `{}`: {error}", turn.command_line()))
    };
    // What is left of a run that did not succeed must not pass for this one's.
    let _ = fs::remove_file(&record);
    let log = folder.log(run)?;
    let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
    command.args(turn.arguments()).args(further).arg("--quiet");
    command.arg("--record").arg(record);
    command.stdin(Stdio::null());
    command.stderr(log.try_clone().map_err(cannot)?).stdout(log);
    child::run(&mut command, interrupt).map_err(cannot)
}

/// A run in a line.
fn figures(record: &RunRecord) -> String {
    let of = |metric: Metric| {
        let value = metric.of(record).map(|value| metric.show(value));
        value.map(|value| format!("{} {value}, ", metric.name()))
    };
    let each = [Metric::P50, Metric::P99, Metric::Loss].map(of);
    let figures: String = each.into_iter().flatten().collect();
    let rate = Metric::Qps.show(record.achieved_qps());
    let limit = serde_json::to_value(record.verdict.limit).unwrap_or_default();
    format!(
        "{rate}, {figures}limit {}",
        limit.as_str().unwrap_or("unknown")
    )
}
