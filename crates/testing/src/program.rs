//! Processes that tests start: run to their end, killed with their test, waited for.

use std::fs;
use std::io::Write;
use std::ops::{Deref, DerefMut};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// A process that is still there after that many seconds is killed, and its test fails.
const SECONDS_MAX: &str = "300";
/// How long what a test has started may take to end after it, on a busy machine.
pub(crate) const END_MAX: Duration = Duration::from_secs(120);

/// A process that is killed, if it has not ended, and waited for when this is dropped.
pub struct Running(pub Child);

impl Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A command that has ended.
pub struct Finished {
    /// The command line.
    pub line: String,
    /// The exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// All that it wrote to standard output.
    pub stdout: String,
    /// All that it wrote to standard error.
    pub stderr: String,
}

impl Finished {
    /// Takes what a command wrote, which must be UTF-8.
    pub fn new(line: &str, output: Output) -> Finished {
        let text = |octets| String::from_utf8(octets).unwrap();
        Finished {
            line: line.to_owned(),
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Standard output, after exit code 0.
    pub fn succeeded(self) -> String {
        self.ended_with(0)
    }

    /// Standard output, after the exit code given.
    pub fn ended_with(self, code: i32) -> String {
        let Finished { line, stderr, .. } = &self;
        assert_eq!(self.code, Some(code), "{line}\n{}\n{stderr}", self.stdout);
        self.stdout
    }

    /// The error, and its hint or nothing, of a command that refused to start: exit code 2, one
    /// error, nothing on standard output.
    pub fn refused(self) -> (String, String) {
        let Finished { line, stderr, .. } = &self;
        assert_eq!(self.code, Some(2), "{line}\n{}\n{stderr}", self.stdout);
        assert_eq!(self.stdout, "", "{line}");
        // A command first removes what one that was killed has left, another test's too, and
        // says so; where connecting takes long, it says how far it is.
        let before = ["removed the network namespace", "connecting: "];
        let is_before = |line: &&str| before.iter().any(|start| line.starts_with(start));
        let mut lines = stderr.lines().skip_while(is_before);
        let error = lines.next().and_then(|line| line.strip_prefix("error: "));
        let error = error.unwrap_or_else(|| panic!("{line}: no error in {stderr}"));
        let hint = lines.next().map_or("", |hint| {
            let hint = hint.strip_prefix("hint: ");
            hint.unwrap_or_else(|| panic!("{line}: no hint in {stderr}"))
        });
        assert_eq!(lines.next(), None, "{line}: more than a hint in {stderr}");
        let full_stop = error.ends_with('.') && !error.ends_with("...");
        assert!(!full_stop, "{line}: {error}");
        (error.to_owned(), hint.to_owned())
    }

    /// Checks that a command refused to start with these parts in its error and in its hint;
    /// without a part of it there must be no hint.
    pub fn refused_with(self, error_part: &str, hint_part: &str) {
        let line = self.line.clone();
        let (error, hint) = self.refused();
        let of_line = format!("{line}\n{error}\n{hint}");
        assert!(error.contains(error_part), "no `{error_part}`: {of_line}");
        assert!(hint.contains(hint_part), "no `{hint_part}`: {of_line}");
        assert_eq!(hint.is_empty(), hint_part.is_empty(), "{of_line}");
    }
}

/// Runs a command whose arguments are separated by blanks to its end. It is killed after five
/// minutes.
pub fn execute(line: &str) -> Finished {
    execute_with(line, b"")
}

/// As [`execute`], with standard input.
pub fn execute_with(line: &str, stdin: &[u8]) -> Finished {
    let mut command = Command::new("timeout");
    command.args(["--foreground", "--signal=KILL", SECONDS_MAX]);
    command.args(line.split_whitespace());
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // Apart, because a command may write much before it has read all. One that fails early does
        // not read its input.
        scope.spawn(move || drop(input.write_all(stdin)));
        Finished::new(line, child.wait_with_output().unwrap())
    })
}

/// Sends a signal, such as `STOP`, to a process.
pub fn signal(child: &Child, name: &str) {
    let kill = Command::new("kill")
        .args(["-s", name, &child.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
}

/// Waits until these processes have ended; false if one of them has not until then. One that its
/// parent has not waited for yet has ended too.
pub fn have_ended(pids: &[u32], until: Instant) -> bool {
    pids.iter().all(|pid| has_ended(*pid, until))
}

fn has_ended(pid: u32, until: Instant) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).unwrap();
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Err(Errno::SRCH) => return true,
        opened => opened.unwrap(),
    };
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left).unwrap();
    let mut ends = [PollFd::new(&process, PollFlags::IN)];
    poll(&mut ends, Some(&left)).unwrap() > 0
}

/// Returns when these processes have ended.
#[track_caller]
pub fn wait_until_ended(pids: &[u32]) {
    let have_ended = have_ended(pids, Instant::now() + END_MAX);
    assert!(have_ended, "one of {pids:?} has not ended");
}

/// Processes that work in a folder, or whose folder for temporary files is in it.
pub fn processes_in(folder: &Path) -> Vec<String> {
    pids_in(folder).into_iter().map(command_line).collect()
}

pub(crate) fn pids_in(folder: &Path) -> Vec<u32> {
    let is_in = |process: &Path| {
        let works_in = fs::read_link(process.join("cwd")).unwrap_or_default();
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        let mut variables = environment.split(|octet| *octet == 0);
        let temporary = variables.find_map(|it| it.strip_prefix(b"TMPDIR="));
        let temporary = temporary.map(|it| Path::new(std::ffi::OsStr::from_bytes(it)));
        works_in.starts_with(folder) || temporary.is_some_and(|it| it.starts_with(folder))
    };
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let there = all.filter(|entry| is_in(&entry.path()));
    let pid = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    there.filter_map(pid).collect()
}

pub(crate) fn command_line(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    format!("/proc/{pid}: {line}")
}
