//! One run of an experiment, in a process of its own.

use std::fs;
use std::time::Instant;

use lab::target::{Change, Changed};
use measure::RunRecord;
use measure::metric::Metric;
use measure::record::EndedBy;

use super::cells::{Run, Turn};
use super::file::Experiment;
use super::folder::Folder;
use super::gate;
use super::hooks::{Hooks, Shell};
use super::servers;
use crate::failure::Failure;
use crate::run::group::Group;
use crate::signals::Interrupt;
use crate::turn;

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
    let mut groups = turn.groups()?;
    let all = Run::all(turn, experiment.runs_per_start);
    let mut figures = String::new();
    let Some(server) = &turn.server else {
        let change = turn.change.as_ref();
        let apply = |change: &Change| change.apply(&folder.manifest(turn), turn.repetition);
        let changed = change.map(apply).transpose()?;
        if changed.is_some() {
            gate::wait(&groups, interrupt)?;
        }
        for run in all {
            figures = make_one(&run, &groups, folder, interrupt)?;
        }
        changed.map_or(Ok(()), Changed::restore)?;
        return Ok(figures);
    };
    // It ends with the last of the runs.
    let topology = turn.topology.of_start(turn.repetition);
    let started = server.start(&topology, &mut groups)?;
    started.near(|| gate::check(server, &started, &groups, interrupt))??;
    for run in all {
        let expires = started.near(|| server.prepare(&started, &groups, interrupt))??;
        // What that and the gate took is no run's.
        started.account();
        let made = started.near(|| make_one(&run, &groups, folder, interrupt))?;
        if let Some(line) = started.account() {
            folder.write_line(&run, &line)?;
        }
        figures = made?;
        if expires.is_some_and(|expires| Instant::now() > expires) {
            // Nobody must take it for one with a warm cache.
            let _ = fs::remove_file(folder.record(&run));
            return Err(servers::expired());
        }
    }
    Ok(figures)
}

fn make_one(
    run: &Run<'_>,
    groups: &[Group],
    folder: &Folder,
    interrupt: &Interrupt,
) -> Result<String, Failure> {
    let (turn, name) = (run.turn, run.name());
    let unfinished = folder.unfinished(run);
    // What is left of a run that did not succeed must not pass for this one's.
    let _ = fs::remove_file(&unfinished);
    let log = folder.log(run)?;
    let status = turn::make(groups, (&unfinished, Some(&log)), interrupt).map_err(|error| {
        let line = turn.command_line();
        Failure::in_operation(format!("cannot start `{line}`: {error}"))
    })?;
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
