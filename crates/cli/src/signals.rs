//! Ctrl-C, SIGTERM and SIGHUP: the first ends the run with its record, the second ends the process.
//!
//! A command that one of them ended exits with 128 and the signal's number, whatever it would have
//! exited with otherwise: what it says is of less than it was asked to do.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use engine::Control;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::child;
use crate::failure::Failure;
use crate::streams;
use crate::terminal;

/// What a shell adds to the number of the signal that ended a process.
pub(crate) const BY_SIGNAL: i32 = 128;

/// How long something may take to end that a signal has come for.
const PATIENCE: Duration = Duration::from_secs(1);

/// The signal that interrupted this process; 0 for none.
static INTERRUPTED_BY: AtomicI32 = AtomicI32::new(0);

/// What a signal stops: one run after the other.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<State>);

#[derive(Default)]
struct State {
    /// 0 for none.
    signal: AtomicI32,
    /// Something ends when a signal comes: a run that is made, or a command that looks itself.
    is_heard: AtomicBool,
    running: Mutex<Option<Arc<Control>>>,
    signalled: Condvar,
}

impl Interrupt {
    /// From now on a signal stops this run; if one has come already, it is stopped at once.
    pub(crate) fn stops(&self, control: &Arc<Control>) {
        *self.running() = Some(Arc::clone(control));
        if self.has_come() {
            control.interrupt();
        }
    }

    /// From now on the command itself ends after a signal: it looks for one between its steps, and
    /// then cleans up. Else a signal within a long first step would end it before it can.
    pub(crate) fn leave_to_command(&self) {
        self.0.is_heard.store(true, Ordering::SeqCst);
        self.0.signalled.notify_all();
    }

    /// True if a signal has come, and within a moment nothing ends for it: the command waits for
    /// a file, or for an answer to its first look at the target.
    fn is_ignored(&self) -> bool {
        let state = &*self.0;
        let is_unheard = |_: &mut Option<_>| !state.is_heard.load(Ordering::SeqCst);
        let waited = (state.signalled).wait_timeout_while(self.running(), PATIENCE, is_unheard);
        waited.is_ok_and(|(_, waited)| waited.timed_out())
    }

    /// The run that signals stopped is over.
    pub(crate) fn forget_run(&self) {
        *self.running() = None;
    }

    /// True once the load of the run that is made has begun.
    pub(crate) fn run_has_begun(&self) -> bool {
        let control = &*self.running();
        control.as_ref().is_some_and(|it| it.start().is_some())
    }

    /// Stops the run that is made, as a signal would, but nothing after it.
    pub(crate) fn end_run(&self) {
        if let Some(control) = &*self.running() {
            control.stop();
        }
    }

    /// True once a signal has come: callers end then.
    pub(crate) fn has_come(&self) -> bool {
        self.leave_to_command();
        self.came()
    }

    fn came(&self) -> bool {
        self.0.signal.load(Ordering::SeqCst) != 0
    }

    /// Waits for a signal, at most for `time`.
    pub(crate) fn wait(&self, time: Duration) {
        // Woken early for nothing, or with a poisoned lock, it has only waited for less.
        drop(self.0.signalled.wait_timeout(self.running(), time));
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Option<Arc<Control>>> {
        // Nothing panics while it is held, and the value is whole at any time.
        let lock = self.0.running.lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, signal: i32) {
        self.0.signal.store(signal, Ordering::SeqCst);
        if let Some(control) = &*self.running() {
            control.interrupt();
        }
        self.0.signalled.notify_all();
    }
}

/// Watches for signals: the first stops the run, after `on_first`, and the second exits. The
/// command is then one that was interrupted.
pub(crate) fn watch(on_first: impl Fn() + Send + 'static) -> Interrupt {
    watch_and(move |signal| {
        INTERRUPTED_BY.store(signal, Ordering::SeqCst);
        on_first();
    })
}

/// As [`watch`], for a command that a signal ends as a rule: its exit code says what it found.
pub(crate) fn watch_for_end(on_first: impl Fn() + Send + 'static) -> Interrupt {
    watch_and(move |_| on_first())
}

fn watch_and(on_first: impl Fn(i32) + Send + 'static) -> Interrupt {
    let interrupt = Interrupt::default();
    if streams::are_substituted() {
        return interrupt;
    }
    // Without the handler Ctrl-C ends the process at once: worse, but no reason not to run.
    let Ok(mut signals) = Signals::new(ending()) else {
        return interrupt;
    };
    let handler = interrupt.clone();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if handler.came() && child::is_orphan() {
                continue;
            }
            if handler.came() {
                exit_at_once(signal);
            }
            on_first(signal);
            handler.handle(signal);
            if handler.is_ignored() {
                // Nothing was measured yet.
                exit_at_once(signal);
            }
        }
    });
    interrupt
}

