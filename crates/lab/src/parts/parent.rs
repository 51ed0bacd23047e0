//! The side of the parent: starting parts, hearing them, ending them.

use std::ffi::OsString;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::Value;

use crate::run::RunError;

/// How the parts of a command are started. Everybody on the host may see it: what a part is told
/// beyond this goes through its pipe.
#[derive(Clone, Debug)]
pub struct PartCommand {
    /// The binary.
    pub program: PathBuf,
    /// What comes before the part's place, such as `part`.
    pub before: Vec<OsString>,
}

/// The first line that a process is told: what it is to do.
pub fn setup_line(setup: &Value) -> String {
    format!("setup {setup}")
}

/// Why the parts did not do what they were to do; all of them have been ended.
#[derive(Debug)]
pub enum PartsError {
    /// Nothing was sent.
    Refused(RunError),
    /// A part ended, or said nonsense, while it was at work.
    Broken(RunError),
}

impl PartsError {
    pub(super) fn refused(what: impl fmt::Display) -> Self {
        PartsError::Refused(RunError::plain(what))
    }
}

impl From<RunError> for PartsError {
    fn from(error: RunError) -> Self {
        PartsError::Refused(error)
    }
}

/// What a part has done.
#[derive(Debug)]
pub enum Event {
    /// It said this: a word, and what follows it.
    Said(String, String),
    /// It says nothing more.
    Ended,
}

/// Parts at work; dropping them ends their processes, and waits until they are gone.
#[derive(Debug)]
pub struct Parts {
    members: Vec<Member>,
    events: Receiver<(usize, Event)>,
    sender: Sender<(usize, Event)>,
    /// How many there will be.
    count: u32,
}

#[derive(Debug)]
struct Member {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Parts {
    /// For `count` parts, none of which is started yet.
    pub fn new(count: u32) -> Self {
        let (sender, events) = channel();
        Parts {
            members: Vec::new(),
            events,
            sender,
            count,
        }
    }

    /// How many there are or will be.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Starts the next part, in a process group of its own so that Ctrl-C reaches the parent
    /// alone, and tells it what to do.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(&mut self, command: &PartCommand, setup: &Value) -> Result<(), PartsError> {
        let index = self.members.len();
        let cannot = |error: std::io::Error| {
            PartsError::refused(format!(
                "cannot start process {} of {}: {error}",
                index + 1,
                self.count
            ))
        };
        let mut child = Command::new(&command.program)
            .args(&command.before)
            .arg(format!("{}/{}", index, self.count))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(cannot)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        self.members.push(Member { child, stdin });
        if let Some(stdout) = stdout {
            let sender = self.sender.clone();
            std::thread::spawn(move || listen(index, stdout, &sender));
        }
        self.say(index, &setup_line(setup));
        Ok(())
    }

    /// Says a line to a part. One that has gone does not hear it, and its end is an event.
    pub fn say(&mut self, index: usize, line: &str) {
        if let Some(stdin) = &mut self.members[index].stdin {
            let _ = writeln!(stdin, "{line}").and_then(|()| stdin.flush());
        }
    }

    /// Says a line to all parts.
    pub fn say_to_all(&mut self, line: &str) {
        (0..self.members.len()).for_each(|index| self.say(index, line));
    }

    /// What the next part to do anything has done, within `wait`.
    pub fn next(&self, wait: Duration) -> Option<(usize, Event)> {
        // The parts' own sender is there as long as they are: nothing but the time can be over.
        self.events.recv_timeout(wait).ok()
    }

    /// Looks whether all parts are at work, when they have nothing to say.
    ///
    /// # Errors
    /// One has ended.
    pub fn check(&mut self) -> Result<(), PartsError> {
        match self.next(Duration::ZERO) {
            None => Ok(()),
            Some((index, Event::Ended)) => Err(self.died(index)),
            Some((index, Event::Said(word, _))) => Err(Parts::nonsense(index, word)),
        }
    }

    /// Ends a part that says nothing any more.
    pub(super) fn end(&mut self, index: usize) {
        // One that has ended already cannot be killed, and needs it not.
        let _ = self.members[index].child.kill();
    }

    /// How a part has ended that is about to.
    pub(super) fn end_of(&mut self, index: usize) -> String {
        let ended = self.members[index].child.wait();
        ended.map_or_else(|error| error.to_string(), describe)
    }

    /// The error of a part that has ended before its time.
    pub fn died(&mut self, index: usize) -> PartsError {
        let count = self.count;
        let pid = self.members[index].child.id();
        let how = self.end_of(index);
        PartsError::Broken(RunError::new(
            format!(
                "process {} of {count} (PID {pid}) died in the run: {how}",
                index + 1
            ),
            "the others were ended, and there is no result; if the kernel ended it for lack of \
             memory (`dmesg` tells), use fewer clients",
        ))
    }

    /// The error of a part that has not reported for `silence`.
    pub fn silent(&self, index: usize, silence: Duration) -> PartsError {
        PartsError::Broken(RunError::new(
            format!(
                "process {} of {} (PID {}) has not reported for {:.0} s",
                index + 1,
                self.count,
                self.members[index].child.id(),
                silence.as_secs_f64()
            ),
            "it may have been stopped (SIGSTOP); all processes were ended, and there is no result",
        ))
    }

    /// The error that a part has told.
    pub fn failed(index: usize, text: &str) -> PartsError {
        let told: Value = serde_json::from_str(text).unwrap_or_default();
        let field = |name: &str| told[name].as_str().map(str::to_owned);
        let error = RunError {
            what: field("what").unwrap_or_else(|| format!("process {} failed", index + 1)),
            hint: field("hint"),
        };
        match told["code"].as_u64() {
            Some(2) => PartsError::Refused(error),
            _ => PartsError::Broken(error),
        }
    }

    /// The error of a part that says what cannot be understood.
    pub fn nonsense(index: usize, reason: impl fmt::Display) -> PartsError {
        PartsError::Broken(RunError::plain(format!(
            "process {} sent an invalid report, please report this bug: {reason}",
            index + 1
        )))
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        for member in &mut self.members {
            member.stdin = None;
            // One that has ended already cannot be killed, and needs it not.
            let _ = member.child.kill();
        }
        for member in &mut self.members {
            let _ = member.child.wait();
        }
    }
}

/// Hands on what a part says, until it says nothing more.
fn listen(index: usize, stdout: ChildStdout, sender: &Sender<(usize, Event)>) {
    for line in BufReader::new(stdout).lines() {
        let Ok(line) = line else { break };
        let (word, text) = line.split_once(' ').unwrap_or((&line, ""));
        let event = Event::Said(word.to_owned(), text.to_owned());
        if sender.send((index, event)).is_err() {
            // Nobody wants to hear it any more.
            return;
        }
    }
    let _ = sender.send((index, Event::Ended));
}

fn describe(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => status.to_string(),
    }
}
