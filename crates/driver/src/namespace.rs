//! Which network a thread belongs to.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Moves the calling thread to a network namespace, such as `/proc/PID/ns/net`. Sockets that it
/// opens, and threads and processes that it starts, belong there from then on; other threads stay
/// where they are. Needs CAP_SYS_ADMIN.
///
/// # Errors
/// The kernel's, if this is no network namespace or the thread may not enter it.
pub fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: a plain system call on an open descriptor.
    match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
