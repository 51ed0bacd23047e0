//! The side of the parent: starting parts, hearing them, ending them.

use std::ffi::OsString;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use driver::clock::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;

use super::child;
use super::clocks::Exchange;
use crate::run::RunError;

/// Octets of what a part says at a time: a record of 10,000 clients has some megabytes.
const LINE_OCTETS_MAX: u64 = 256 << 20;
/// How long a part may take to end that has closed its output.
const END_MAX: Duration = Duration::from_secs(2);

/// How a part of a command is started. Everybody on the host may see it: what a part is told
/// beyond this goes through its pipe.
#[derive(Clone, Debug)]
pub struct PartCommand {
    /// The program.
    pub program: OsString,
    /// What comes before the part's place, such as `part`.
    pub before: Vec<OsString>,
    /// What comes after it.
    pub after: Vec<OsString>,
    /// The host that it is on, if that is another one; it has a clock of its own.
    pub host: Option<String>,
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
    /// It said what its clock shows.
    Clock(Exchange),
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
    clock: Clock,
}

#[derive(Debug)]
struct Member {
    child: Child,
    /// What it is told, on a thread of its own: one that stands still must not hold the others.
    /// Without this its standard input ends.
    lines: Option<Sender<Arc<str>>>,
    host: Option<String>,
}

impl Parts {
    /// For `count` parts, none of which is started yet. What their clocks show is compared with
    /// this one.
    pub fn new(count: u32, clock: Clock) -> Self {
        let (sender, events) = channel();
        Parts {
            members: Vec::new(),
            events,
            sender,
            count,
            clock,
        }
    }