/// Ends this process for a signal, with the terminal as it was before.
pub(crate) fn exit_at_once(signal: i32) -> ! {
    terminal::restore();
    std::process::exit(BY_SIGNAL + signal);
}

/// The signals that end a command, one after the other, for a command that waits for them itself.
pub(crate) fn receiver() -> Result<Receiver<i32>, Failure> {
    receiver_of(ending())
}

/// As [`receiver`], and another signal with them.
pub(crate) fn receiver_also_of(other: i32) -> Result<Receiver<i32>, Failure> {
    let mut all = ending();
    all.push(other);
    receiver_of(all)
}

fn receiver_of(all: Vec<i32>) -> Result<Receiver<i32>, Failure> {
    let mut signals = Signals::new(all).map_err(Failure::in_operation)?;
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            // The receiver goes away when the command ends by itself.
            let _ = sender.send(signal);
        }
    });
    Ok(receiver)
}

/// The signals that end a command: SIGHUP too, unless `nohup` has it ignored.
pub(crate) fn ending() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status");
    let mut signals = vec![SIGINT, SIGTERM];
    if !is_ignored(SIGHUP, &status.unwrap_or_default()) {
        signals.push(SIGHUP);
    }
    signals
}

/// True if this process was started with that signal ignored; `status` is of proc(5).
fn is_ignored(signal: i32, status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

/// Lets the lead of this process end it, whatever signal comes: what ends a service or a control
/// group signals all of its processes, and each of them has a part of what was measured.
pub(crate) fn leave_to_lead() {
    for signal in ending() {
        // Without the handler nothing is worse than it was.
        let _ = signal_hook::flag::register(signal, Arc::default());
    }
}

/// Makes what is written beyond the limit on sizes of files (`ulimit -f`) an error, as of a disk
/// that is full: left alone, SIGXFSZ ends the process with all that it has measured.
pub(crate) fn outlive_file_limit() {
    // That it came is not looked at. Without the handler nothing is worse than it was.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// No signal has come yet, as in a process that has just been started.
pub(crate) fn forget() {
    INTERRUPTED_BY.store(0, Ordering::SeqCst);
}

/// The exit code of a command that ends with `code`: of the signal, if one interrupted it.
pub(crate) fn exit_code(code: ExitCode) -> ExitCode {
    match INTERRUPTED_BY.load(Ordering::SeqCst) {
        0 => code,
        signal => u8::try_from(BY_SIGNAL + signal).map_or(code, ExitCode::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_that_cleans_up_is_not_ended_at_once() {
        let interrupt = Interrupt::default();
        interrupt.leave_to_command();
        interrupt.handle(SIGINT);
        assert!(!interrupt.is_ignored());
        assert!(interrupt.has_come());
    }

    #[test]
    fn signals_that_nohup_has_ignored_stay_ignored() {
        let status = "Name:\tthrong\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored(SIGHUP, status));
        assert!(!is_ignored(SIGINT, status));
        assert!(!is_ignored(SIGHUP, "SigIgn:\t0000000000001000\n"));
        assert!(!is_ignored(SIGHUP, ""));
    }
}
