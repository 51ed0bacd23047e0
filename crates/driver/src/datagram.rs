//! Batches of datagrams: sendmmsg with UDP GSO, recvmmsg with UDP GRO.
//!
//! Cost on one core of a 2-core VM, loopback: sendmmsg/recvmmsg pair 2.8 us a query, with 64
//! queries a GSO burst 0.07 us: the system call and the walk through the stack are paid once a
//! burst. A burst needs one socket, one receiver and equal lengths (the last may be shorter).

use std::mem::{size_of, zeroed};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::SocketOptions;
use crate::control::{self, ControlMessages};
use crate::socket::SockAddr;
use crate::{
    Accepted, Datagram, DriverStats, Outgoing, OutgoingDatagram, Received, SocketError,
    StampSource, timestamps,
};

/// Control message: length of each segment but the last (linux/udp.h).
const UDP_SEGMENT: libc::c_int = 103;
/// Control message: length of the segments that GRO coalesced (linux/udp.h).
const UDP_GRO: libc::c_int = 104;

/// Most datagrams in one GSO burst (UDP_MAX_SEGMENTS of kernels up to 6.x).
const BURST_DATAGRAMS_MAX: usize = 64;
/// Most octets in one GSO burst: one IPv4 datagram's payload.
const BURST_OCTETS_MAX: usize = 65_507;
/// Messages of one sendmmsg or recvmmsg call.
const MESSAGES_MAX: usize = 64;
/// Messages of one recvmmsg call when each may hold 64 coalesced datagrams.
const MESSAGES_MAX_COALESCED: usize = 8;
/// Room for one received message. Not a power of two: buffers a multiple of 4 KiB apart would all
/// fall into the same sets of the CPU's first-level cache.
const STRIDE: usize = 65_536 + 192;
/// Room for the control messages of one message: a u32, an int and a stamp, with headers.
const CONTROL_OCTETS: usize = 128;

#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_OCTETS]);

/// The arrays that the two system calls need, allocated once a worker.
pub(super) struct Batch {
    headers: Box<[libc::mmsghdr]>,
    vectors: Box<[libc::iovec]>,
    addresses: Box<[SockAddr]>,
    controls: Box<[Control]>,
    /// Datagrams in each message of a send.
    runs: Vec<usize>,
    coalesced: bool,
    /// The source of timestamps, if there is one.
    stamped_by: Option<StampSource>,
    /// With timestamps: arrivals of the datagrams received last, in nanoseconds of the timestamps'
    /// clock.
    pub(super) arrived_ns: Vec<u64>,
    /// After how many datagrams the last send first failed, even if it was repeated.
    pub(super) failed_after: Option<usize>,
}

impl Batch {
    pub(super) fn new(options: &SocketOptions) -> Self {
        Batch {
            // SAFETY: all-zero mmsghdr and iovec are valid (null pointers, zero lengths).
            headers: vec![unsafe { zeroed() }; MESSAGES_MAX].into_boxed_slice(),
            // SAFETY: as above.
            vectors: vec![unsafe { zeroed() }; MESSAGES_MAX].into_boxed_slice(),
            addresses: vec![SockAddr::empty(); MESSAGES_MAX].into_boxed_slice(),
            controls: vec![Control([0; CONTROL_OCTETS]); MESSAGES_MAX].into_boxed_slice(),
            runs: Vec::with_capacity(MESSAGES_MAX),
            coalesced: options.offload,
            stamped_by: options.timestamps,
            arrived_ns: Vec::new(),
            failed_after: None,
        }
    }

    /// Sends datagrams in as few calls as possible.
    pub(super) fn send(
        &mut self,
        fd: &OwnedFd,
        outgoing: &Outgoing,
        offload: &mut bool,
        stats: &mut DriverStats,
    ) -> Accepted {
        self.failed_after = None;
        let outcome = self.send_all(fd, outgoing, offload, stats);
        stats.datagrams_sent += outcome.accepted as u64;
        outcome
    }

    fn send_all(
        &mut self,
        fd: &OwnedFd,
        outgoing: &Outgoing,
        offload: &mut bool,
        stats: &mut DriverStats,
    ) -> Accepted {
        let mut accepted = 0;
        let mut start = 0;
        let mut refused_once = false;
        while accepted < outgoing.datagrams.len() {
            self.fill_send(
                &outgoing.octets[start..],
                &outgoing.datagrams[accepted..],
                *offload,
            );
            let result = self.send_filled(fd);
            stats.send_calls += 1;
            let Ok(messages) = result else {
                let errno = result.expect_err("checked just above");
                self.failed_after.get_or_insert(accepted);
                match errno {
                    libc::EINTR => continue,
                    libc::EAGAIN => {
                        return Accepted {
                            accepted,
                            error: None,
                        };
                    }
                    // No checksum offload on the route, or a kernel without GSO.
                    libc::EIO | libc::EINVAL if *offload => {
                        *offload = false;
                        continue;
                    }
                    // An ICMP error for an earlier datagram; it does not concern this one.
                    libc::ECONNREFUSED if !refused_once => {
                        refused_once = true;
                        continue;
                    }
                    _ => {
                        return Accepted {
                            accepted,
                            error: Some(SocketError::of_errno(errno)),
                        };
                    }
                }
            };
            for run in &self.runs[..messages] {
                let sent = &outgoing.datagrams[accepted..][..*run];
                start += sent
                    .iter()
                    .map(|datagram| datagram.length as usize)
                    .sum::<usize>();
                accepted += run;
                if *run > 1 {
                    stats.datagrams_offloaded += *run as u64;
                    stats.offload_bursts += 1;
                }
            }
            if messages < self.runs.len() {
                self.failed_after.get_or_insert(accepted);
            }
        }
        Accepted {
            accepted,
            error: None,
        }
    }

