//! `throng eval`: several servers, asked in turn under the same conditions.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use engine::{Ending, Observations, Observed, observer};
use lab::live::Live;
use lab::run::RunRequest;
use measure::evaluation::Asked;
use measure::{ConnectionTimes, Evaluation, ProbeStatistics, RunRecord};

use super::{questions, rate_of, reject_hidden, run_of};
use crate::args::Output;
use crate::args::endpoint::Endpoint;
use crate::args::probe::{EvalArguments, EvalFormat};
use crate::failure::{Failure, print};
use crate::inputs;
use crate::records::Destination;
use crate::run;
use crate::secrets;
use crate::signals;

/// More servers than that are a survey, and want another tool.
const SERVERS_MAX: usize = 256;

/// A server, and its run or why there is none.
struct Candidate {
    server: String,
    address: Option<String>,
    run: Result<RunRequest, String>,
}

/// Asks and prints.
pub(crate) fn execute(arguments: &EvalArguments) -> Result<ExitCode, Failure> {
    reject_hidden("eval", &arguments.probe.run)?;
    let questions = questions(&arguments.probe)?;
    let mut candidates = candidates(arguments, &questions)?;
    let destination = Destination::of_record(&Output::of(&arguments.probe.run))?;
    let interrupt = signals::watch(|| tell!("ending; waiting for open queries"));
    if !arguments.probe.run.no_preflight {
        look_before(&mut candidates);
    }
    let (observer, observations) = observer();
    let mut requests = Vec::new();
    for candidate in &mut candidates {
        if let Ok(request) = &mut candidate.run {
            request.observer = Some(observer.of_group(requests.len() as u32));
            requests.push(request.clone());
            request.observer = None;
        }
    }
    drop(observer);
    let interval = arguments.probe.run.interval;
    spread(&mut requests, interval.unwrap_or(run::INTERVAL));
    let (mut times, mut missed, mut record) = (BTreeMap::new(), 0, None);
    if !requests.is_empty() {
        let control = lab::run::control(&requests);
        interrupt.stops(&control);
        let (measured, collected) = std::thread::scope(|scope| {
            let collector = scope.spawn(|| collect(observations));
            let measured = lab::run::run_groups(&requests, &control, &Live::default());
            drop(requests);
            (measured, collector.join())
        });
        record = Some(measured?);
        (times, missed) = collected.map_err(|_| {
            Failure::in_operation(
                "collecting failed \
            unexpectedly",
            )
        })?;
    }
    let written = match (&destination, &record) {
        (Some(destination), Some(record)) => destination.write(record),
        _ => Ok(()),
    };
    let asked = asked(candidates, record.as_ref(), &times);
    let transport = arguments.probe.run.transport.to_string();
    let seed = arguments.probe.run.seed;
    let mut evaluation = Evaluation::new(questions, transport, asked, seed);
    if missed > 0 {
        evaluation
            .notes
            .push(format!("{missed} responses are missing in the comparison"));
    }
    let shown = show(evaluation, arguments);
    // The first one says where the record is.
    written.and(shown)
}

