//! Who runs when: pure tests on as many threads as there are CPUs, real tests beside them on more,
//! because they mostly wait, and timed tests alone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use crate::binaries::{Job, Kind};
use crate::execution::{Attempts, execute, forget_failed_cases};
use crate::results::{self, Outcome, Results, RunOfTest};

/// Real tests at once, for each CPU.
const REAL_PER_CPU: usize = 3;
/// More failures than that are no accident, and are not run again.
const AGAIN_MAX: usize = 40;
/// Once timed tests have spent that long without a quiet host, those that follow make one attempt
/// each; no longer than that after the first are they begun again.
const INCONCLUSIVE_SECONDS_MAX: f64 = 180.0;
/// Lines of a failed test's output that are printed.
const LINES_MAX: usize = 60;

/// Runs jobs, those that need a quiet host after all others.
pub(crate) fn run_all(jobs: Vec<Job>) -> Result<(), String> {
    let results = Results::open()?;
    let cpus = thread::available_parallelism().map_or(2, usize::from);
    let mut by_kind = BTreeMap::<Kind, VecDeque<Job>>::new();
    for job in jobs {
        forget_failed_cases(&job);
        by_kind.entry(job.kind).or_default().push_back(job);
    }
    let timed = by_kind.remove(&Kind::Timed);
    let board = Board::new(by_kind.values().chain(timed.iter()).flatten());
    let queues = by_kind
        .into_iter()
        .map(|(kind, jobs)| (kind, Mutex::new(jobs)));
    let queues: Vec<(Kind, Mutex<VecDeque<Job>>)> = queues.collect();
    thread::scope(|scope| {
        for (kind, queue) in &queues {
            let threads = match kind {
                Kind::Real => cpus * REAL_PER_CPU,
                Kind::Pure | Kind::Timed => cpus,
            };
            for _ in 0..threads {
                scope.spawn(|| drain(queue, &results, &board));
            }
        }
    });
    drain(&Mutex::new(timed.unwrap_or_default()), &results, &board);
    Ok(())
}

fn drain(queue: &Mutex<VecDeque<Job>>, results: &Results, board: &Board) {
    let mut inconclusive_seconds = 0.0;
    loop {
        let Some(job) = queue.lock().unwrap().pop_front() else {
            return;
        };
        let attempts = match inconclusive_seconds < INCONCLUSIVE_SECONDS_MAX {
            true => Attempts::Several,
            false => Attempts::One,
        };
        let run = execute(&job, attempts).without_output_if_passed();
        if run.outcome == Outcome::Inconclusive {
            inconclusive_seconds += run.seconds;
        }
        board.show(&run);
        results.add(&run);
    }
}

/// Runs each test whose last run did not pass once more, alone. The host may be quiet now for those
/// that it was too busy for.
pub(crate) fn run_again() -> Result<bool, String> {
    let runs = results::read()?;
    let jobs = |outcome| last_ended(&runs, outcome);
    let failed = jobs(Outcome::Failed);
    if failed.len() > AGAIN_MAX {
        eprintln!("{} tests failed; they are not run again", failed.len());
        return Ok(false);
    }
    let results = Results::open()?;
    let once_more = |job: &Job| {
        println!("again, alone: {}", job.name());
        // What differs between the two outputs of a flaky test is why it is flaky.
        let run = execute(job, Attempts::Several);
        print_if_not_passed(&run);
        results.add(&run);
        run.outcome
    };
    // One that shows nothing leaves the failure as it was.
    let mut all_passed = true;
    for job in failed {
        all_passed &= once_more(&job) == Outcome::Passed;
    }
    let began = Instant::now();
    for job in jobs(Outcome::Inconclusive) {
        if began.elapsed().as_secs_f64() >= INCONCLUSIVE_SECONDS_MAX {
            break;
        }
        // Its first failure.
        if once_more(&job) == Outcome::Failed {
            all_passed &= once_more(&job) == Outcome::Passed;
        }
    }
    Ok(all_passed)
}

/// Tests whose last run ended so, in the order of these runs.
fn last_ended(runs: &[RunOfTest], outcome: Outcome) -> Vec<Job> {
    let mut seen = BTreeSet::new();
    let last_first = runs.iter().rev().filter(|run| seen.insert(run.job.name()));
    let ended = last_first.filter(|run| run.outcome == outcome);
    let mut jobs: Vec<Job> = ended.map(|run| run.job.clone()).collect();
    jobs.reverse();
    jobs
}

/// Counts down the tests of each binary.
struct Board {
    left: Mutex<BTreeMap<String, Left>>,
}

struct Left {
    tests: usize,
    all: usize,
    passed: usize,
    began: Instant,
}

impl Board {
    fn new<'a>(jobs: impl Iterator<Item = &'a Job>) -> Board {
        let mut left = BTreeMap::new();
        for job in jobs {
            let entry = left.entry(job.binary.clone()).or_insert(Left {
                tests: 0,
                all: 0,
                passed: 0,
                began: Instant::now(),
            });
            entry.tests += 1;
            entry.all += 1;
        }
        Board {
            left: Mutex::new(left),
        }
    }

    /// Prints a test that did not pass, and a line for a binary whose tests are all done.
    fn show(&self, run: &RunOfTest) {
        let mut left = self.left.lock().unwrap();
        print_if_not_passed(run);
        let Some(entry) = left.get_mut(&run.job.binary) else {
            return;
        };
        entry.tests -= 1;
        entry.passed += usize::from(run.outcome == Outcome::Passed);
        if entry.tests == 0 {
            let seconds = entry.began.elapsed().as_secs_f64();
            let (passed, all) = (entry.passed, entry.all);
            println!(
                "{}: {passed} of {all} passed, after {seconds:.0} s",
                run.job.binary
            );
        }
    }
}

fn print_if_not_passed(run: &RunOfTest) {
    let word = match run.outcome {
        Outcome::Passed => return,
        Outcome::Failed => "FAILED",
        Outcome::Inconclusive => "inconclusive",
    };
    let mut text = format!("{word}: {} ({:.1} s)\n", run.job.name(), run.seconds);
    text += &format!("    {}\n", run.why.replace('\n', "\n    "));
    if let (Outcome::Failed, Some(path)) = (run.outcome, &run.output) {
        let output = fs::read(path).unwrap_or_default();
        let output = String::from_utf8_lossy(&output).into_owned();
        let lines: Vec<&str> = output.lines().collect();
        let from = lines.len().saturating_sub(LINES_MAX);
        for line in &lines[from..] {
            text += &format!("    | {line}\n");
        }
    }
    print!("{text}");
}
