//! Before a server is timed, it has to answer as its zone says.

use engine::{Observed, observer};
use lab::target::Expectation;
use settings::{Arrival, Generator, Limits, Names, Process, Questions, Run};

use super::servers::ServerCell;
use crate::failure::Failure;
use crate::run;
use crate::run::group::Group;
use crate::signals::Interrupt;

/// Questions that are asked, at most.
const QUESTIONS_MAX: usize = 200;
/// So fast: no server is to be measured by it.
const RATE_QPS: f64 = 1_000.0;

/// Asks a sample of the zone's names as each of the groups would and compares every answer.
pub(super) fn check(
    server: &ServerCell,
    groups: &[Group],
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let each = groups.iter();
    each.map(|group| check_as(group, server, interrupt))
        .collect()
}

fn check_as(group: &Group, server: &ServerCell, interrupt: &Interrupt) -> Result<(), Failure> {
    let expected = Expectation::sample(server.zone(), QUESTIONS_MAX)?;
    let mut request = run::request(&Group {
        run: run_of(&group.run, &expected),
        ..group.clone()
    })?;
    let (observer, observations) = observer();
    request.observer = Some(observer.with_messages());
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

/// One client that asks each question once, over connections like those of a run.
fn run_of(run: &Run, expected: &[Expectation]) -> Run {
    let lines: Vec<&str> = expected.iter().map(|it| it.question.as_str()).collect();
    Run {
        servers: run.servers.clone(),
        transport: run.transport,
        allows_public: run.allows_public,
        questions: Questions {
            names: Some(Names::Lines(format!("{}\n", lines.join("\n")))),
            ..Questions::default()
        },
        arrival: Arrival::Open {
            rate_qps: RATE_QPS,
            process: Process::default(),
            burst: 1,
        },
        clients: Some(1),
        http: run.http.clone(),
        tls: run.tls.clone(),
        limits: Limits {
            queries: Some(expected.len() as u64),
            ..Limits::default()
        },
        generator: Generator {
            workers: Some(1),
            ..Generator::default()
        },
        ..Run::default()
    }
}
