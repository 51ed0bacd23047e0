//! The queries of captures and query logs, read to be asked again.

use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use capture::fit::ClientIdentity;
use capture::replay::ReplayBuilder;
use capture::{Options, ReplayFilter, Skipped};
use load::{QuestionSet, Replay};
use measure::notation;
use measure::scenario::{CaptureRecord, ClientsBy, ReplayRecord};
use settings::{ReplaySource, Run};

use super::message::query_options;
use crate::failure::Failure;
use crate::fit::{self, Contents};
use crate::terminal;
use crate::{inputs, records};

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

/// Reads what is to be asked again; calls `report` for each capture that was read.
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
        options: query_options(run)?,
    })
}

/// Reads a format in the form in which the lead sends it.
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
