//! Cases of one test, which share what is expensive to start. Each runs whatever became of those
//! before it. If the test is run again, only the cases that failed are.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::Mutex;

/// Names the file that a test writes its failed cases to, and reads when it is run again;
/// `run-tests` keeps one for each test.
pub const FAILED_CASES_FILE: &str = "THRONG_TEST_FAILED_CASES";

/// The cases of a test; several threads may run them.
pub struct Cases {
    file: Option<PathBuf>,
    /// All of them, unless the test is run again.
    only: Option<BTreeSet<String>>,
    ran: Mutex<BTreeSet<String>>,
    /// With the messages of their panics.
    failed: Mutex<BTreeMap<String, String>>,
}

impl Cases {
    /// Reads which cases have failed before.
    pub fn begin() -> Cases {
        let file = std::env::var_os(FAILED_CASES_FILE).map(PathBuf::from);
        Cases::of(file)
    }

    fn of(file: Option<PathBuf>) -> Cases {
        let text = file.as_ref().and_then(|it| fs::read_to_string(it).ok());
        if let Some(file) = file.as_ref().filter(|_| text.is_some()) {
            // A test that is killed has not run all cases: the next one does.
            fs::remove_file(file).unwrap();
        }
        Cases {
            only: text.map(|it| it.lines().map(str::to_owned).collect()),
            file,
            ran: Mutex::default(),
            failed: Mutex::default(),
        }
    }

    /// Runs a case, and returns what it does; its panic fails the test at the end.
    pub fn run<R>(&self, name: &str, case: impl FnOnce() -> R) -> Option<R> {
        if self.only.as_ref().is_some_and(|only| !only.contains(name)) {
            return None;
        }
        eprintln!("case {name}");
        self.ran.lock().unwrap().insert(name.to_owned());
        // Cases that run beside this one print where its panic is found.
        panic::catch_unwind(AssertUnwindSafe(case))
            .map_err(|panic| {
                eprintln!("case failed: {name}");
                let mut failed = self.failed.lock().unwrap();
                failed.insert(name.to_owned(), message(&*panic));
            })
            .ok()
    }

    /// Ends the test.
    ///
    /// # Panics
    ///
    /// If a case has failed, or has not run again after it had.
    #[track_caller]
    pub fn end(self) {
        let ran = self.ran.into_inner().unwrap();
        let only = self.only.unwrap_or_default();
        assert!(only.is_subset(&ran), "of {only:?}, only {ran:?} ran");
        let failed = self.failed.into_inner().unwrap();
        if failed.is_empty() {
            return;
        }
        if let Some(file) = self.file {
            let names: Vec<&str> = failed.keys().map(String::as_str).collect();
            fs::write(file, names.join("\n")).unwrap();
        }
        let each = failed.iter().map(|(name, said)| format!("{name}: {said}"));
        let each: Vec<String> = each.collect();
        panic!("cases failed ({}):\n{}", each.len(), each.join("\n"));
    }
}

/// What a panic says.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let fixed = panic.downcast_ref::<&str>().map(|it| (*it).to_owned());
    text.or(fixed).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::folder::Folder;

    #[test]
    fn a_test_that_is_run_again_runs_the_cases_that_failed() {
        let folder = Folder::new("cases");
        let file = Some(PathBuf::from(folder.path("failed")));
        let runs = AtomicU32::new(0);
        let of_two = |second_fails: bool| {
            let cases = Cases::of(file.clone());
            cases.run("one", || {
                runs.fetch_add(1, Ordering::SeqCst);
            });
            cases.run("two", || {
                runs.fetch_add(10, Ordering::SeqCst);
                assert!(!second_fails, "it is wrong");
            });
            let ended = panic::catch_unwind(|| cases.end());
            ended
                .map_err(|it| assert_eq!(message(&*it), "cases failed (1):\ntwo: it is wrong"))
                .is_ok()
        };
        for (second_fails, is_passed, ran) in [
            (true, false, 11),
            (true, false, 10),
            (false, true, 10),
            // It has passed: all are run the next time.
            (false, true, 11),
        ] {
            runs.store(0, Ordering::SeqCst);
            assert_eq!(of_two(second_fails), is_passed);
            assert_eq!(runs.load(Ordering::SeqCst), ran);
        }
    }

    #[test]
    fn a_case_that_failed_must_run_again() {
        let folder = Folder::new("cases-gone");
        let path = folder.path("failed");
        fs::write(&path, "one").unwrap();
        let cases = Cases::of(Some(PathBuf::from(path)));
        cases.run("two", || ());
        assert!(panic::catch_unwind(|| cases.end()).is_err());
    }
}
