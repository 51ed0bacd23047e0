//! Before a server is timed, it has to answer as its zone says.

use std::ffi::OsString;

use engine::{Observed, observer};
use lab::target::Expectation;
use settings::{Arrival, Names};

use super::servers::{ServerCell, Started};
use crate::args::{Command, Given};
use crate::command_line;
use crate::failure::Failure;
use crate::run;
use crate::run::group::Group;
use crate::signals::Interrupt;

/// Questions that are asked, at most.
const QUESTIONS_MAX: usize = 200;
/// So fast: no server is to be measured by it.
const RATE_QPS: f64 = 1_000.0;

/// Asks a sample of the zone's names over the transport of a turn and compares every answer.
pub(super) fn check(
    server: &ServerCell,
    started: &Started,
    given: &[Given],
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let expected = Expectation::sample(server.zone(), QUESTIONS_MAX)?;
    let mut request = run::request(&group(started, given, &expected)?)?;
    let (observer, observations) = observer();
    request.observer = Some(observer.with_messages());
    request.observe = lab::observing::Sources::default();
    let control = lab::run::control(std::slice::from_ref(&request));
    interrupt.stops(&control);
    lab::run::run(&request, &control, |_| ())?;
    // The observations end when nobody can tell any more.
    drop(request);
    let mut checked = 0;
    for observation in &observations {
        let Observed::Ended {
            question, message, ..
        } = observation.event
        else {
            continue;
        };
        let Some(expectation) = expected.get(question as usize) else {
            continue;
        };
        let verdict = match &message {
            Some(message) => expectation.check(message),
            None => Err(format!("{}: no response", expectation.question)),
        };
        verdict.map_err(|why| wrong(server, &why))?;
        checked += 1;
    }
    match checked < expected.len() && !interrupt.has_come() {
        true => Err(wrong(
            server,
            &format!("{checked} of {} questions were answered", expected.len()),
        )),
        false => Ok(()),
    }
}

fn wrong(server: &ServerCell, why: &str) -> Failure {
    let title = server.product().title;
    Failure::in_operation(format!(
        "{title} does not answer as its zone says, and is not timed: {why}"
    ))
}

/// One client that asks each question once, over the connections of the turn.
fn group(started: &Started, given: &[Given], expected: &[Expectation]) -> Result<Group, Failure> {
    let is_about_connections = |given: &&Given| {
        let name = given.name.as_str();
        let is_kept = ["transport", "allow-public"].contains(&name);
        is_kept || name.starts_with("tls-") || name.starts_with("doh-")
    };
    let words = ["throng", "run"].map(OsString::from).into_iter();
    let own = given.iter().filter(is_about_connections);
    let words = words
        .chain(own.flat_map(Given::arguments))
        .chain(started.flags.iter().map(OsString::from));
    let parsed =
        command_line::parse(words.collect()).map_err(|error| command_line::wrong(&error, "run"))?;
    let Command::Run(command) = parsed.command else {
        return Err(Failure::in_operation("the flags are not those of a run"));
    };
    let mut run = command.run.settings()?;
    run.arrival = Arrival::Open {
        rate_qps: RATE_QPS,
        process: command.run.arrival,
        burst: command.run.burst,
    };
    let lines: Vec<&str> = expected.iter().map(|it| it.question.as_str()).collect();
    run.questions.names = Some(Names::Lines(format!("{}\n", lines.join("\n"))));
    (run.clients, run.generator.workers) = (Some(1), Some(1));
    run.limits.queries = Some(expected.len() as u64);
    run.limits.duration = None;
    Ok(Group::of(&command.run, run))
}
