//! Keys one by one, without an echo, and back.
//!
//! Ctrl-C stays a signal. Ctrl-Z does nothing: a stopped command would leave its screen behind.

use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

/// The terminal and how it was set before.
static BEFORE: Mutex<Option<(OwnedFd, Termios)>> = Mutex::new(None);

fn before() -> MutexGuard<'static, Option<(OwnedFd, Termios)>> {
    // Nothing panics while it is held.
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the terminal.
///
/// # Errors
/// It cannot be set.
pub(super) fn enter(terminal: OwnedFd) -> rustix::io::Result<()> {
    let former = tcgetattr(&terminal)?;
    tcsetattr(&terminal, OptionalActions::Now, &by_keys(former.clone()))?;
    *before() = Some((terminal, former));
    Ok(())
}

/// Sets it as it was before [`enter`], once.
pub(super) fn leave() {
    if let Some((terminal, former)) = before().take() {
        // At once: a terminal that takes no more bytes does not delay it. A closed one has none.
        let _ = tcsetattr(&terminal, OptionalActions::Now, &former);
    }
}

fn by_keys(mut settings: Termios) -> Termios {
    settings.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN;
    settings.special_codes[SpecialCodeIndex::VMIN] = 1;
    settings.special_codes[SpecialCodeIndex::VTIME] = 0;
    // 0 disables it, in Linux.
    settings.special_codes[SpecialCodeIndex::VSUSP] = 0;
    settings
}
