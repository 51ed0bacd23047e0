//! `throng replay`: the queries of a capture, asked again by the same clients at the same times.

use std::io::{Cursor, Read};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use capture::fit::ClientIdentity;
use capture::replay::ReplayBuilder;
use capture::{Options, ReplayFilter, Skipped};
use load::{QuestionSet, Replay};
use measure::notation;
use measure::scenario::{CaptureRecord, ClientsBy, ReplayRecord};
use settings::{Arrival, FileName, ReplaySource, Run};

use crate::args::RunArguments;
use crate::args::fit::ClientChoice;
use crate::args::flags::{self, Asker};
use crate::args::replay::ReplayArguments;
use crate::failure::Failure;
use crate::fit::{self, Contents};
use crate::inputs;
use crate::records;
use crate::run;
use crate::scenario::Group;
use crate::terminal;

/// What a capture leaves to ask again.
#[derive(Debug)]
pub(crate) struct Captured {
    pub(crate) replay: Arc<Replay>,
    pub(crate) questions: Arc<QuestionSet>,
    pub(crate) record: ReplayRecord,
}

impl Captured {
    /// Where the questions come from, in words.
    pub(crate) fn words(&self) -> String {
        let files = self.record.captures.iter().map(|it| it.file.as_str());
        format!("those of {}", files.collect::<Vec<_>>().join(", "))
    }
}

/// Reads, replays and prints.
pub(crate) fn execute(arguments: &ReplayArguments) -> Result<ExitCode, Failure> {
    reject(&arguments.run)?;
    let mut run = arguments.run.settings()?;
    let source = source(arguments, &run);
    let captured = read(&run, &source, Contents::report)?;
    (run.limits.queries, run.limits.loops) = (None, None);
    run.arrival = Arrival::Replay(source);
    let mut group = Group::of(&arguments.run, run);
    if !group.output.quiet {
        remark(&captured.record, captured.replay.clients());
    }
    group.captured = Some(Arc::new(captured));
    run::execute_group(&group)
}

/// What is to be asked again.
fn source(arguments: &ReplayArguments, run: &Run) -> ReplaySource {
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

/// Reads what is to be asked again; `report` is told of each capture that was read.
pub(crate) fn read(
    run: &Run,
    source: &ReplaySource,
    report: impl Fn(&Contents),
) -> Result<Captured, Failure> {
    let mut builder = ReplayBuilder::new(filter(run, source)?)
        .map_err(|error| Failure::usage(format!("--speed: {error}"), error.cure()))?;
    let mut skipped = Skipped::default();
    let mut captures = Vec::new();
    let options = Options {
        format: parsed(source.format.as_ref())?,
        ports: source.ports.clone(),
        ..Options::default()
    };
    for file in &source.captures {
        let path = file.as_path();
        let contents = fit::read(path, open(path)?, &options, |query| {
            builder.add(query);
        })?;
        report(&contents);
        skipped.merge(&contents.skipped);
        captures.push(CaptureRecord {
            file: contents.name.clone(),
            format: contents.format.to_string(),
            queries: contents.queries,
            cut_off: contents.end.as_ref().map(|(error, _)| error.clone()),
        });
    }
    let list = builder.finish().map_err(|error| {
        report_skipped(&skipped);
        Failure::usage(error, error.cure())
    })?;
    if list.too_long > 0 {
        let number = notation::counted(list.too_long, "query");
        return Err(Failure::usage(
            format!("{number} would be longer than a message with these EDNS options"),
            "give fewer or shorter ones",
        ));
    }
    let record = ReplayRecord {
        captures,
        clients_by: match source.by_port {
            false => ClientsBy::Address,
            true => ClientsBy::AddressAndPort,
        },
        speed: source.speed,
        rounds: source.rounds,
        queries: list.queries.len() as u64,
        span_ns: list.queries.last().map_or(0, |query| query.at_ns),
        filters: filters(source),
        filtered: list.filtered,
        beyond_limit: list.beyond_limit,
        skipped: (skipped.iter())
            .map(|(reason, count)| (reason.what().to_owned(), count))
            .collect(),
    };
    Ok(Captured {
        replay: Arc::new(Replay::new(list.queries, list.clients, source.rounds)?),
        questions: Arc::new(list.questions),
        record,
    })
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

fn filter(run: &Run, source: &ReplaySource) -> Result<ReplayFilter, Failure> {
    let suffix = |text: &String| {
        let mut wire = Vec::new();
        proto::name::parse(text, &mut wire).map_err(|error| {
            let hint = "write domain names, such as example.com";
            Failure::usage(format!("--only-names {text}: {error}"), hint)
        })?;
        Ok(wire.into())
    };
    let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let suffixes = source.only_names.iter().map(suffix);
    let clients = source.only_clients.iter();
    let clients = clients.map(|text| text.parse().map_err(Failure::in_operation));
    Ok(ReplayFilter {
        clients: clients.collect::<Result<_, Failure>>()?,
        qtypes: source.only_qtypes.clone(),
        suffixes: suffixes.collect::<Result<_, Failure>>()?,
        transports: source.only_transports.clone(),
        from_ns: source.from.map_or(0, nanos),
        until_ns: source.until.map(nanos),
        limit: source.queries_max.unwrap_or(u64::MAX),
        speed: source.speed,
        identity: match source.by_port {
            false => ClientIdentity::Address,
            true => ClientIdentity::AddressAndPort,
        },
        options: run::query_options(run)?,
    })
}

/// What was written before it was told to this process.
fn parsed(text: Option<&String>) -> Result<Option<capture::Format>, Failure> {
    let parsed = text.map(|text| text.parse()).transpose();
    parsed.map_err(|error: String| Failure::in_operation(error))
}

/// The filters as they are written.
fn filters(source: &ReplaySource) -> Vec<String> {
    let time = |time: std::time::Duration| format!("{time:?}");
    let transports = source.only_transports.iter().map(ToString::to_string);
    let qtypes = source.only_qtypes.iter().copied();
    let qtypes = qtypes.map(proto::rr::type_to_text);
    let lists = [
        ("only-clients", source.only_clients.clone()),
        ("only-qtypes", qtypes.collect()),
        ("only-names", source.only_names.clone()),
        ("only-transports", transports.collect()),
        ("from", source.from.map(time).into_iter().collect()),
        ("until", source.until.map(time).into_iter().collect()),
        (
            "queries",
            source
                .queries_max
                .map(|it| it.to_string())
                .into_iter()
                .collect(),
        ),
    ];
    let given = lists
        .into_iter()
        .filter(|(_, values): &(_, Vec<String>)| !values.is_empty());
    given
        .map(|(name, values)| format!("{name} {}", values.join(",")))
        .collect()
}

/// A file, or standard input, which the parts of a run are given too.
fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if !inputs::can_be_read_again(path) {
        return Ok(Box::new(Cursor::new(records::read_input(path)?)));
    }
    Ok(Box::new(records::open(path)?))
}

fn report_skipped(skipped: &Skipped) {
    terminal::text(&fit::skipped(skipped));
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
