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
/// How long what was changed may take to answer so many queries in a row, asked at that rate.
const WAIT_MAX: Duration = Duration::from_secs(60);
const WAIT_RATE_QPS: f64 = 10.0;
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

/// Waits until what was changed answers: a cluster says that pods run before they do.
pub(super) fn wait(groups: &[Group], interrupt: &Interrupt) -> Result<(), Failure> {
    let until = Instant::now() + WAIT_MAX;
    for group in groups {
        let request = run::request(&Group {
            run: few_of(&group.run),
            ..group.clone()
        })?;
        loop {
            let control = lab::run::control(std::slice::from_ref(&request));
            interrupt.stops(&control);
            let record = lab::run::run(&request, &control, |_| ());
            let is_answered = |it: &RunRecord| it.total.counts.responses == IN_A_ROW;
            if record.is_ok_and(|it| is_answered(&it)) || interrupt.has_come() {
                break;
            }
            if Instant::now() > until {
                let target = group.run.servers.join(", ");
                let what = format!("{target} does not answer {WAIT_MAX:?} after the change");
                return Err(Failure::in_operation(what));
            }
        }
    }
    Ok(())
}

/// One client that asks a few of the same questions.
fn few_of(run: &Run) -> Run {
    Run {
        arrival: Arrival::Open {
            rate_qps: WAIT_RATE_QPS,
            process: Process::default(),
            burst: 1,
        },
        clients: Some(1),
        limits: Limits {
            queries: Some(IN_A_ROW),
            ..Limits::default()
        },
        generator: Generator {
            workers: Some(1),
            ..Generator::default()
        },
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