    /// How many there are or will be.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Starts the next part, and tells it what to do.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(&mut self, command: &PartCommand, setup: &Value) -> Result<(), PartsError> {
        self.spawn(command)?;
        self.say(self.members.len() - 1, &setup_line(setup));
        Ok(())
    }

    /// Starts the next part, in a process group of its own so that Ctrl-C reaches the parent
    /// alone. What it is to do has to be said.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn spawn(&mut self, command: &PartCommand) -> Result<(), PartsError> {
        let index = self.members.len();
        let cannot = |error: std::io::Error| {
            let program = command.program.display();
            PartsError::refused(format!(
                "cannot start {} ({program}): {error}",
                who(command.host.as_deref(), (index, self.count), None)
            ))
        };
        let mut child = Command::new(&command.program)
            .args(&command.before)
            .arg(format!("{}/{}", index, self.count))
            .args(&command.after)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(cannot)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (lines, told) = channel();
        if let Some(stdin) = stdin {
            std::thread::spawn(move || tell(stdin, &told));
        }
        self.members.push(Member {
            child,
            lines: Some(lines),
            host: command.host.clone(),
        });
        if let Some(stdout) = stdout {
            let (sender, clock) = (self.sender.clone(), self.clock);
            std::thread::spawn(move || listen((index, clock), stdout, &sender));
        }
        Ok(())
    }

    /// The host of a part, if it is another one.
    pub fn host(&self, index: usize) -> Option<&str> {
        self.members[index].host.as_deref()
    }

    /// A part, for people.
    pub fn name(&self, index: usize) -> String {
        let member = &self.members[index];
        let pid = member.child.id();
        who(member.host.as_deref(), (index, self.count), Some(pid))
    }

    /// Asks a part what its clock shows: [`Event::Clock`] will tell.
    pub(super) fn ask_clock(&mut self, index: usize) {
        let now = self.clock.now().as_nanos();
        self.say(index, &format!("clock {now}"));
    }

    /// Says a line to a part. One that has gone does not hear it, and its end is an event.
    pub fn say(&mut self, index: usize, line: &str) {
        self.say_shared(index, &line.into());
    }

    fn say_shared(&mut self, index: usize, line: &Arc<str>) {
        if let Some(lines) = &self.members[index].lines {
            let _ = lines.send(Arc::clone(line));
        }
    }

    /// Says a line to all parts.
    pub fn say_to_all(&mut self, line: &str) {
        let line = line.into();
        (0..self.members.len()).for_each(|index| self.say_shared(index, &line));
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
            Some((index, Event::Clock(_))) => Err(Parts::nonsense(index, "a clock")),
        }
    }

    /// Ends a part that says nothing any more.
    pub(super) fn end(&mut self, index: usize) {
        // One that has ended already cannot be killed, and needs it not.
        let _ = self.members[index].child.kill();
    }

    /// How a part has ended that says nothing more. One that goes on without saying anything, such
    /// as `ssh` to a host that is gone, is ended.
    pub fn end_of(&mut self, index: usize) -> String {
        let child = &mut self.members[index].child;
        let has_ended = ends_within(child, END_MAX);
        if !has_ended {
            // One that has ended in between cannot be killed, and needs it not.
            let _ = child.kill();
        }
        match child.wait() {
            Ok(status) if has_ended => describe(status),
            Ok(_) => "it closed its output and did not end".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    /// The error of a part that has ended before its time.
    pub fn died(&mut self, index: usize) -> PartsError {
        let how = self.end_of(index);
        PartsError::Broken(RunError::new(
            format!("{} died in the run: {how}", self.name(index)),
            "the others were ended, and there is no result; if the kernel ended it for lack of \
             memory (`dmesg` tells), use fewer clients",
        ))
    }

    /// The error of a part that has not reported for `silence`.
    pub fn silent(&self, index: usize, silence: Duration) -> PartsError {
        PartsError::Broken(RunError::new(
            format!(
                "{} has not reported for {:.0} s",
                self.name(index),
                silence.as_secs_f64()
            ),
            "it may have been stopped (SIGSTOP); all processes were ended, and there is no result",
        ))
    }

    /// The error that a part has told.
    pub fn failed(&self, index: usize, text: &str) -> PartsError {
        let told: Value = serde_json::from_str(text).unwrap_or_default();
        let field = |name: &str| told[name].as_str().map(str::to_owned);
        let what = field("what").unwrap_or_else(|| "it failed".to_owned());
        let error = RunError {
            what: match self.host(index) {
                Some(_) => format!("{}: {what}", self.name(index)),
                None => what,
            },
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
            member.lines = None;
            // One that has ended already cannot be killed, and needs it not.
            let _ = member.child.kill();
        }
        for member in &mut self.members {
            let _ = member.child.wait();
        }
    }
}

/// One of so many parts, for people.
fn who(host: Option<&str>, (index, count): (usize, u32), pid: Option<u32>) -> String {
    match (host, pid) {
        (Some(host), _) => format!("agent {} of {count} ({host})", index + 1),
        (None, Some(pid)) => format!("process {} of {count} (PID {pid})", index + 1),
        (None, None) => format!("process {} of {count}", index + 1),
    }
}

/// What a part says of its clock, with the time at which that was heard.
fn exchange(text: &str, answered_ns: u64) -> Option<Exchange> {
    let (asked, theirs) = text.split_once(' ')?;
    Some(Exchange {
        asked_ns: asked.parse().ok()?,
        theirs_ns: theirs.parse().ok()?,
        answered_ns,
    })
}

/// Tells a part what it is to be told, until it does not hear it any more or there is nothing more.
fn tell(mut stdin: ChildStdin, lines: &Receiver<Arc<str>>) {
    for line in lines {
        let told = writeln!(stdin, "{line}").and_then(|()| stdin.flush());
        if told.is_err() {
            return;
        }
    }
}

/// Hands on what a part says, until it says nothing more.
fn listen((index, clock): (usize, Clock), stdout: ChildStdout, sender: &Sender<(usize, Event)>) {
    let mut stdout = BufReader::new(stdout);
    let mut octets = Vec::new();
    let mut read = |octets: &mut Vec<u8>| {
        let mut line = stdout.by_ref().take(LINE_OCTETS_MAX);
        line.read_until(b'\n', octets)
    };
    // What is not UTF-8 is said too: a shell may print anything before the part speaks.
    while read(&mut octets).is_ok_and(|read| read > 0) && octets.ends_with(b"\n") {
        let now_ns = clock.now().as_nanos();
        let line = String::from_utf8_lossy(&octets).trim_end().to_owned();
        octets.clear();
        let (word, text) = line.split_once(' ').unwrap_or((&line, ""));
        let clock = (word == "clock").then(|| exchange(text, now_ns)).flatten();
        let event = match clock {
            Some(exchange) => Event::Clock(exchange),
            None => Event::Said(word.to_owned(), text.to_owned()),
        };
        if sender.send((index, event)).is_err() {
            // Nobody wants to hear it any more.
            return;
        }
    }
    let _ = sender.send((index, Event::Ended));
}

/// Waits for the end of a process, at most for that long; false if it goes on.
fn ends_within(child: &mut Child, time: Duration) -> bool {
    let Ok(process) = pidfd_open(Pid::from_child(child), PidfdFlags::empty()) else {
        // Some kernels open no descriptor of a process that has ended.
        return child.try_wait().is_ok_and(|status| status.is_some());
    };
    let mut ends = [PollFd::new(&process, PollFlags::IN)];
    let time = Timespec::try_from(time).ok();
    poll(&mut ends, time.as_ref()).is_ok_and(|ready| ready > 0)
}

fn describe(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(child::MISSED_PARENT)) => {
            format!("it had heard nothing for {} s", child::DEAD_MAN.as_secs())
        }
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => status.to_string(),
    }
}
