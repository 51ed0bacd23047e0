//! The control messages that came with a message (`cmsg(3)`).

use std::io;
use std::mem::{size_of_val, zeroed};
use std::os::fd::{AsRawFd, OwnedFd};

/// Octets for the control messages of one message. The most of them come with an ICMP error:
/// header, error and address, twice.
const CONTROL_OCTETS: usize = 512;

/// One of them: its level, its type and its octets.
pub(super) type ControlMessage<'a> = (libc::c_int, libc::c_int, &'a [u8]);

/// Those of a message that was received, in order.
pub(super) struct ControlMessages<'a> {
    message: &'a libc::msghdr,
    next: *const libc::cmsghdr,
}

impl<'a> ControlMessages<'a> {
    /// # Safety
    /// The kernel has filled `msg_control` up to `msg_controllen`, and the octets there stay as
    /// they are for as long as `message` is borrowed.
    #[inline]
    pub(super) unsafe fn of(message: &'a libc::msghdr) -> Self {
        ControlMessages {
            message,
            // SAFETY: the caller vouches for what the message points to.
            next: unsafe { libc::CMSG_FIRSTHDR(message) },
        }
    }
}

impl<'a> Iterator for ControlMessages<'a> {
    type Item = ControlMessage<'a>;

    #[inline]
    fn next(&mut self) -> Option<ControlMessage<'a>> {
        if self.next.is_null() {
            return None;
        }
        // SAFETY: the creator of this vouches for the octets; the CMSG functions stay within them,
        // and the kernel's lengths are those of whole control messages.
        unsafe {
            let control = self.next;
            self.next = libc::CMSG_NXTHDR(self.message, control);
            let head = libc::CMSG_LEN(0) as usize;
            let octets = (*control).cmsg_len.saturating_sub(head);
            let data = std::slice::from_raw_parts(libc::CMSG_DATA(control), octets);
            Some(((*control).cmsg_level, (*control).cmsg_type, data))
        }
    }
}

/// Receives one message without waiting: its length, and what `read` finds in its control messages.
pub(super) fn receive<T>(
    fd: &OwnedFd,
    buffer: &mut [u8],
    flags: libc::c_int,
    read: impl FnOnce(ControlMessages<'_>) -> T,
) -> io::Result<(usize, T)> {
    let mut control = [0_u64; CONTROL_OCTETS / size_of::<u64>()];
    let mut octets = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: all-zero is an empty msghdr.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut octets;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    let flags = flags | libc::MSG_DONTWAIT;
    // SAFETY: all buffers of `message` outlive the call.
    let count = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, flags) };
    let octets = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel filled the control buffer, which outlives `read`.
    let controls = unsafe { ControlMessages::of(&message) };
    Ok((octets, read(controls)))
}

/// One of the times that a control message holds, if it is long enough.
#[inline]
pub(super) fn time(data: &[u8], place: usize) -> Option<libc::timespec> {
    let octets = data.get(place * size_of::<libc::timespec>()..)?;
    let is_whole = octets.len() >= size_of::<libc::timespec>();
    // SAFETY: the octets are as long as the structure, whose fields are numbers.
    is_whole.then(|| unsafe { octets.as_ptr().cast::<libc::timespec>().read_unaligned() })
}

/// The number that a control message holds, if it is long enough for one.
#[inline]
pub(super) fn number(data: &[u8]) -> Option<u32> {
    data.first_chunk().copied().map(u32::from_ne_bytes)
}

/// An entry of a socket's error queue, and what stands behind it: who sent it (`ip(7)`,
/// IP_RECVERR). None if the control message is another.
pub(super) fn extended_error<'a>(
    (level, kind, data): ControlMessage<'a>,
) -> Option<(libc::sock_extended_err, &'a [u8])> {
    let is_error = matches!(
        (level, kind),
        (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR)
    );
    let (error, offender) = data.split_at_checked(size_of::<libc::sock_extended_err>())?;
    is_error.then(|| {
        let error = error.as_ptr().cast::<libc::sock_extended_err>();
        // SAFETY: the octets are as long as the structure, whose fields are numbers.
        (unsafe { error.read_unaligned() }, offender)
    })
}
