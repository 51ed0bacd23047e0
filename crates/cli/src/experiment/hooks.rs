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
/// How long a hook may take to end after an interruption, before it is killed.
const END_WITHIN: Duration = Duration::from_secs(5);
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

/// Does `step` between the hooks of all levels, the outermost first: `before` of one after the
/// other, until one fails; and `after` of those whose `before` has begun, however far it came, the
/// innermost first.
pub(super) fn around<T>(
    levels: &[&Hooks],
    mut before: impl FnMut(&Hooks) -> Result<(), Failure>,
    step: impl FnOnce() -> Result<T, Failure>,
    after: impl FnMut(&Hooks),
) -> Result<T, Failure> {
    let mut begun = Vec::new();
    let made = (levels.iter())
        .try_for_each(|hooks| {
            begun.push(*hooks);
            before(hooks)
        })
        .and_then(|()| step());
    begun.into_iter().rev().for_each(after);
    made
}

/// Which hooks an interruption ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnInterrupt {
    /// Those that set up: what follows is cleaning up.
    End,
    /// Those that clean up.
    Continue,
}

/// Hooks of one run: their environment, and where their output goes.
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
            let status = self.set_up(command, hooks.timeout())?;
            if !status.success() {
                return Err(failed("before", command, &status.to_string()));
            }
        }
        let until = Instant::now() + hooks.timeout();
        for command in &hooks.ready {
            while !self.set_up(command, hooks.timeout())?.success() {
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

    /// Cleans up. A command that fails is reported, and the others run.
    pub(super) fn after(&self, hooks: &Hooks) {
        for command in &hooks.after {
            let problem = match self.run(command, hooks.timeout(), OnInterrupt::Continue) {
                Ok(status) if status.success() => continue,
                Ok(status) => failed("after", command, &status.to_string()),
                Err(failure) => failure,
            };
            problem.report();
        }
    }

    /// Runs a command that sets up; an interruption ends it, and none begins after one.
    fn set_up(&self, command: &str, timeout: Duration) -> Result<ExitStatus, Failure> {
        let is_interrupted = || self.interrupt.has_come();
        if !is_interrupted() {
            let status = self.run(command, timeout, OnInterrupt::End)?;
            if !is_interrupted() {
                return Ok(status);
            }
        }
        Err(failed("hook", command, "interrupted"))
    }

    /// Runs one command to its end, in a process group that ends with it at the latest.
    fn run(
        &self,
        command: &str,
        timeout: Duration,
        on_interrupt: OnInterrupt,
    ) -> Result<ExitStatus, Failure> {
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
        let mut until = Instant::now() + timeout;
        let mut may_interrupt = on_interrupt == OnInterrupt::End;
        loop {
            if let Some(status) = child.try_wait().map_err(cannot)? {
                return Ok(status);
            }
            if may_interrupt && self.interrupt.has_come() {
                may_interrupt = false;
                signal(&child, Signal::TERM);
                until = until.min(Instant::now() + END_WITHIN);
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// What is done around a run with two levels of hooks, where the `before` of one fails.
    fn steps(failing: Option<&str>) -> Vec<String> {
        let named = |name: &str| Hooks {
            before: vec![name.to_owned()],
            ..Hooks::default()
        };
        let (outer, inner) = (named("outer"), named("inner"));
        let steps = RefCell::new(Vec::new());
        let add = |step: &str, hooks: &Hooks| {
            steps
                .borrow_mut()
                .push(format!("{step} {}", hooks.before[0]));
        };
        let made = around(
            &[&outer, &inner],
            |hooks| {
                add("before", hooks);
                match failing {
                    Some(name) if name == hooks.before[0] => Err(failed("hook", name, "fails")),
                    _ => Ok(()),
                }
            },
            || {
                steps.borrow_mut().push("run".to_owned());
                Ok(())
            },
            |hooks| add("after", hooks),
        );
        assert_eq!(made.is_err(), failing.is_some());
        steps.into_inner()
    }

    #[test]
    fn hooks_clean_up_what_they_began_and_nothing_else() {
        let whole = [
            "before outer",
            "before inner",
            "run",
            "after inner",
            "after outer",
        ];
        assert_eq!(steps(None), whole);
        let inner = ["before outer", "before inner", "after inner", "after outer"];
        assert_eq!(steps(Some("inner")), inner);
        assert_eq!(steps(Some("outer")), ["before outer", "after outer"]);
    }
}
