//! The control messages that came with a message (`cmsg(3)`).

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