    /// Describes as many datagrams as one call takes.
    fn fill_send(&mut self, octets: &[u8], datagrams: &[OutgoingDatagram], offload: bool) {
        self.runs.clear();
        let (mut first, mut offset) = (0, 0);
        while first < datagrams.len() && self.runs.len() < MESSAGES_MAX {
            let run = if offload {
                burst_length(&datagrams[first..])
            } else {
                1
            };
            let members = &datagrams[first..][..run];
            let total: usize = members
                .iter()
                .map(|datagram| datagram.length as usize)
                .sum();
            let message = self.runs.len();
            self.vectors[message] = libc::iovec {
                iov_base: octets[offset..][..total].as_ptr().cast_mut().cast(),
                iov_len: total,
            };
            self.describe_message(message, members[0]);
            if run > 1 {
                self.set_segment(message, members[0].length as u16);
            }
            self.runs.push(run);
            first += run;
            offset += total;
        }
    }

    fn describe_message(&mut self, message: usize, datagram: OutgoingDatagram) {
        let header = &mut self.headers[message].msg_hdr;
        header.msg_iov = &mut self.vectors[message];
        header.msg_iovlen = 1;
        header.msg_control = std::ptr::null_mut();
        header.msg_controllen = 0;
        header.msg_name = std::ptr::null_mut();
        header.msg_namelen = 0;
        if let Some(to) = datagram.to {
            self.addresses[message] = SockAddr::from_std(to);
            header.msg_name = self.addresses[message].as_mut_ptr().cast();
            header.msg_namelen = self.addresses[message].length;
        }
    }

    /// Attaches the UDP_SEGMENT control message.
    fn set_segment(&mut self, message: usize, length: u16) {
        let header = &mut self.headers[message].msg_hdr;
        header.msg_control = self.controls[message].0.as_mut_ptr().cast();
        // SAFETY: CMSG_SPACE only computes; a u16 fits into CONTROL_OCTETS.
        header.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<u16>() as u32) } as usize;
        // SAFETY: msg_control points to CONTROL_OCTETS aligned octets, more than CMSG_SPACE(2).
        unsafe {
            let control = libc::CMSG_FIRSTHDR(header);
            (*control).cmsg_level = libc::SOL_UDP;
            (*control).cmsg_type = UDP_SEGMENT;
            (*control).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as usize;
            libc::CMSG_DATA(control)
                .cast::<u16>()
                .write_unaligned(length);
        }
    }

    fn send_filled(&mut self, fd: &OwnedFd) -> Result<usize, i32> {
        let count = self.runs.len();
        // SAFETY: the first `count` headers were filled by `fill_send` and point to `self.vectors`,
        // `self.addresses`, `self.controls` and to octets that the caller still borrows.
        let result = unsafe {
            libc::sendmmsg(
                fd.as_raw_fd(),
                self.headers.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_NOSIGNAL,
            )
        };
        if result < 0 {
            Err(last_errno())
        } else {
            Ok(result as usize)
        }
    }

    /// Receives datagrams into `received`; returns true if more may be waiting.
    ///
    /// `peer` is the one sender of a connected socket. `drops` is the socket's SO_RXQ_OVFL counter.
    ///
    /// # Errors
    /// The errno, EAGAIN included.
    pub(super) fn receive(
        &mut self,
        fd: &OwnedFd,
        peer: Option<SocketAddr>,
        received: &mut Received,
        drops: &mut u32,
    ) -> Result<bool, i32> {
        let messages = if self.coalesced {
            MESSAGES_MAX_COALESCED
        } else {
            MESSAGES_MAX
        };
        if received.buffer.len() < MESSAGES_MAX * STRIDE {
            // A fresh zeroed vector: its pages cost nothing until a datagram touches them.
            received.buffer = vec![0; MESSAGES_MAX * STRIDE];
        }
        self.prepare_receive(&mut received.buffer, messages, peer.is_none());
        // SAFETY: `messages` headers were filled by `prepare_receive` and point into
        // `received.buffer`, `self.vectors`, `self.addresses` and `self.controls`.
        let result = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                self.headers.as_mut_ptr(),
                messages as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        if result < 0 {
            return Err(last_errno());
        }
        let count = result as usize;
        received.is_from_peer = peer.is_some();
        self.arrived_ns.clear();
        for message in 0..count {
            self.collect(message, peer, received, drops);
        }
        Ok(count == messages)
    }

    fn prepare_receive(&mut self, buffer: &mut [u8], messages: usize, want_address: bool) {
        for (message, room) in buffer.chunks_exact_mut(STRIDE).take(messages).enumerate() {
            self.vectors[message] = libc::iovec {
                iov_base: room.as_mut_ptr().cast(),
                iov_len: STRIDE,
            };
            let header = &mut self.headers[message].msg_hdr;
            header.msg_iov = &mut self.vectors[message];
            header.msg_iovlen = 1;
            header.msg_control = self.controls[message].0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL_OCTETS;
            header.msg_name = std::ptr::null_mut();
            header.msg_namelen = 0;
            if want_address {
                self.addresses[message] = SockAddr::empty();
                header.msg_name = self.addresses[message].as_mut_ptr().cast();
                header.msg_namelen = self.addresses[message].length;
            }
        }
    }

    /// Cuts one received message into datagrams.
    fn collect(
        &mut self,
        message: usize,
        peer: Option<SocketAddr>,
        received: &mut Received,
        drops: &mut u32,
    ) {
        let header = &self.headers[message];
        let total = header.msg_len as usize;
        let Some(from) = peer.or_else(|| self.addresses[message].std_address()) else {
            return;
        };
        let controls = read_controls(&header.msg_hdr, drops, self.stamped_by);
        let segment = controls.segment.unwrap_or(total).max(1);
        let start = message * STRIDE;
        let mut offset = 0;
        loop {
            let length = segment.min(total - offset);
            let at = (start + offset) as u32;
            received.datagrams.push(Datagram {
                start: at,
                length: length as u32,
                from,
            });
            if self.stamped_by.is_some() {
                self.arrived_ns.push(controls.arrived_ns);
            }
            offset += length;
            if offset >= total {
                break;
            }
        }
    }
}

