//! Before a server is timed, it has to answer as its zone says.

use std::time::{Duration, Instant};

use lab::target::{Expectation, Network, RunningServer, Signing};
use measure::RunRecord;
use settings::{Arrival, Generator, Limits, Process, Run};

use super::servers::ServerCell;
use crate::cache::{again, ask_each, fill};
use crate::failure::Failure;
use crate::run;
use crate::run::group::Group;
use crate::signals::Interrupt;

/// Questions that are asked, at most.
const QUESTIONS_MAX: usize = 200;
const SERVFAIL: u16 = 2;
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
    let shape = started.network().and_then(Network::shape);
    let tolerance = Tolerance {
        silence: shape.is_some_and(|it| it.loses()),
        servfail: server.cell().internet_loses(),
    };
    for group in groups {
        let edns = group.run.message.edns.as_ref();
        let signing = Signing {
            is_asked: edns.is_some_and(|edns| edns.dnssec_ok),
            by_server: server.cell().signs(),
        };
        let all = Expectation::sample(server.zone(), QUESTIONS_MAX, signing)?;
        let questions: Vec<&str> = all.iter().map(|it| it.question.as_str()).collect();
        let ask = |questions: &[&str]| {
            let of = |question: &&str| all.iter().find(|it| it.question == **question);
            let expected: Vec<&Expectation> = questions.iter().filter_map(of).collect();
            check_as(group, (server, &expected), &tolerance, interrupt)
        };
        let mut retry = again((server.cell(), started), Instant::now(), interrupt);
        let retry = |failed: &[&str], pause| {
            let is_tolerated = tolerance.silence || tolerance.servfail;
            Ok(is_tolerated && retry(failed, pause)?)
        };
        let left = fill(&questions, ask, retry)?;
        if let Some(first) = left.first().filter(|_| !interrupt.has_come()) {
            let (answered, of) = (all.len() - left.len(), all.len());
            let what = match tolerance.servfail {
                true => "no response but SERVFAIL",
                false => "no response",
            };
            let why = format!("{first}: {what}; {answered} of {of} questions were answered");
            return Err(wrong(server, &why));
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

/// What may fail at first and is asked again, because something on the way loses.
struct Tolerance {
    silence: bool,
    servfail: bool,
}

impl Tolerance {
    /// Whether this is the answer, or one after which the question is asked again.
    fn check(&self, expectation: &Expectation, message: &[u8]) -> Result<bool, String> {
        if self.servfail && proto::response::extended_rcode(message) == SERVFAIL {
            return Ok(false);
        }
        expectation.check(message).map(|()| true)
    }
}

/// Asks these questions once; for each, whether it was answered as expected.
fn check_as(
    group: &Group,
    (server, expected): (&ServerCell, &[&Expectation]),
    tolerance: &Tolerance,
    interrupt: &Interrupt,
) -> Result<Vec<bool>, Failure> {
    let questions: Vec<&str> = expected.iter().map(|it| it.question.as_str()).collect();
    let arrival = Arrival::Open {
        rate_qps: RATE_QPS,
        process: Process::default(),
        burst: 1,
    };
    let mut are_answered = vec![false; expected.len()];
    for (question, message) in ask_each(group, &questions, arrival, interrupt)? {
        if let Some(expectation) = expected.get(question) {
            let is_answered = tolerance.check(expectation, &message);
            are_answered[question] = is_answered.map_err(|why| wrong(server, &why))?;
        }
    }
    Ok(are_answered)
}

fn wrong(server: &ServerCell, why: &str) -> Failure {
    let title = server.product().title;
    Failure::in_operation(format!(
        "{title} does not answer as its zone says, and is not timed: {why}"
    ))
}

#[cfg(test)]
mod tests {
    use lab::target::Zone;

    use super::*;

    #[test]
    fn servfail_is_asked_again_only_where_servers_behind_the_resolver_lose() {
        let zone = Zone::with_records(2, 60);
        let expected = Expectation::sample(&zone, 1, Signing::default()).unwrap();
        // A response without records: SERVFAIL is RCODE 2.
        let message = [0, 0, 0x81, 0x82, 0, 0, 0, 0, 0, 0, 0, 0];
        let judged = |servfail| {
            let silence = false;
            Tolerance { silence, servfail }.check(&expected[0], &message)
        };
        assert_eq!(judged(true), Ok(false));
        assert!(judged(false).unwrap_err().contains("SERVFAIL instead of"));
    }
}
