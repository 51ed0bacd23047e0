//! Before a server is timed, it has to answer as its zone says.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use lab::target::{Expectation, Network, RunningServer, Signing};
use measure::RunRecord;
use settings::{Arrival, Generator, Limits, Process, Run};

use super::servers::ServerCell;
use crate::cache::ask_each;
use crate::failure::Failure;
use crate::run;
use crate::run::group::Group;
use crate::signals::Interrupt;

/// Questions that are asked, at most.
const QUESTIONS_MAX: usize = 200;
/// How often what a line has lost is asked again, at most.
const ROUNDS_MAX: usize = 20;
/// How long what was changed may take to answer that many queries in a row, each try within a time.
const WAIT_MAX: Duration = Duration::from_secs(60);
const WAIT_EACH: Duration = Duration::from_secs(2);
const IN_A_ROW: u64 = 20;
/// So fast: no server is to be measured by it.
const RATE_QPS: f64 = 1_000.0;

/// Asks a sample of the zone's names as each of the groups would and compares every answer.
pub(super) fn check(
    server: &ServerCell,
    started: &RunningServer,
    groups: &[Group],
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let rounds = match started.network().and_then(Network::shape) {
        Some(shape) if shape.loses() => ROUNDS_MAX,
        _ => 1,
    };
    for group in groups {
        let edns = group.run.message.edns.as_ref();
        let signing = Signing {
            is_asked: edns.is_some_and(|edns| edns.dnssec_ok),
            by_server: server.cell().signs(),
        };
        let mut left = Expectation::sample(server.zone(), QUESTIONS_MAX, signing)?;
        let all = left.len();
        for _ in 0..rounds {
            left = check_as(group, server, left, interrupt)?;
            if left.is_empty() || interrupt.has_come() {
                break;
            }
        }
        if let Some(first) = left.first().filter(|_| !interrupt.has_come()) {
            let (answered, question) = (all - left.len(), &first.question);
            let of = format!("{answered} of {all} questions were answered");
            return Err(wrong(server, &format!("{question}: no response; {of}")));
        }
    }
    Ok(())
}

/// Waits until what was changed or made answers: a cluster says that pods run before they do, and
/// its nodes learn of it one after the other. `make` makes a run.
pub(super) fn wait(
    groups: &[Group],
    interrupt: &Interrupt,
    mut make: impl FnMut(Group) -> Result<Option<RunRecord>, Failure>,
) -> Result<(), Failure> {
    let until = Instant::now() + WAIT_MAX;
    for group in groups {
        loop {
            let few = few_of(&group.run);
            let record = make(Group {
                run: few.clone(),
                ..group.clone()
            });
            let is_answered = |it: RunRecord| Some(it.total.counts.responses) == few.limits.queries;
            if record?.is_some_and(is_answered) || interrupt.has_come() {
                break;
            }
            if Instant::now() > until {
                let target = group.run.servers.join(", ");
                let what = format!("{target} does not answer {WAIT_MAX:?} after it was started");
                return Err(Failure::in_operation(what));
            }
        }
    }
    Ok(())
}

/// Makes a run in this process.
pub(super) fn make_here(
    group: &Group,
    interrupt: &Interrupt,
) -> Result<Option<RunRecord>, Failure> {
    let request = run::request(group)?;
    let control = lab::run::control(std::slice::from_ref(&request));
    interrupt.stops(&control);
    Ok(lab::run::run(&request, &control, |_| ()).ok())
}

/// One client that asks a few of the same questions; on other hosts, a few of each.
fn few_of(run: &Run) -> Run {
    let generator = &run.generator;
    let (clients, generator) = match generator.hosts.is_some() {
        true => (run.clients, generator.clone()),
        false => {
            let workers = Some(1);
            let one = Generator {
                workers,
                ..Generator::default()
            };
            (Some(1), one)
        }
    };
    let queries = u64::from(clients.unwrap_or(run::CLIENTS)).max(IN_A_ROW);
    Run {
        arrival: Arrival::Open {
            rate_qps: queries as f64 / WAIT_EACH.as_secs_f64(),
            process: Process::default(),
            burst: 1,
        },
        clients,
        limits: Limits {
            queries: Some(queries),
            ..Limits::default()
        },
        generator,
        observe: Vec::new(),
        ..run.clone()
    }
}

/// Asks these questions once; those without a response are left.
fn check_as(
    group: &Group,
    server: &ServerCell,
    expected: Vec<Expectation>,
    interrupt: &Interrupt,
) -> Result<Vec<Expectation>, Failure> {
    let questions: Vec<&str> = expected.iter().map(|it| it.question.as_str()).collect();
    let arrival = Arrival::Open {
        rate_qps: RATE_QPS,
        process: Process::default(),
        burst: 1,
    };
    let mut answered = BTreeSet::new();
    for (question, message) in ask_each(group, &questions, arrival, interrupt)? {
        if let Some(expectation) = expected.get(question) {
            let verdict = expectation.check(&message);
            verdict.map_err(|why| wrong(server, &why))?;
            answered.insert(question);
        }
    }
    let asked = expected.into_iter().enumerate();
    let left = asked.filter(|(at, _)| !answered.contains(at));
    Ok(left.map(|(_, expectation)| expectation).collect())
}

fn wrong(server: &ServerCell, why: &str) -> Failure {
    let title = server.product().title;
    Failure::in_operation(format!(
        "{title} does not answer as its zone says, and is not timed: {why}"
    ))
}
