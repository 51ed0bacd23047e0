//! How long tests and what they started may take. Settings of the environment shorten the limits in
//! tests of this program.

use std::time::Duration;

/// A test that is not done by then is ended, and has failed.
const TEST: (&str, u64) = ("THRONG_TEST_SECONDS", 600);
/// How long processes that a test has ended may take to be gone.
const LEFTOVERS: (&str, u64) = ("THRONG_TEST_LEFTOVER_SECONDS", 20);
/// Several tests in one process seldom take that many times the limit of one.
const TESTS_MAX: usize = 3;

/// The limit of a process with that number of tests.
pub(crate) fn of_process(tests: usize) -> Duration {
    setting(TEST) * u32::try_from(tests.clamp(1, TESTS_MAX)).unwrap()
}

pub(crate) fn of_leftovers() -> Duration {
    setting(LEFTOVERS)
}

fn setting((name, seconds): (&str, u64)) -> Duration {
    let set = std::env::var(name).ok().and_then(|it| it.parse().ok());
    Duration::from_secs(set.unwrap_or(seconds))
}
