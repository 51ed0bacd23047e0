//! `throng replay`: the queries of a capture, asked again by the same clients at the same times.

use std::process::ExitCode;
use std::sync::Arc;

use measure::notation;
use measure::scenario::ReplayRecord;
use settings::{Arrival, FileName, ReplaySource, Run};

use crate::args::RunArguments;
use crate::args::fit::ClientChoice;
use crate::args::flags::{self, Asker};
use crate::args::replay::ReplayArguments;
use crate::failure::Failure;
use crate::fit::Contents;
use crate::inputs;
use crate::run::captured;
use crate::run::group::Group;
use crate::run_command;

/// Reads, replays and prints.
pub(crate) fn execute(arguments: &ReplayArguments) -> Result<ExitCode, Failure> {
    reject(&arguments.run)?;
    let mut run = arguments.run.settings()?;
    let source = source(arguments, &run);
    if run.generator.is_elsewhere() {
        // Agents have the capture from here: a file of that name there may be another one.
        inputs::keep_all();
    }
    let captured = captured::read(&run, &source, Contents::report)?;
    (run.limits.queries, run.limits.loops) = (None, None);
    run.arrival = Arrival::Replay(source);
    let mut group = Group::of(&arguments.run, run);
    if !group.output.quiet {
        remark(&captured.record, captured.replay.clients());
    }
    group.captured = Some(Arc::new(captured));
    run_command::execute_groups(vec![group], "replay")
}

/// What is to be asked again.
pub(crate) fn source(arguments: &ReplayArguments, run: &Run) -> ReplaySource {
    ReplaySource {
        captures: (arguments.captures.iter().cloned())
            .map(FileName::from)
            .collect(),
        format: arguments.capture_format.map(|it| it.to_string()),
        ports: arguments.port.clone(),
        by_port: arguments.client == ClientChoice::Port,
        speed: arguments.speed,
        only_clients: (arguments.only_clients.iter())
            .map(ToString::to_string)
            .collect(),
        only_qtypes: arguments.only_qtypes.clone(),
        only_names: arguments.only_names.clone(),
        only_transports: arguments.only_transports.clone(),
        from: arguments.from,
        until: arguments.until,
        queries_max: run.limits.queries,
        rounds: run.limits.loops.unwrap_or(1),
    }
}

/// Refuses flags that a capture leaves nothing to say.
pub(crate) fn reject(run: &RunArguments) -> Result<(), Failure> {
    let is_refused = |name: &str| {
        flags::find(name).is_some_and(|flag| flag.refused_by(Asker::Capture).is_some())
    };
    match run.given.iter().find(|given| is_refused(&given.name)) {
        None => Ok(()),
        Some(given) => Err(Failure::usage(
            format!(
                "--{} has no effect on a replay: clients, questions and times are the capture's",
                given.name
            ),
            format!(
                "leave out --{}; to vary what was seen, fit a profile and use `throng run \
                 --profile`",
                given.name
            ),
        )),
    }
}

/// What is about to be asked.
fn remark(record: &ReplayRecord, clients: u32) {
    for (reason, count) in &record.skipped {
        tell!("skipped: {} {reason}", notation::count(*count));
    }
    for (count, what) in [
        (record.filtered, "excluded by the filters"),
        (record.beyond_limit, "beyond --queries"),
    ] {
        if count > 0 {
            tell!("left out: {} {what}", notation::counted(count, "query"));
        }
    }
    tell!(
        "replaying: {} of {} within {}",
        notation::counted(record.queries, "query"),
        notation::counted(clients.into(), "client"),
        notation::seconds(record.span_ns)
    );
}
