//! Ctrl-C: the first ends the run with its record, the second ends the process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use engine::Control;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Exit code of a process that SIGINT ended.
const INTERRUPTED: i32 = 130;

/// What SIGINT and SIGTERM stop: one run after the other.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<State>);

#[derive(Default)]
struct State {
    has_come: AtomicBool,
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
        self.0.has_come.load(Ordering::SeqCst)
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

    fn handle(&self) {
        self.0.has_come.store(true, Ordering::SeqCst);
        if let Some(control) = &*self.running() {
            control.stop();
        }
        self.0.signalled.notify_all();
    }
}

/// Watches for SIGINT and SIGTERM: the first stops the run, after `on_first`, and the second exits.
pub(crate) fn watch(on_first: impl Fn() + Send + 'static) -> Interrupt {
    let interrupt = Interrupt::default();
    // Without the handler Ctrl-C ends the process at once: worse, but no reason not to run.
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else {
        return interrupt;
    };
    let handler = interrupt.clone();
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if handler.has_come() {
                std::process::exit(INTERRUPTED);
            }
            on_first();
            handler.handle();
        }
    });
    interrupt
}
