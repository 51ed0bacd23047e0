//! One process of tests: started, waited for, ended if it takes too long, and what it showed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group};
use testing::timed::INCONCLUSIVE_FILE;

use crate::binaries::Job;
use crate::leftovers;
use crate::limits;
use crate::results::{FOLDER, Outcome, RunOfTest};

/// How the process of a job ended.
struct Ended {
    status: ExitStatus,
    seconds: f64,
    was_killed: bool,
}

/// Runs a job, and returns each of its tests.
pub(crate) fn execute(job: &Job) -> Vec<RunOfTest> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::SeqCst);
    let mark = format!("{}-{number}", std::process::id());
    let outputs = Path::new(FOLDER).join("output");
    let output = outputs.join(format!("{mark}.txt"));
    // The test runs in another folder.
    let inconclusive = std::path::absolute(outputs.join(format!("{mark}-host.txt"))).unwrap();
    // Short, because the path of a Unix socket has 107 octets at most.
    let temporary = std::env::temp_dir().join(format!("t{mark}"));
    fs::create_dir(&temporary).unwrap();
    // Servers that run as other users write there.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
    fs::set_permissions(&temporary, open).unwrap();
    let ended = ended(job, &output, &temporary, &inconclusive);
    let left = leftovers::remove(&temporary);
    let text = fs::read(&output).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let why_not = fs::read_to_string(&inconclusive).unwrap_or_default();
    let _ = fs::remove_file(&inconclusive);
    let runs = judged(job, &ended, &text, &left, &why_not);
    keep(runs, output)
}

fn ended(job: &Job, output: &Path, temporary: &Path, inconclusive: &Path) -> Ended {
    let file = File::create(output).unwrap();
    let mut command = Command::new(&job.executable);
    match job.tests.as_slice() {
        [test] => command.args(["--exact", test, "--nocapture"]),
        // Times are for nightly compilers, or for whoever asks in this way.
        _ => command
            .args(["-Zunstable-options", "--report-time"])
            .env("RUSTC_BOOTSTRAP", "1"),
    };
    command.current_dir(&job.folder).process_group(0);
    command.env("CARGO_MANIFEST_DIR", &job.folder);
    command.env("TMPDIR", temporary);
    command.env(INCONCLUSIVE_FILE, inconclusive);
    command.stdin(Stdio::null());
    command.stdout(file.try_clone().unwrap()).stderr(file);
    let began = Instant::now();
    let mut child = command.spawn().unwrap();
    let pid = Pid::from_child(&child);
    let deadline = began + limits::of_process(job.tests.len());
    let was_killed = !leftovers::wait_for_end(pid, deadline);
    if was_killed {
        let _ = kill_process_group(pid, Signal::KILL);
    }
    Ended {
        status: child.wait().unwrap(),
        seconds: began.elapsed().as_secs_f64(),
        was_killed,
    }
}

/// What the process showed of each test.
fn judged(
    job: &Job,
    ended: &Ended,
    output: &str,
    left: &[String],
    inconclusive: &str,
) -> Vec<RunOfTest> {
    let results = results_of_libtest(output);
    let of = |(position, test): (usize, &String)| {
        let result = results.get(test.as_str());
        let mut why = match result {
            Some(it) if it.passed => Vec::new(),
            _ if ended.was_killed => vec![format!("ended after {:.0} s", ended.seconds)],
            Some(_) => vec!["failed".to_owned()],
            None => vec![format!("no result: {}", status_text(ended.status))],
        };
        // Which of several tests left it cannot be seen: it fails one of them.
        if position == 0 {
            why.extend(left.iter().cloned());
        }
        let outcome = match why.is_empty() {
            false => Outcome::Failed,
            true if !inconclusive.is_empty() => Outcome::Inconclusive,
            true => Outcome::Passed,
        };
        if outcome == Outcome::Inconclusive {
            why.push(inconclusive.trim().to_owned());
        }
        let seconds = result.and_then(|it| it.seconds);
        RunOfTest {
            job: job.for_test(test),
            outcome,
            seconds: seconds.unwrap_or(ended.seconds / job.tests.len() as f64),
            why: why.join("\n"),
            output: None,
        }
    };
    job.tests.iter().enumerate().map(of).collect()
}

/// The output is kept if a test did not pass.
fn keep(mut runs: Vec<RunOfTest>, output: PathBuf) -> Vec<RunOfTest> {
    let not_passed = runs.iter_mut().filter(|it| it.outcome != Outcome::Passed);
    let mut is_kept = false;
    for run in not_passed {
        run.output = Some(output.clone());
        is_kept = true;
    }
    if !is_kept {
        let _ = fs::remove_file(output);
    }
    runs
}

/// What libtest printed of one test.
#[derive(Debug, PartialEq)]
struct ResultOfLibtest {
    passed: bool,
    /// With `--report-time` only.
    seconds: Option<f64>,
}

/// Reads `test NAME ... ok <1.234s>`, where the test's own output may stand before the result, and
/// the sum at the end, which decides for a single test.
fn results_of_libtest(output: &str) -> BTreeMap<&str, ResultOfLibtest> {
    let mut results = BTreeMap::new();
    for line in output.lines() {
        let Some((name, rest)) = line.strip_prefix("test ").and_then(split_name) else {
            continue;
        };
        let (rest, seconds) = split_time(rest.trim_end());
        let passed = match rest {
            it if it.ends_with("FAILED") => false,
            it if it == "ok" || it.ends_with(" ok") => true,
            // Its output follows, and the result later.
            _ => output.contains("test result: ok. 1 passed; 0 failed"),
        };
        results.insert(name, ResultOfLibtest { passed, seconds });
    }
    results
}

fn split_time(rest: &str) -> (&str, Option<f64>) {
    let time = rest.strip_suffix("s>").and_then(|it| it.rsplit_once(" <"));
    match time.and_then(|(rest, seconds)| Some((rest, seconds.parse().ok()?))) {
        Some((rest, seconds)) => (rest, Some(seconds)),
        None => (rest, None),
    }
}

fn split_name(rest: &str) -> Option<(&str, &str)> {
    let (name, rest) = rest.split_once(" ... ").or(rest.split_once(" ..."))?;
    let (name, _) = name.split_once(" - should panic").unwrap_or((name, ""));
    Some((name, rest))
}

fn status_text(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit code".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(output: &str, test: &str) -> bool {
        results_of_libtest(output)[test].passed
    }

    #[test]
    fn results_are_read_with_the_output_of_tests_between() {
        let output = "\nrunning 3 tests\ntest a::one ... ok\ntest a::two - should panic ... ok\n\
                      test b ... FAILED\nsome output\n";
        assert!(passed(output, "a::one") && passed(output, "a::two") && !passed(output, "b"));
    }

    #[test]
    fn times_of_tests_in_one_process_are_read() {
        let output = "running 2 tests\ntest a has been running for over 60 seconds\n\
                      test a ... ok <61.500s>\ntest b ... FAILED <0.001s>\n";
        let results = results_of_libtest(output);
        let found = |test: &str| (results[test].passed, results[test].seconds);
        assert_eq!(found("a"), (true, Some(61.5)));
        assert_eq!(found("b"), (false, Some(0.001)));
    }

    #[test]
    fn single_test_that_prints_is_judged_by_the_sum() {
        let output = "running 1 test\ntest a ... not tested: x\nok\n\n\
                      test result: ok. 1 passed; 0 failed; 0 ignored\n";
        assert!(passed(output, "a"));
        assert!(!passed("running 1 test\ntest a ... half a line", "a"));
    }
}
