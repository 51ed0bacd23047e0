//! One run of an experiment, in a process of its own.

use std::fs;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Instant;

use lab::files::{self, Access};
use lab::target::{Change, Changed, RunningServer};
use measure::RunRecord;
use measure::metric::Metric;
use measure::record::EndedBy;

use super::cells::{Run, Turn};
use super::file::Experiment;
use super::folder::Folder;
use super::gate;
use super::hooks::{self, Hooks, Shell};
use super::operation::{self, Performed, Timing};
use super::servers::{self, ServerCell};
use crate::failure::Failure;
use crate::run::group::Group;
use crate::turn::{Made, Maker, Places};

/// Hooks, run, hooks; its figures in a line.
pub(super) fn make(
    experiment: &Experiment,
    turn: &Turn,
    folder: &Folder,
    maker: &Maker<'_>,
) -> Result<String, Failure> {
    let log = folder.hooks_log()?;
    let shell = Shell {
        experiment: &experiment.name,
        turn,
        log: &log,
        interrupt: maker.interrupt,
    };
    let all: Vec<&Hooks> = [&experiment.hooks].into_iter().chain(&turn.hooks).collect();
    hooks::around(
        &all,
        |hooks| shell.before(hooks),
        || runs(experiment, turn, folder, maker),
        |hooks| shell.after(hooks),
    )
}

/// All runs of one start; the figures of the last.
fn runs(
    experiment: &Experiment,
    turn: &Turn,
    folder: &Folder,
    maker: &Maker<'_>,
) -> Result<String, Failure> {
    let interrupt = maker.interrupt;
    // A hook that was just over when the signal came has no run after it.
    if interrupt.has_come() {
        return Err(Failure::in_operation(format!("{turn}: interrupted")));
    }
    let mut groups = turn.groups()?;
    let all = Run::all(turn, experiment.runs_per_start);
    let mut figures = String::new();
    let Some(server) = &turn.server else {
        let change = turn.change.as_ref();
        let apply = |change: &Change| change.apply(&folder.manifest(turn), turn.repetition);
        let changed = change.map(apply).transpose()?;
        if let Some(changed) = &changed {
            for group in &mut groups {
                // The first one is the one that is asked.
                group
                    .run
                    .observe
                    .splice(..0, changed.observed().iter().cloned());
            }
            wait(turn, &groups, folder, maker)?;
        }
        for run in all {
            figures = make_one(&run, &groups, folder, maker)?;
        }
        changed.map_or(Ok(()), Changed::restore)?;
        return Ok(figures);
    };
    // It ends with the last of the runs.
    let topology = turn.topology.of_start(turn.repetition);
    let mut started = server.start(&topology, &mut groups)?;
    started.near(|| gate::check(server, &started, &groups, interrupt))??;
    if is_elsewhere(&groups) {
        wait(turn, &groups, folder, maker)?;
    }
    for run in all {
        let expires = started.near(|| server.prepare(&started, &groups, interrupt))??;
        // What that and the gate took is no run's.
        started.account();
        let before = started.internet()?;
        let made = make_with(
            &run,
            &groups,
            (server, &mut started),
            (folder, experiment.timing),
            maker,
        );
        if let Some(line) = started.account() {
            folder.write_line(&run, &line)?;
        }
        figures = made?;
        if let (Some(before), Some(after)) = (before, started.internet()?) {
            folder.write_internet(&run, &after.since(&before))?;
        }
        if expires.is_some_and(|expires| Instant::now() > expires) {
            // A report must not take it for a run with a warm cache.
            let _ = fs::remove_file(folder.record(&run));
            return Err(servers::expired());
        }
    }
    Ok(figures)
}

/// True if agents on other hosts generate the load.
fn is_elsewhere(groups: &[Group]) -> bool {
    groups[0].run.generator.hosts.is_some()
}

/// Waits until the server answers those who will ask it.
fn wait(turn: &Turn, groups: &[Group], folder: &Folder, maker: &Maker<'_>) -> Result<(), Failure> {
    let interrupt = maker.interrupt;
    if !is_elsewhere(groups) {
        return gate::wait(groups, interrupt, |group| {
            gate::make_here(&group, interrupt)
        });
    }
    let run = Run::all(turn, 1).next().expect("one run");
    gate::wait(groups, interrupt, |group| {
        // How it ends is in its record, if there is one.
        launch(&run, &[group], (folder, None), maker)?;
        let text = fs::read_to_string(folder.unfinished(&run)).ok();
        let _ = fs::remove_file(folder.unfinished(&run));
        Ok(text.and_then(|text| RunRecord::from_json(&text).ok()))
    })
}

