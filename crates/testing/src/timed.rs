//! Timed tests: what needs a quiet host is tried until the host was quiet.
//!
//! An attempt that is as it should be passes, whatever the host did. One that is not is a failure
//! if the host was quiet meanwhile, and is repeated if it was not. A host that is never quiet
//! makes the test *inconclusive*, which `run-tests` counts apart from passed and failed.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::quiet::{Disturbance, Quiet};

/// Attempts before a test is inconclusive.
const ATTEMPTS_MAX: usize = 5;
/// No attempt begins later than that after the first.
const PATIENCE: Duration = Duration::from_secs(45);
/// If set, tests make one attempt each: `run-tests` sets it when busy hosts have cost enough time.
pub const ONE_ATTEMPT: &str = "THRONG_TEST_ONE_ATTEMPT";
/// Names the file that a test writes why it is inconclusive to; `run-tests` reads it.
pub const INCONCLUSIVE_FILE: &str = "THRONG_TEST_INCONCLUSIVE";

/// How one attempt ended.
pub struct Attempt {
    /// What the host did meanwhile.
    pub disturbance: Disturbance,
    /// What is wrong, if anything is.
    pub outcome: Result<(), String>,
}

/// Repeats `attempt` until it is as it should be.
///
/// # Panics
///
/// If an attempt is wrong though the host was as quiet as `quiet` says.
#[track_caller]
pub fn on_quiet_host(quiet: Quiet, attempt: impl FnMut() -> Attempt) {
    if let Err(why) = is_right_on_quiet_host(quiet, attempt) {
        inconclusive(&why);
    }
}

/// Like [`on_quiet_host`]; returns what was wrong in all attempts if none of them was quiet.
#[track_caller]
fn is_right_on_quiet_host(
    quiet: Quiet,
    mut attempt: impl FnMut() -> Attempt,
) -> Result<(), String> {
    let began = Instant::now();
    let mut wrong = String::new();
    for _ in 0..ATTEMPTS_MAX {
        let Attempt {
            disturbance,
            outcome,
        } = attempt();
        let Err(what) = outcome else {
            return Ok(());
        };
        let Some(why) = disturbance.beyond(quiet) else {
            panic!("on a quiet host ({disturbance:?}): {what}");
        };
        let _ = writeln!(wrong, "{why}: {what}");
        if began.elapsed() >= PATIENCE || std::env::var_os(ONE_ATTEMPT).is_some() {
            break;
        }
    }
    Err(wrong)
}

/// Reports that this test showed nothing, and why: a busy host, a registry that is not reached.
pub fn inconclusive(why: &str) {
    eprintln!("inconclusive: {why}");
    let Some(path) = std::env::var_os(INCONCLUSIVE_FILE) else {
        return;
    };
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.unwrap().write_all(why.as_bytes()).unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(waited: f64, outcome: Result<(), String>) -> Attempt {
        Attempt {
            disturbance: Disturbance {
                generator_waited: waited,
                ..Disturbance::default()
            },
            outcome,
        }
    }

    #[test]
    fn wrong_attempts_of_a_busy_host_are_repeated_until_one_is_right() {
        let mut attempts = 0;
        let outcome = is_right_on_quiet_host(Quiet::VERDICT, || {
            attempts += 1;
            attempt(0.5, (attempts == 3).then_some(()).ok_or(String::new()))
        });
        assert_eq!((attempts, outcome), (3, Ok(())));
    }

    #[test]
    #[should_panic(expected = "on a quiet host")]
    fn wrong_attempt_of_a_quiet_host_is_a_failure() {
        let _ = is_right_on_quiet_host(Quiet::VERDICT, || attempt(0.0, Err("wrong".to_owned())));
    }

    #[test]
    fn attempts_of_a_host_that_is_never_quiet_are_bounded() {
        let mut attempts = 0;
        let outcome = is_right_on_quiet_host(Quiet::VERDICT, || {
            attempts += 1;
            attempt(0.5, Err("wrong".to_owned()))
        });
        assert_eq!(attempts, ATTEMPTS_MAX);
        assert_eq!(outcome.unwrap_err().lines().count(), ATTEMPTS_MAX);
    }
}
