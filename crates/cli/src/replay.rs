//! `throng replay`: the queries of a capture, asked again by the same clients at the same times.

use std::io::{Cursor, Read};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use capture::replay::ReplayBuilder;
use capture::{Options, ReplayFilter, Skipped};
use load::{QuestionSet, Replay};
use measure::notation;
use measure::scenario::{CaptureRecord, ClientsBy, ReplayRecord};

use crate::args::RunArguments;
use crate::args::fit::ClientChoice;
use crate::args::flags::{self, Asker};
use crate::args::replay::ReplayArguments;
use crate::failure::Failure;
use crate::fit::{self, Contents};
use crate::inputs;
use crate::records;
use crate::run;
use crate::terminal;

/// What a capture leaves to ask again.
#[derive(Debug)]
pub(crate) struct Source {
    /// How to read it again.
    pub(crate) asked: ReplayArguments,
    pub(crate) replay: Arc<Replay>,
    pub(crate) questions: Arc<QuestionSet>,
    pub(crate) record: ReplayRecord,
}

impl Source {
    /// Where the questions come from, in words.
    pub(crate) fn words(&self) -> String {
        let files = self.record.captures.iter().map(|it| it.file.as_str());
        format!("those of {}", files.collect::<Vec<_>>().join(", "))
    }
}

/// Reads, replays and prints.
pub(crate) fn execute(arguments: &ReplayArguments) -> Result<ExitCode, Failure> {
    let run = run_of(arguments, Contents::report)?;
    if let (Some(source), false) = (&run.replay, run.quiet) {
        remark(&source.record, source.replay.clients());
    }
    run::execute(&run)
}

/// The run that a replay is; `report` is told of each capture that was read.
pub(crate) fn run_of(
    arguments: &ReplayArguments,
    report: impl Fn(&Contents),
) -> Result<RunArguments, Failure> {
    reject(&arguments.run)?;
    let mut run = arguments.run.clone();
    let filter = filter(arguments)?;
    let mut builder = ReplayBuilder::new(filter.clone())
        .map_err(|error| Failure::usage(format!("--speed: {error}"), error.cure()))?;
    let mut skipped = Skipped::default();
    let mut captures = Vec::new();
    let options = Options {
        format: arguments.capture_format,
        ports: arguments.port.clone(),
        ..Options::default()
    };
    for path in &arguments.captures {
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
    let rounds = run.loops.unwrap_or(1);
    let record = ReplayRecord {
        captures,
        clients_by: match arguments.client {
            ClientChoice::Address => ClientsBy::Address,
            ClientChoice::Port => ClientsBy::AddressAndPort,
        },
        speed: arguments.speed,
        rounds,
        queries: list.queries.len() as u64,
        span_ns: list.queries.last().map_or(0, |query| query.at_ns),
        filters: filters(arguments),
        filtered: list.filtered,
        beyond_limit: list.beyond_limit,
        skipped: (skipped.iter())
            .map(|(reason, count)| (reason.what().to_owned(), count))
            .collect(),
    };
    run.clients = Some(list.clients);
    (run.queries, run.loops) = (None, None);
    run.replay = Some(Arc::new(Source {
        asked: arguments.clone(),
        replay: Arc::new(Replay::new(list.queries, list.clients, rounds)?),
        questions: Arc::new(list.questions),
        record,
    }));
    Ok(run)
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

fn filter(arguments: &ReplayArguments) -> Result<ReplayFilter, Failure> {
    let suffix = |text: &String| {
        let mut wire = Vec::new();
        proto::name::parse(text, &mut wire).map_err(|error| {
            let hint = "write domain names, such as example.com";
            Failure::usage(format!("--only-names {text}: {error}"), hint)
        })?;
        Ok(wire.into())
    };
    let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let suffixes = arguments.only_names.iter().map(suffix);
    Ok(ReplayFilter {
        clients: arguments.only_clients.clone(),
        qtypes: arguments.only_qtypes.clone(),
        suffixes: suffixes.collect::<Result<_, Failure>>()?,
        transports: arguments.only_transports.clone(),
        from_ns: arguments.from.map_or(0, nanos),
        until_ns: arguments.until.map(nanos),
        limit: arguments.run.queries.unwrap_or(u64::MAX),
        speed: arguments.speed,
        identity: arguments.client.into(),
        options: run::query_options(&arguments.run)?,
    })
}

/// The filters as they were written.
fn filters(arguments: &ReplayArguments) -> Vec<String> {
    let given = arguments.run.given.iter();
    let own = given.filter(|given| {
        given.name.starts_with("only-") || ["from", "until", "queries"].contains(&&*given.name)
    });
    own.map(|given| format!("{} {}", given.name, given.values.join(",")))
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
        tell!("passed over: {} {reason}", notation::count(*count));
    }
    for (count, what) in [
        (record.filtered, "held back by the filters"),
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