/// How many of the first datagrams can leave as one GSO burst.
fn burst_length(datagrams: &[OutgoingDatagram]) -> usize {
    let first = datagrams[0];
    let mut total = first.length as usize;
    let mut run = 1;
    if total == 0 {
        return run;
    }
    for datagram in datagrams[1..].iter().take(BURST_DATAGRAMS_MAX - 1) {
        total += datagram.length as usize;
        let too_much = total > BURST_OCTETS_MAX || datagram.length == 0;
        if too_much || datagram.length > first.length || datagram.to != first.to {
            break;
        }
        run += 1;
        if datagram.length < first.length {
            break;
        }
    }
    run
}

/// What came with a message.
#[derive(Default)]
struct Controls {
    /// Length of each datagram that GRO coalesced.
    segment: Option<usize>,
    /// When it arrived, in nanoseconds of the stamps' clock; zero if that is not known.
    arrived_ns: u64,
}

/// Reads the control messages, SO_RXQ_OVFL into `drops`.
fn read_controls(header: &libc::msghdr, drops: &mut u32, by: Option<StampSource>) -> Controls {
    let mut found = Controls::default();
    // SAFETY: the kernel filled the control buffer, which this driver keeps for the next call.
    for (level, kind, data) in unsafe { ControlMessages::of(header) } {
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                *drops = control::number(data).unwrap_or(*drops);
            }
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                found.arrived_ns = by.map_or(0, |by| timestamps::time_ns(data, by));
            }
            (libc::SOL_UDP, UDP_GRO) => {
                // An int of the kernel's.
                let length = control::number(data).map(|number| number as libc::c_int);
                found.segment = length.and_then(|length| usize::try_from(length).ok());
            }
            _ => {}
        }
    }
    found
}

fn last_errno() -> i32 {
    std::io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(lengths: &[u32]) -> Vec<OutgoingDatagram> {
        lengths
            .iter()
            .map(|length| OutgoingDatagram {
                length: *length,
                to: None,
            })
            .collect()
    }

    #[test]
    fn a_burst_takes_equal_lengths_and_one_shorter_at_its_end() {
        for (datagrams, burst) in [
            (vec![44], 1),
            (vec![44, 44, 44], 3),
            (vec![44, 44, 43, 44], 3),
            (vec![44, 45], 1),
            (vec![0, 0], 1),
            (vec![44; 100], 64),
            (vec![30_000, 30_000, 30_000], 2),
        ] {
            assert_eq!(burst_length(&lengths(&datagrams)), burst, "{datagrams:?}");
        }
    }

    #[test]
    fn a_burst_has_one_receiver() {
        let mut datagrams = lengths(&[44, 44, 44]);
        datagrams[1].to = Some(([127, 0, 0, 1], 53).into());
        assert_eq!(burst_length(&datagrams), 1);
    }
}
