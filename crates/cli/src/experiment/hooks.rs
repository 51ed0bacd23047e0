//! Commands of the shell around a run: to set a server up, to wait until it is ready, to clean up.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::cells::Turn;
use crate::child::{LOOK_EVERY, signal};
use crate::failure::Failure;
use crate::signals::Interrupt;

/// How long a hook may take, and readiness be waited for, unless the file says otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Between two tries whether a server is ready.
const READY_EVERY: Duration = Duration::from_millis(200);

/// Commands around a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hooks {
    /// In turn, before the run; each has to succeed.
    pub(super) before: Vec<String>,
    /// Repeated until all of them succeed.
    pub(super) ready: Vec<String>,
    /// After the run, whatever became of it.
    pub(super) after: Vec<String>,
    /// How long each may take.
    pub(super) timeout: Option<Duration>,
}

impl Hooks {
    pub(super) fn is_empty(&self) -> bool {
        *self == Hooks::default()
    }

    fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(TIMEOUT)
    }
}

/// Hooks of one run: what they are told, and where their output goes.
pub(super) struct Shell<'a> {
    pub(super) experiment: &'a str,
    pub(super) turn: &'a Turn,
    pub(super) log: &'a File,
    pub(super) interrupt: &'a Interrupt,
}

impl Shell<'_> {
    /// Sets up for the run, and waits until what it needs is ready.
    pub(super) fn before(&self, hooks: &Hooks) -> Result<(), Failure> {
        for command in &hooks.before {
            let status = self.run(command, hooks.timeout())?;
            if !status.success() {
                return Err(failed("before", command, &status.to_string()));
            }
        }
        let until = Instant::now() + hooks.timeout();
        for command in &hooks.ready {
            while !self.run(command, hooks.timeout())?.success() {
                if self.interrupt.has_come() {
                    return Err(failed("ready", command, "interrupted"));
                }
                if Instant::now() > until {
                    let time = humantime::format_duration(hooks.timeout());
                    return Err(failed(
                        "ready",
                        command,
                        &format!("no success within {time}"),
                    ));
                }
                self.interrupt.wait(READY_EVERY);
            }
        }
        Ok(())
    }

    /// Cleans up. A command that fails is told, and no reason to stop.
    pub(super) fn after(&self, hooks: &Hooks) {
        for command in &hooks.after {
            let problem = match self.run(command, hooks.timeout()) {
                Ok(status) if status.success() => continue,
                Ok(status) => failed("after", command, &status.to_string()),
                Err(failure) => failure,
            };
            problem.report();
        }
    }

    /// Runs one command to its end, in a process group that ends with it at the latest.
    fn run(&self, command: &str, timeout: Duration) -> Result<ExitStatus, Failure> {
        let cannot = |error: std::io::Error| failed("hook", command, &error.to_string());
        let mut log = self.log;
        writeln!(log, "# {}: {command}", self.turn).map_err(cannot)?;
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).process_group(0);
        shell.stdin(Stdio::null());
        shell.stdout(self.log.try_clone().map_err(cannot)?);
        shell.stderr(self.log.try_clone().map_err(cannot)?);
        shell.env("THRONG_EXPERIMENT", self.experiment);
        shell.env("THRONG_REPETITION", self.turn.repetition.to_string());
        for (name, value) in &self.turn.levels {
            let name = name.to_uppercase().replace('-', "_");
            shell.env(format!("THRONG_{name}"), value);
        }
        let mut child = shell.spawn().map_err(cannot)?;
        let until = Instant::now() + timeout;
        loop {
            if let Some(status) = child.try_wait().map_err(cannot)? {
                return Ok(status);
            }
            if Instant::now() > until {
                signal(&child, Signal::KILL);
                let _ = child.wait();
                let time = humantime::format_duration(timeout);
                return Err(failed("hook", command, &format!("not done within {time}")));
            }
            self.interrupt.wait(LOOK_EVERY);
        }
    }
}

fn failed(what: &str, command: &str, why: &str) -> Failure {
    Failure::in_operation(format!(
        "{what} `{command}`: {why}; what it printed is in hooks.log"
    ))
}
