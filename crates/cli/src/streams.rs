//! Standard streams and environment variables of a command: those of the process, or of a
//! [`Call`](crate::Call), whose caller gives and gets them.
//!
//! All of the command reads and writes them here: code that took the process's own would escape a
//! call.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Read, Result, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What stands for the streams and variables of this process.
#[derive(Debug, Default)]
pub(crate) struct Substitutes {
    pub(crate) variables: BTreeMap<OsString, OsString>,
    /// What is left of standard input.
    pub(crate) input: Vec<u8>,
    pub(crate) output: Vec<u8>,
    pub(crate) errors: Vec<u8>,
}

/// Set in an agent on another host: what it does is decided where its lead is.
static IGNORES_VARIABLES: AtomicBool = AtomicBool::new(false);

static SUBSTITUTES: Mutex<Option<Substitutes>> = Mutex::new(None);

fn substitutes() -> MutexGuard<'static, Option<Substitutes>> {
    // Nothing panics while it is held, and the value is whole at any time.
    SUBSTITUTES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on uses these, or without them the process's own; returns what was used before.
pub(crate) fn substitute(by: Option<Substitutes>) -> Option<Substitutes> {
    std::mem::replace(&mut *substitutes(), by)
}

/// True if the command is called, and the process with its signals belongs to the caller.
pub(crate) fn are_substituted() -> bool {
    substitutes().is_some()
}

/// From now on there are no environment variables.
pub(crate) fn ignore_variables() {
    IGNORES_VARIABLES.store(true, Ordering::Relaxed);
}

/// The value of an environment variable.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    if IGNORES_VARIABLES.load(Ordering::Relaxed) {
        return None;
    }
    match &*substitutes() {
        Some(used) => used.variables.get(OsStr::new(name)).cloned(),
        None => std::env::var_os(name),
    }
}

/// The names of all environment variables that begin like that.
pub(crate) fn variables_like(prefix: &str) -> impl Iterator<Item = String> {
    let names: Vec<OsString> = match &*substitutes() {
        _ if IGNORES_VARIABLES.load(Ordering::Relaxed) => Vec::new(),
        Some(used) => used.variables.keys().cloned().collect(),
        None => std::env::vars_os().map(|(name, _)| name).collect(),
    };
    let names = names.into_iter().filter_map(|name| name.into_string().ok());
    names.filter(move |name| name.starts_with(prefix))
}

/// Standard input.
pub(crate) fn input() -> impl Read {
    let substitute = substitutes()
        .as_mut()
        .map(|used| std::mem::take(&mut used.input));
    match substitute {
        Some(octets) => Input::Octets(io::Cursor::new(octets)),
        None => Input::Process(io::stdin()),
    }
}

/// Standard input as the connection that the command has made of it which started this process.
///
/// # Errors
/// It cannot be opened once more.
pub(crate) fn connection() -> Result<UnixStream> {
    let socket = io::stdin().as_fd().try_clone_to_owned();
    socket.map(UnixStream::from)
}

enum Input {
    Process(io::Stdin),
    Octets(io::Cursor<Vec<u8>>),
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        match self {
            Input::Process(stdin) => stdin.read(into),
            Input::Octets(octets) => octets.read(into),
        }
    }
}

/// Writes to standard output, and flushes it.
///
/// # Errors
/// It cannot be written to.
pub(crate) fn write_output(octets: &[u8]) -> Result<()> {
    if let Some(used) = &mut *substitutes() {
        used.output.extend_from_slice(octets);
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_all(octets)?;
    out.flush()
}

/// Writes to standard error, all in one write so that lines of several processes stay whole.
///
/// # Errors
/// It cannot be written to.
pub(crate) fn write_error(octets: &[u8]) -> Result<()> {
    match &mut *substitutes() {
        Some(used) => {
            used.errors.extend_from_slice(octets);
            Ok(())
        }
        None => io::stderr().lock().write_all(octets),
    }
}

/// The columns of the terminal that standard error is; none if it is no terminal on which lines can
/// be replaced, 0 if it does not say.
pub(crate) fn columns_of_error() -> Option<u16> {
    let stderr = io::stderr();
    if are_substituted() || !stderr.is_terminal() || variable("TERM").is_some_and(|it| it == "dumb")
    {
        return None;
    }
    Some(rustix::termios::tcgetwinsize(&stderr).map_or(0, |size| size.ws_col))
}

/// Columns and rows of the terminal that standard error is; none if it is none.
pub(crate) fn size_of_error() -> Option<(u16, u16)> {
    let size = rustix::termios::tcgetwinsize(io::stderr());
    size.ok().map(|size| (size.ws_col, size.ws_row))
}

/// True if standard error takes bytes at once.
pub(crate) fn error_takes_bytes() -> bool {
    let stderr = io::stderr();
    let mut watched = [PollFd::new(&stderr, PollFlags::OUT)];
    let ready = poll(&mut watched, Some(&Timespec::default()));
    ready.is_ok() && watched[0].revents().contains(PollFlags::OUT)
}

/// The keyboard of the terminal that standard input and standard error are, if this process is in
/// its foreground.
pub(crate) fn keyboard() -> Option<OwnedFd> {
    let stdin = io::stdin();
    if columns_of_error().is_none() || !stdin.is_terminal() {
        return None;
    }
    let foreground = rustix::termios::tcgetpgrp(&stdin).ok()?;
    if foreground != rustix::process::getpgrp() {
        return None;
    }
    stdin.as_fd().try_clone_to_owned().ok()
}

/// True if standard output is a terminal.
pub(crate) fn output_is_terminal() -> bool {
    !are_substituted() && io::stdout().is_terminal()
}

/// True if the terminal that standard error is shows colours.
pub(crate) fn error_has_colors() -> bool {
    columns_of_error().is_some() && takes_colors()
}

/// True if the terminal that standard output is shows colours.
pub(crate) fn output_has_colors() -> bool {
    output_is_terminal() && takes_colors()
}

/// True if the user's terminal shows colours, and the user has not refused them
/// (<https://no-color.org>).
fn takes_colors() -> bool {
    let is_refused = variable("NO_COLOR").is_some_and(|it| !it.is_empty());
    let has_type = variable("TERM").is_some_and(|it| !it.is_empty() && it != "dumb");
    !is_refused && has_type
}
