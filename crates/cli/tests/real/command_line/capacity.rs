//! `throng capacity`: how a search ends that is interrupted.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use measure::capacity::{Capacity, EndedBy, Purpose, TrialOutcome};
use testing::program::signal;

use crate::process::THRONG;

#[test]
fn interrupted_search_tells_what_is_known_so_far() {
    let line = "capacity --repeat 1 --trial-duration 1s --format json --start 100 --workers 1 \
                --max-p99 5s --max-loss 100%";
    let mut command = Command::new(THRONG);
    command.args(line.split_whitespace()).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    let second = stderr.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("trial  2")));
    assert!(second.is_some());
    signal(&child, "INT");
    let mut stdout = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut stdout)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let capacity: Capacity = serde_json::from_str(&stdout).unwrap();
    assert_eq!(capacity.ended_by, EndedBy::Interrupted);
    let search = |trial: &&measure::capacity::Trial| trial.purpose == Purpose::Search;
    let passed = capacity.trials.iter().filter(search);
    let passed = passed.filter(|trial| trial.outcome == TrialOutcome::Passed);
    let highest = passed.map(|trial| trial.value).fold(0.0, f64::max);
    assert_eq!(capacity.answer.value, Some(highest));
    assert!(highest >= 100.0);
}
