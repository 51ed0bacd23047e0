//! Ctrl-C: the first ends the run with its record, the second ends the process.

use std::sync::Arc;

use engine::Control;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Exit code of a process that SIGINT ended.
const INTERRUPTED: i32 = 130;

/// Stops the run at the first SIGINT or SIGTERM, after `on_first`, and exits at the second.
pub(crate) fn stop_on_interrupt(control: &Arc<Control>, on_first: impl Fn() + Send + 'static) {
    // Without the handler Ctrl-C ends the process at once: worse, but no reason not to run.
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else {
        return;
    };
    let control = Arc::clone(control);
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if control.is_stopped() {
                std::process::exit(INTERRUPTED);
            }
            on_first();
            control.stop();
        }
    });
}
