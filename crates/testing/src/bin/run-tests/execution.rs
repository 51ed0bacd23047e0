//! One test in a process: started, waited for, ended if it takes too long, and what it showed.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group};
use testing::cases::FAILED_CASES_FILE;
use testing::timed::{INCONCLUSIVE_FILE, ONE_ATTEMPT};

use crate::binaries::Job;
use crate::leftovers;
use crate::limits;
use crate::results::{FOLDER, Outcome, RunOfTest};

/// What libtest prints at the end; a process may exit with 0 before it has run the test.
const PASSED: &str = "test result: ok. 1 passed; 0 failed";

/// How the process of a test ended.
struct Ended {
    status: ExitStatus,
    seconds: f64,
    was_killed: bool,
}

/// How often a timed test tries to find its host quiet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempts {
    Several,
    One,
}

/// Runs a test. Its output is there afterwards, whatever it came to.
pub(crate) fn execute(job: &Job, attempts: Attempts) -> RunOfTest {
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
    let mut command = command(job, attempts);
    command.env("TMPDIR", &temporary);
    // Tests do not read the user's defaults.
    command.env("THRONG_CONFIG", "none");
    command.env(INCONCLUSIVE_FILE, &inconclusive);
    command.env(FAILED_CASES_FILE, failed_cases(job));
    let ended = ended(&mut command, &output);
    let left = leftovers::remove(&temporary);
    let text = fs::read(&output).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let why_not = fs::read_to_string(&inconclusive).unwrap_or_default();
    let _ = fs::remove_file(&inconclusive);
    let why_failed = why_failed(&ended, &text, &left);
    let (outcome, why) = match (why_failed.is_empty(), why_not.is_empty()) {
        (false, _) => (Outcome::Failed, why_failed),
        (true, false) => (Outcome::Inconclusive, why_not.trim().to_owned()),
        (true, true) => (Outcome::Passed, String::new()),
    };
    RunOfTest {
        job: job.clone(),
        outcome,
        seconds: ended.seconds,
        why,
        output: Some(output),
    }
}

/// Forgets which cases of a test have failed: all of them are to run.
pub(crate) fn forget_failed_cases(job: &Job) {
    let _ = fs::remove_file(failed_cases(job));
}

/// The file of the cases that have failed, which the test reads when it is run again.
fn failed_cases(job: &Job) -> PathBuf {
    let name = job.name().replace("::", "-");
    let path = Path::new(FOLDER).join(format!("output/{name}-cases.txt"));
    std::path::absolute(path).unwrap()
}

fn command(job: &Job, attempts: Attempts) -> Command {
    let mut command = Command::new(&job.executable);
    command.args(["--exact", &job.test, "--nocapture"]);
    command.current_dir(&job.folder).process_group(0);
    command.env("CARGO_MANIFEST_DIR", &job.folder);
    if attempts == Attempts::One {
        command.env(ONE_ATTEMPT, "1");
    }
    command
}

fn ended(command: &mut Command, output: &Path) -> Ended {
    let file = File::create(output).unwrap();
    command.stdin(Stdio::null());
    command.stdout(file.try_clone().unwrap()).stderr(file);
    let began = Instant::now();
    let mut child = command.spawn().unwrap();
    let pid = Pid::from_child(&child);
    let deadline = began + limits::of_test();
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

/// A line for each reason why the test has failed; empty if it passed.
fn why_failed(ended: &Ended, output: &str, left: &[String]) -> String {
    let mut why = Vec::new();
    if ended.was_killed {
        why.push(format!("ended after {:.0} s", ended.seconds));
    } else if !ended.status.success() {
        why.push(status_text(ended.status));
    } else if !output.contains(PASSED) {
        why.push("no result".to_owned());
    }
    why.extend(left.iter().cloned());
    why.join("\n")
}

fn status_text(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit code".to_owned(),
    }
}