/// Makes a run that asks a server; meanwhile the operation of its cell is done to that.
fn make_with(
    run: &Run<'_>,
    groups: &[Group],
    (server, started): (&ServerCell, &mut RunningServer),
    (folder, timing): (&Folder, Timing),
    maker: &Maker<'_>,
) -> Result<String, Failure> {
    let Some(operation) = run.turn.operation else {
        let made = started.near(|| launch(run, groups, (folder, None), maker))??;
        return finish(run, folder, (made, None), || started.check_alive());
    };
    let (interrupt, begun) = (maker.interrupt, AtomicBool::new(false));
    let network = started.shared_network();
    let launch = || launch(run, groups, (folder, Some(&begun)), maker);
    let near = || match &network {
        Some(network) => network.near(launch).map_err(Failure::from)?,
        None => launch(),
    };
    // Not the operation: what a thread starts ends with it.
    let (made, performed) = thread::scope(|scope| {
        let running = scope.spawn(near);
        let is_interrupted = || interrupt.has_come();
        let is_over = || running.is_finished() || is_interrupted();
        let performed = operation::perform(
            (server, operation),
            started,
            (&groups[0].run, timing, &begun),
            (&is_over, &is_interrupted),
        );
        (running.join(), performed)
    });
    let made = made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    if performed.is_none() && made.is_well() && !interrupt.has_come() {
        let why = format!("it was over before its operation {operation}");
        return Err(failed(run, &why));
    }
    finish(run, folder, (made, performed), || started.check_alive())
}

/// Makes a run that asks whatever its flags say.
fn make_one(
    run: &Run<'_>,
    groups: &[Group],
    folder: &Folder,
    maker: &Maker<'_>,
) -> Result<String, Failure> {
    let made = launch(run, groups, (folder, None), maker)?;
    finish(run, folder, (made, None), || Ok(()))
}

/// Makes a run in a process of its own, and waits for its end.
fn launch(
    run: &Run<'_>,
    groups: &[Group],
    (folder, begun): (&Folder, Option<&AtomicBool>),
    maker: &Maker<'_>,
) -> Result<Made, Failure> {
    let unfinished = folder.unfinished(run);
    // What is left of a run that did not succeed must not pass for this one's.
    let _ = fs::remove_file(&unfinished);
    let places = Places {
        record: &unfinished,
        log: Some(folder.log(run)?),
        begun,
    };
    maker.make(groups, &places).map_err(|error| {
        let line = run.turn.command_line();
        Failure::in_operation(format!("cannot start `{line}`: {error}"))
    })
}

fn failed(run: &Run<'_>, why: &str) -> Failure {
    let (turn, name) = (run.turn, run.name());
    Failure::in_operation(format!("{turn}: {why}; see logs/{name}.txt"))
}

/// Looks at the record of a run and at its server, and keeps the record; its figures.
fn finish(
    run: &Run<'_>,
    folder: &Folder,
    (made, performed): (Made, Option<Performed>),
    check_server: impl FnOnce() -> anyhow::Result<()>,
) -> Result<String, Failure> {
    let unfinished = folder.unfinished(run);
    let failed = |why: String| failed(run, &why);
    // What a server did not answer after its end is no loss of a server that runs.
    let is_alive = check_server().map_err(|error| failed(format!("{error:#}")));
    let Ok(text) = fs::read_to_string(&unfinished) else {
        is_alive?;
        return Err(failed(format!("the run left no record: {made}")));
    };
    let mut record = RunRecord::from_json(&text).map_err(failed)?;
    let noted = match performed {
        None => Ok(()),
        Some(performed) => {
            let noted = performed.note(&mut record);
            files::write(&unfinished, Access::Umask, record.to_json_pretty() + "\n")
                .map_err(|error| failed(error.to_string()))?;
            noted
        }
    };
    if record.ended_by == EndedBy::Interrupted {
        return Err(failed("it was interrupted".to_owned()));
    }
    if let Some(aborted) = &record.aborted {
        return Err(failed(aborted.sentence()));
    }
    noted.map_err(failed)?;
    is_alive?;
    if !made.is_well() {
        return Err(failed(format!("the run failed ({made})")));
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
