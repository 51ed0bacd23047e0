//! Calls of `kubectl` that another thread can end.

use std::io::{Error, ErrorKind, Result};
use std::process::{Command, Output};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::kubectl;

/// The calls of a cluster, and pauses between them. Each call leads a process group.
#[derive(Debug, Default)]
pub(super) struct Calls {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// No other call begins.
    are_ended: bool,
    /// The process groups of those that run.
    groups: Vec<Pid>,
}

impl Calls {
    /// Runs the command, the leader of its process group, to its end.
    ///
    /// # Errors
    /// It cannot be started, or the calls are ended.
    pub(super) fn output(&self, command: &mut Command, stdin: Option<&[u8]>) -> Result<Output> {
        let (child, group) = {
            // Under the lock: a call that begins is ended with the others.
            let mut state = self.state();
            if state.are_ended {
                return Err(Error::new(ErrorKind::Interrupted, "interrupted"));
            }
            let child = kubectl::start(command, stdin)?;
            let group = Pid::from_child(&child);
            state.groups.push(group);
            (child, group)
        };
        // Until its leader has been waited for, no other group has the number.
        let forget = || self.state().groups.retain(|it| *it != group);
        kubectl::finish(child, stdin, forget)
    }

    /// Waits for that time, or until the calls are ended.
    pub(super) fn pause(&self, time: Duration) {
        let goes_on = |state: &mut State| !state.are_ended;
        // With a poisoned lock it has only waited for less.
        drop(self.changed.wait_timeout_while(self.state(), time, goes_on));
    }

    /// Ends the calls that run, and has those that are to come fail.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.are_ended = true;
        for group in &state.groups {
            // One that has just ended is of no interest.
            let _ = kill_process_group(*group, Signal::KILL);
        }
        drop(state);
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The value is whole at any time.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
