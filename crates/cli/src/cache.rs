//! The cache of a resolver before a run: emptied, or filled with all names of the data.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use engine::{Observed, observer};
use lab::target::{Cache, Cell, RunningServer};
use settings::{Arrival, Generator, Limits, Names, Questions, Run};

use crate::failure::Failure;
use crate::run;
use crate::run::group::Group;
use crate::signals::Interrupt;

/// Names asked for in one run: as many responses are in memory at a time.
const NAMES_AT_ONCE: usize = 10_000;
/// Rounds in which names without an answer are asked again, at most.
const ROUNDS_MAX: usize = 20;
/// No round begins after this time.
const DURATION_MAX: Duration = Duration::from_secs(300);
/// The first pause before names are asked again, and the longest: for 10 s PowerDNS Recursor does
/// not ask a server about a name to which it had no response.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How often a pause looks for an interrupt.
const LOOK_EVERY: Duration = Duration::from_millis(10);
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
        Cache::Warm => warm((cell, server), (questions, group), interrupt),
    }
}

fn warm(
    (cell, server): (&Cell, &RunningServer),
    (questions, group): (&str, &Group),
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let all: Vec<&str> = questions.lines().collect();
    let begun = Instant::now();
    let mut rounds = 0;
    let ask = |names: &[&str]| {
        rounds += 1;
        ask_for_good(group, names, interrupt)
    };
    let left = fill(&all, ask, again((cell, server), begun, interrupt))?;
    let Some(first) = left.first().filter(|_| !interrupt.has_come()) else {
        return Ok(());
    };
    Err(Failure::in_operation(format!(
        "{} did not fill its cache: {} of {} names have no answer after {rounds} rounds in {} s, \
         `{first}` among them",
        cell.product.title,
        left.len(),
        all.len(),
        begun.elapsed().as_secs()
    )))
}

/// What is to be done before names are asked again: a pause, and the errors that the server would
/// repeat for them are forgotten. It says whether there is time for another round.
pub(crate) fn again<'a>(
    (cell, server): (&'a Cell, &'a RunningServer),
    begun: Instant,
    interrupt: &'a Interrupt,
) -> impl FnMut(&[&str], Duration) -> Result<bool, Failure> + 'a {
    move |failed, pause| {
        wait(pause, interrupt);
        let names = failed.iter();
        let names = names.filter_map(|line| line.split_ascii_whitespace().next());
        cell.forget(server, &names.collect::<Vec<&str>>())?;
        Ok(!interrupt.has_come() && begun.elapsed() < DURATION_MAX)
    }
}

/// Asks for all names, and again for those that were not answered; returns those that stay so.
/// Between two rounds `retry` pauses for the time given, and says whether there is another one.
pub(crate) fn fill<'a>(
    names: &[&'a str],
    mut ask: impl FnMut(&[&'a str]) -> Result<Vec<bool>, Failure>,
    mut retry: impl FnMut(&[&'a str], Duration) -> Result<bool, Failure>,
) -> Result<Vec<&'a str>, Failure> {
    let mut left = names.to_vec();
    let mut pause = Duration::ZERO;
    for round in 1..=ROUNDS_MAX {
        let mut are_good = Vec::new();
        for names in left.chunks(NAMES_AT_ONCE) {
            are_good.extend(ask(names)?);
        }
        let asked = left.iter().zip(are_good);
        left = asked
            .filter_map(|(name, is_good)| (!is_good).then_some(*name))
            .collect();
        if left.is_empty() || round == ROUNDS_MAX || !retry(&left, pause)? {
            break;
        }
        pause = (2 * pause).clamp(PAUSE_MIN, PAUSE_MAX);
    }
    Ok(left)
}

/// Asks each of the names once; for each, whether the response is one to keep in a cache.
fn ask_for_good(
    group: &Group,
    names: &[&str],
    interrupt: &Interrupt,
) -> Result<Vec<bool>, Failure> {
    let mut are_good = vec![false; names.len()];
    for (at, message) in ask_each(group, names, Arrival::default(), interrupt)? {
        are_good[at] = [NOERROR, NXDOMAIN].contains(&proto::response::extended_rcode(&message));
    }
    Ok(are_good)
}

fn wait(pause: Duration, interrupt: &Interrupt) {
    let until = Instant::now() + pause;
    while Instant::now() < until && !interrupt.has_come() {
        thread::park_timeout(LOOK_EVERY);
    }
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
    // The channel of observations ends when its last sender is dropped.
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn names_that_failed_alone_are_asked_again_after_longer_pauses() {
        let asked = RefCell::new(Vec::new());
        let ask = |names: &[&str]| {
            asked.borrow_mut().push(names.join(" "));
            let rounds = asked.borrow().len();
            // Both succeed in the end, one later than the other.
            let is_good = |name: &&str| match *name {
                "b" => rounds > 2,
                "c" => rounds > 3,
                _ => true,
            };
            Ok(names.iter().map(is_good).collect())
        };
        let retried = RefCell::new(Vec::new());
        let retry = |names: &[&str], pause: Duration| {
            retried.borrow_mut().push((names.join(" "), pause));
            Ok(true)
        };
        assert!(fill(&["a", "b", "c"], ask, retry).unwrap().is_empty());
        assert_eq!(*asked.borrow(), ["a b c", "b c", "b c", "c"]);
        let expected = [
            ("b c".to_owned(), Duration::ZERO),
            ("b c".to_owned(), PAUSE_MIN),
            ("c".to_owned(), 2 * PAUSE_MIN),
        ];
        assert_eq!(*retried.borrow(), expected);
    }

    #[test]
    fn names_that_stay_unanswered_are_returned_after_a_bounded_number_of_rounds() {
        let (mut rounds, mut paused) = (0, Duration::ZERO);
        let ask = |names: &[&str]| {
            rounds += 1;
            Ok(names.iter().map(|name| *name == "a").collect())
        };
        let retry = |_: &[&str], pause: Duration| {
            paused += pause;
            Ok(true)
        };
        assert_eq!(fill(&["a", "b", "c"], ask, retry).unwrap(), ["b", "c"]);
        assert_eq!(rounds, ROUNDS_MAX);
        assert!(paused < DURATION_MAX, "{paused:?}");

        let mut rounds = 0;
        let ask = |names: &[&str]| {
            rounds += 1;
            Ok(vec![false; names.len()])
        };
        assert_eq!(fill(&["a"], ask, |_, _| Ok(false)).unwrap(), ["a"]);
        assert_eq!(rounds, 1);
    }
}