fn show(mut evaluation: Evaluation, arguments: &EvalArguments) -> Result<ExitCode, Failure> {
    if arguments.sorted {
        evaluation.sort();
    }
    print(&match arguments.form.format {
        EvalFormat::Text => report::evaluation::text(&evaluation),
        EvalFormat::Markdown => report::evaluation::markdown(&evaluation),
        EvalFormat::Csv => report::evaluation::csv(&evaluation),
        EvalFormat::Json => {
            let json = serde_json::to_string_pretty(&evaluation).map_err(Failure::in_operation)?;
            format!("{json}\n")
        }
    })?;
    Ok(match evaluation.received() {
        0 => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

/// The servers of flags and file, in order.
fn servers(arguments: &EvalArguments) -> Result<Vec<String>, Failure> {
    let mut servers = arguments.probe.run.server.clone();
    if let Some(path) = &arguments.servers {
        let text = inputs::text(path).map_err(|error| {
            Failure::usage(
                format!("cannot read --servers {}: {error}", path.display()),
                "give a text file with a server a line",
            )
        })?;
        let lines = text.lines().map(without_comment);
        for (line, number) in lines.zip(1..) {
            if line.contains(char::is_whitespace) {
                return Err(Failure::usage(
                    format!(
                        "{}: line {number}: more than a server in `{line}`",
                        path.display()
                    ),
                    "write HOST, HOST:PORT or [IPV6]:PORT, one a line",
                ));
            }
            if line.is_empty() {
                continue;
            }
            let transport = arguments.probe.run.transport;
            let read = Endpoint::read(line);
            let read = read.and_then(|it| it.check(transport).map(|()| it.server));
            let place = format!("{}: line {number}", path.display());
            servers.push(read.map_err(|reason| Failure::of_value(&reason).of(&place))?);
        }
    }
    match servers.len() {
        0 => Err(Failure::usage(
            "no server to query: --server is missing",
            "give --server for each of them, or --servers FILE",
        )),
        1..=SERVERS_MAX => Ok(servers),
        many => Err(Failure::usage(
            format!("{many} servers are more than the {SERVERS_MAX} that can be queried in turn"),
            "query fewer of them",
        )),
    }
}

/// A line without its comment: the `#` of `192.0.2.1#53` begins none.
fn without_comment(line: &str) -> &str {
    let mut starts = line.match_indices('#').map(|(at, _)| at);
    let is_comment = |at: &usize| line[..*at].ends_with(char::is_whitespace) || *at == 0;
    let end = starts.find(is_comment).unwrap_or(line.len());
    line[..end].trim()
}

/// The run of each server. What is wrong with one server is said in its row, what is wrong with the
/// flags is an error.
fn candidates(arguments: &EvalArguments, questions: &[String]) -> Result<Vec<Candidate>, Failure> {
    let mut flags = arguments.probe.run.clone();
    rate_of(&flags)?;
    let mut candidates: Vec<Candidate> = Vec::new();
    for given in servers(arguments)? {
        let server = secrets::uri(&given).into_owned();
        if let Some(reason) = run::lookup_failure(&given) {
            candidates.push(Candidate {
                server,
                address: None,
                run: Err(format!("cannot be resolved: {reason}")),
            });
            continue;
        }
        flags.server = vec![given];
        let group = run_of(&flags, questions, Some(arguments.count))?;
        let mut request = run::request(&group)?;
        // Each group of clients has a name of its own, also where a server is given twice.
        let twins = candidates
            .iter()
            .filter(|other| other.server == server)
            .count();
        request.group = match twins {
            0 => server.clone(),
            _ => format!("{server} ({})", twins + 1),
        };
        candidates.push(Candidate {
            server: request.group.clone(),
            address: Some(request.plan.target.to_string()),
            run: Ok(request),
        });
    }
    Ok(candidates)
}

/// Finds out who cannot be reached.
fn look_before(candidates: &mut [Candidate]) {
    let asked: Vec<&mut Candidate> = candidates.iter_mut().filter(|it| it.run.is_ok()).collect();
    let requests: Vec<RunRequest> = asked
        .iter()
        .filter_map(|candidate| candidate.run.clone().ok())
        .collect();
    for (candidate, outcome) in asked.into_iter().zip(lab::run::check_targets(&requests)) {
        if let Err(error) = outcome {
            candidate.run = Err(error.to_string());
        }
    }
}

/// Lets the servers be asked evenly within each interval, one after the other.
fn spread(requests: &mut [RunRequest], interval: Duration) {
    let servers = requests.len().max(1) as u32;
    for (request, number) in requests.iter_mut().zip(0..) {
        request.preflight = false;
        request.plan.presence.joins_after = interval * number / servers;
    }
}

/// Service times in nanoseconds, by the server's position among those asked, and how many are
/// missing.
fn collect(observations: Observations) -> (BTreeMap<u32, Vec<f64>>, u64) {
    let mut times: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for observation in &observations {
        if let Observed::Ended {
            sent_at,
            how: Ending::Response { .. },
            ..
        } = observation.event
        {
            let of_server = times.entry(observation.group).or_default();
            of_server.push(observation.at.nanos_since(sent_at) as f64);
        }
    }
    (times, observations.missed())
}

/// What each server answered.
fn asked(
    candidates: Vec<Candidate>,
    record: Option<&RunRecord>,
    times: &BTreeMap<u32, Vec<f64>>,
) -> Vec<Asked> {
    let mut number = 0;
    let asked = |candidate: Candidate| {
        let group = |request: RunRequest| {
            let groups = record.map_or(&[][..], |record| record.groups.as_slice());
            let group = groups.iter().find(|group| group.name == request.group);
            let total = group.map(|group| group.total.clone()).unwrap_or_default();
            let statistics = ProbeStatistics::new(&total, &ConnectionTimes::default());
            let of_server = times.get(&number).cloned().unwrap_or_default();
            number += 1;
            (statistics, of_server)
        };
        Asked {
            server: candidate.server,
            address: candidate.address,
            outcome: candidate.run.map(group),
        }
    };
    candidates.into_iter().map(asked).collect()
}
