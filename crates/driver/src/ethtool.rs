//! Requests to the driver of a network interface (ethtool), and the interface's name.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::socket::check;

/// The name of the interface with this index.
pub(crate) fn interface_name(index: u32) -> io::Result<String> {
    let request = request(index)?;
    // SAFETY: `request` has ended the name with a zero.
    let name = unsafe { CStr::from_ptr(request.ifr_name.as_ptr()) };
    Ok(name.to_string_lossy().into_owned())
}

/// Sends a request to the driver of an interface (SIOCETHTOOL).
///
/// # Safety
/// `command` must start with the number of a command, and be what that command reads and writes.
pub(crate) unsafe fn ethtool<C: ?Sized>(index: u32, command: &mut C) -> io::Result<()> {
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    // SAFETY: the caller promises what this request needs.
    unsafe { ask(index, SIOCETHTOOL, command) }
}

/// One request about an interface (netdevice(7)).
///
/// # Safety
/// `data` must be what the request of that number reads and writes.
pub(crate) unsafe fn ask<D: ?Sized>(
    index: u32,
    number: libc::c_ulong,
    data: &mut D,
) -> io::Result<()> {
    let mut request = request(index)?;
    request.ifr_ifru.ifru_data = (&raw mut *data).cast();
    // SAFETY: a plain system call.
    let raw =
        check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: socket returned a new descriptor, which nothing else owns.
    let socket = unsafe { OwnedFd::from_raw_fd(raw) };
    // SAFETY: the request names an interface and points to what the caller promises.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), number as _, &raw mut request) }).map(drop)
}

/// A request about an interface, with nothing but its name.
fn request(index: u32) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // SAFETY: the name has room for IFNAMSIZ octets, which is what the call may write, with a zero
    // at their end.
    let named = unsafe { libc::if_indextoname(index, request.ifr_name.as_mut_ptr()) };
    match named.is_null() {
        true => Err(io::Error::last_os_error()),
        false => Ok(request),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_leads_to_the_name_or_to_an_error() {
        // The first interface of every network namespace.
        assert_eq!(interface_name(1).unwrap(), "lo");
        let error = interface_name(u32::MAX >> 1).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENXIO));
    }
}
