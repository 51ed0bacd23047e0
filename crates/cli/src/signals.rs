//! Ctrl-C, SIGTERM and SIGHUP: the first ends the run with its record, the second ends the process.
//!
//! A command that one of them ended exits with 128 and the signal's number, whatever it would have
//! exited with otherwise: what it says is of less than it was asked to do.

use std::process::ExitCode;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use engine::Control;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::child;

/// What a shell adds to the number of the signal that ended a process.
const BY_SIGNAL: i32 = 128;

/// The signal that interrupted this process; 0 for none.
static INTERRUPTED_BY: AtomicI32 = AtomicI32::new(0);

/// What a signal stops: one run after the other.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<State>);

#[derive(Default)]
struct State {
    /// 0 for none.
    signal: AtomicI32,
    running: Mutex<Option<Arc<Control>>>,
    signalled: Condvar,
}

impl Interrupt {
    /// From now on a signal stops this run; if one has come already, it is stopped at once.
    pub(crate) fn stops(&self, control: &Arc<Control>) {
        *self.running() = Some(Arc::clone(control));
        if self.has_come() {
            control.stop();
        }
    }

    /// Stops the run that is made, as a signal would, but nothing after it.
    pub(crate) fn end_run(&self) {
        if let Some(control) = &*self.running() {
            control.stop();
        }
    }

    /// True once a signal has come.
    pub(crate) fn has_come(&self) -> bool {
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
            control.stop();
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
    // Without the handler Ctrl-C ends the process at once: worse, but no reason not to run.
    let Ok(mut signals) = Signals::new(ending()) else {
        return interrupt;
    };
    let handler = interrupt.clone();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if handler.has_come() && child::is_orphan() {
                continue;
            }
            if handler.has_come() {
                std::process::exit(BY_SIGNAL + signal);
            }
            on_first(signal);
            handler.handle(signal);
        }
    });
    interrupt
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
    fn signals_that_nohup_has_ignored_stay_ignored() {
        let status = "Name:\tthrong\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored(SIGHUP, status));
        assert!(!is_ignored(SIGINT, status));
        assert!(!is_ignored(SIGHUP, "SigIgn:\t0000000000001000\n"));
        assert!(!is_ignored(SIGHUP, ""));
    }
}
