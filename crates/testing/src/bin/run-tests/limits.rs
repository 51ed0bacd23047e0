//! How long tests and what they started may take. Settings of the environment shorten the limits in
//! tests of this program.

use std::time::Duration;

/// A test that is not done by then is ended, and has failed. The longest one, of a cluster, takes
/// 880 s beside two busy processes.
const TEST: (&str, u64) = ("THRONG_TEST_SECONDS", 1_800);
/// How long processes that a test has ended may take to be gone.
const LEFTOVERS: (&str, u64) = ("THRONG_TEST_LEFTOVER_SECONDS", 20);

pub(crate) fn of_test() -> Duration {
    setting(TEST)
}

pub(crate) fn of_leftovers() -> Duration {
    setting(LEFTOVERS)
}

fn setting((name, seconds): (&str, u64)) -> Duration {
    let set = std::env::var(name).ok().and_then(|it| it.parse().ok());
    Duration::from_secs(set.unwrap_or(seconds))
}
