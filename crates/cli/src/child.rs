//! Runs in processes of their own, which end with the command that made them, and commands of a
//! person's own beside a line or a server.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, IsTerminal, Result};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, getppid, kill_process, kill_process_group, set_parent_process_death_signal,
};

use signal_hook::consts::SIGINT;

use crate::failure::Failure;
use crate::signals::{BY_SIGNAL, Interrupt};
use crate::terminal;

/// Tells a run which process it ends with.
const ENDS_WITH: &str = "THRONG_ENDS_WITH";

/// How often something that may take its time is looked at.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long the end of a child waits for the last lines of its standard error.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a child writes to standard error while a screen has the terminal: shown as lines of this
/// process, for the child would write over the screen.
pub(crate) struct Errors(Option<Receiver<()>>);

impl Drop for Errors {
    fn drop(&mut self) {
        if let Some(ended) = self.0.take() {
            let _ = ended.recv_timeout(PATIENCE);
        }
    }
}

/// Starts a child; its errors end after it.
pub(crate) fn spawn(command: &mut Command) -> Result<(Child, Errors)> {
    if !terminal::has_screen() {
        return Ok((command.spawn()?, Errors(None)));
    }
    let mut child = command.stderr(Stdio::piped()).spawn()?;
    let (ends, ended) = channel::<()>();
    if let Some(stderr) = child.stderr.take() {
        thread::Builder::new().spawn(move || {
            let lines = BufReader::new(stderr).split(b'\n');
            for line in lines.map_while(Result::ok) {
                tell!("{}", String::from_utf8_lossy(&line));
            }
            drop(ends);
        })?;
    }
    Ok((child, Errors(Some(ended))))
}

/// Starts a run of another binary and waits for its end; the first signal is passed on to it. If
/// this process dies, the run ends as if SIGTERM had come.
pub(crate) fn run(command: &mut Command, interrupt: &Interrupt) -> Result<ExitStatus> {
    command.env(ENDS_WITH, std::process::id().to_string());
    command.stdin(Stdio::null());
    // Ctrl-C is passed on once: two would abort it.
    let (mut child, _errors) = spawn(command.process_group(0))?;
    let mut is_told = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupt.has_come() && !is_told {
            is_told = true;
            signal(&child, Signal::INT);
        }
        interrupt.wait(LOOK_EVERY);
    }
}

/// Runs a command and waits for its end; signals are passed on to it. It ends with this process:
/// `setpriv` has the kernel kill it then.
pub(crate) fn run_beside(
    words: &[&OsStr],
    environment: impl IntoIterator<Item = (String, OsString)>,
    signals: &Receiver<i32>,
) -> std::result::Result<ExitCode, Failure> {
    // A terminal sends Ctrl-C to its foreground process group, which alone may read from it.
    let has_terminal = std::io::stdin().is_terminal();
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).args(words);
    command.envs(environment);
    if !has_terminal {
        command.process_group(0);
    }
    let mut child = command.spawn().map_err(|error| {
        let words = words.join(OsStr::new(" "));
        let what = format!("cannot start `{}`: {error}", words.display());
        Failure::usage(what, "install the package util-linux, which has setpriv")
    })?;
    let mut is_told = false;
    loop {
        if let Some(status) = child.try_wait().map_err(Failure::in_operation)? {
            return Ok(code_of(status));
        }
        let Ok(number) = signals.recv_timeout(LOOK_EVERY) else {
            continue;
        };
        let signal_now = match is_told {
            true => Signal::KILL,
            false => Signal::from_named_raw(number).unwrap_or(Signal::TERM),
        };
        if has_terminal && (number != SIGINT || is_told) {
            signal_alone(&child, signal_now);
        } else if !has_terminal {
            signal(&child, signal_now);
        }
        is_told = true;
    }
}

/// As a shell has it.
fn code_of(status: ExitStatus) -> ExitCode {
    let code = status.code();
    let code = code.or_else(|| status.signal().map(|signal| BY_SIGNAL + signal));
    code.and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Sends a signal to a child and all that it has started; one that has gone hears nothing.
pub(crate) fn signal(child: &Child, signal: Signal) {
    let _ = kill_process_group(Pid::from_child(child), signal);
}

/// Sends a signal to one child.
pub(crate) fn signal_alone(child: &Child, signal: Signal) {
    let _ = kill_process(Pid::from_child(child), signal);
}

/// Lets this process end with the one that made it, if it is such a run: as by SIGTERM.
pub(crate) fn end_with_parent() {
    if std::env::var_os(ENDS_WITH).is_some() && !is_orphan() {
        // Where the kernel refuses, the run goes on to its own end.
        let _ = set_parent_process_death_signal(Some(Signal::TERM));
    }
}

/// True if this process is such a run, or was started by one.
pub(crate) fn is_child() -> bool {
    std::env::var_os(ENDS_WITH).is_some()
}

/// True if this process is such a run, and the one that made it has gone. The kernel says so once
/// for each of its threads that had this process for a child: all of these signals are one.
pub(crate) fn is_orphan() -> bool {
    let parent = std::env::var_os(ENDS_WITH);
    let now = getppid().map(|pid| pid.as_raw_nonzero().to_string());
    parent.is_some_and(|made_by| now.is_none_or(|now| made_by != *now))
}
