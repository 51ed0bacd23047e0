//! The network namespace of a thread.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::netlink::Netlink;
use crate::socket::check;

/// Moves the calling thread to a network namespace, such as `/proc/PID/ns/net`. Sockets that it
/// opens, and threads and processes that it starts, belong there from then on; other threads stay
/// where they are. Needs CAP_SYS_ADMIN.
///
/// # Errors
/// The kernel's, if this is no network namespace or the thread may not enter it.
pub fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: a plain system call on an open descriptor.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// As [`enter`], to a network namespace that is new, with nothing in it but a loopback interface
/// that is down. It lasts as long as a thread, a descriptor, a socket or a mount of it.
///
/// # Errors
/// The kernel's, if the thread may not make one.
pub fn enter_new() -> io::Result<()> {
    // SAFETY: a plain system call; other threads stay where they are.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}

/// The mark of the calling thread's network namespace: the alias of its loopback interface, which
/// its creator can set (`ip link set lo alias MARK`). Empty if not set.
///
/// # Errors
/// The kernel does not report it.
pub fn mark() -> io::Result<String> {
    const LOOPBACK: u32 = 1;
    Ok(Netlink::open()?.link(LOOPBACK)?.alias)
}
