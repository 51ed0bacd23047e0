//! Waits for what another process does, where no descriptor tells when it is done.
//!
//! These are the only places where tests poll. They leave the CPU to the process that they wait
//! for: the pauses grow from a millisecond to 20 ms.

use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Waits until `is_so`.
///
/// # Panics
///
/// If it is not so within two minutes. `what` says what was waited for.
#[track_caller]
pub fn until(what: &str, is_so: impl FnMut() -> bool) {
    assert!(is_soon(is_so), "timed out waiting for {what}");
}

/// Like [`until`], for code that must not panic; false if it is not so within two minutes.
pub fn is_soon(is_so: impl FnMut() -> bool) -> bool {
    is_within(PATIENCE, is_so)
}

/// Waits until there is something at that path.
///
/// # Panics
///
/// If there is nothing within two minutes.
#[track_caller]
pub fn for_file(path: impl AsRef<Path>) {
    let path = path.as_ref();
    until(&path.display().to_string(), || path.exists());
}

/// Waits until `is_so` while a child process is at work.
///
/// # Panics
///
/// If the process ends before, or it is not so within two minutes.
#[track_caller]
pub fn until_child(child: &mut Child, what: &str, mut is_so: impl FnMut(&Child) -> bool) {
    let mut ended = None;
    until(what, || {
        // What a child did before it ended counts.
        ended = child.try_wait().unwrap();
        is_so(child) || ended.is_some()
    });
    assert!(is_so(child) || ended.is_none(), "{ended:?} before {what}");
}

/// Waits until there is something, and returns it.
///
/// # Panics
///
/// If there is nothing within two minutes.
#[track_caller]
pub fn for_some<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    until(what, || {
        found = look();
        found.is_some()
    });
    found.unwrap()
}

fn is_within(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    let mut pause = PAUSE_MIN;
    while !is_so() {
        if began.elapsed() >= patience {
            return false;
        }
        thread::park_timeout(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
    true
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn condition_is_looked_at_until_it_is_so_or_patience_ends() {
        let mut looks = 0;
        until("the third look", || {
            looks += 1;
            looks == 3
        });
        assert_eq!(looks, 3);
        assert_eq!(for_some("a value", || Some(5)), 5);
        assert!(!is_within(Duration::ZERO, || false));
    }

    #[test]
    #[should_panic(expected = "before the moon")]
    fn child_that_ends_too_early_is_a_failure() {
        let mut child = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
        until_child(&mut child, "the moon", |_| false);
    }
}
