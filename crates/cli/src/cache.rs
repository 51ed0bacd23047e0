//! The cache of a resolver before a run: emptied, or filled with all names of the data.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::{Observed, observer};
use lab::target::{Cache, Cell, RunningServer};
use settings::{Arrival, Generator, Limits, Names, Questions, Run};

use crate::failure::Failure;
use crate::run;
use crate::run::group::Group;
use crate::signals::Interrupt;

/// Names that are asked in one go: so many responses are kept at a time.
const NAMES_AT_ONCE: usize = 10_000;
/// How often what was not answered is asked again, at most.
const ROUNDS_MAX: usize = 20;
/// A response, and the position of its question.
pub(crate) type Answer = (usize, Box<[u8]>);

const NOERROR: u16 = 0;
const NXDOMAIN: u16 = 3;

/// Brings the cache of what was started from a cell into the state that it asks for; `questions`
/// are asked as the group would.
pub(crate) fn prepare(
    cell: &Cell,
    server: &RunningServer,
    (questions, group): (&str, &Group),
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    match cell.cache() {
        Cache::AsItIs => Ok(()),
        Cache::Cold => Ok(cell.flush(server)?),
        Cache::Warm => warm(cell.product.title, (questions, group), interrupt),
    }
}

fn warm(
    title: &str,
    (questions, group): (&str, &Group),
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let mut left: Vec<&str> = questions.lines().collect();
    for _ in 0..ROUNDS_MAX {
        let mut unanswered = Vec::new();
        for names in left.chunks(NAMES_AT_ONCE) {
            let answers = ask_each(group, names, Arrival::default(), interrupt)?;
            let is_good = |message: &[u8]| {
                [NOERROR, NXDOMAIN].contains(&proto::response::extended_rcode(message))
            };
            let good = answers.iter().filter(|(_, message)| is_good(message));
            let good: BTreeSet<usize> = good.map(|(at, _)| *at).collect();
            let others = names.iter().enumerate();
            unanswered.extend(others.filter(|(at, _)| !good.contains(at)).map(|it| *it.1));
        }
        left = unanswered;
        if left.is_empty() || interrupt.has_come() {
            return Ok(());
        }
    }
    Err(Failure::in_operation(format!(
        "{title} did not fill its cache: {} names have no answer after {ROUNDS_MAX} rounds, {} \
         among them",
        left.len(),
        left[0]
    )))
}

/// Asks each of the questions once, as one client over a connection like those of the group; what
/// was answered.
pub(crate) fn ask_each(
    group: &Group,
    questions: &[&str],
    arrival: Arrival,
    interrupt: &Interrupt,
) -> Result<Vec<Answer>, Failure> {
    let mut request = run::request(&Group {
        run: run_of(&group.run, questions, arrival),
        ..group.clone()
    })?;
    let (observer, observations) = observer();
    request.observer = Some(observer.with_messages());
    let control = lab::run::control(std::slice::from_ref(&request));
    interrupt.stops(&control);
    lab::run::run(&request, &Arc::clone(&control), |_| ())?;
    // The observations end when nobody can tell any more.
    drop(request);
    let answered = |observed: Observed| match observed {
        Observed::Ended {
            question,
            message: Some(message),
            ..
        } => Some((question as usize, message)),
        _ => None,
    };
    Ok(observations
        .into_iter()
        .filter_map(|it| answered(it.event))
        .collect())
}

fn run_of(run: &Run, questions: &[&str], arrival: Arrival) -> Run {
    Run {
        servers: run.servers.clone(),
        transport: run.transport,
        message: run.message.clone(),
        allows_public: run.allows_public,
        questions: Questions {
            names: Some(Names::Lines(format!("{}\n", questions.join("\n")))),
            ..Questions::default()
        },
        arrival,
        clients: Some(1),
        http: run.http.clone(),
        tls: run.tls.clone(),
        limits: Limits {
            queries: Some(questions.len() as u64),
            ..Limits::default()
        },
        generator: Generator {
            workers: Some(1),
            ..Generator::default()
        },
        ..Run::default()
    }
}
