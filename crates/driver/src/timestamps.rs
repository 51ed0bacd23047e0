//! The kernel's timestamps of datagrams (SO_TIMESTAMPING): when each left the stack, and when each
//! came in.
//!
//! A socket that is stamped numbers its datagrams (SOF_TIMESTAMPING_OPT_ID). The stamp of each that
//! leaves comes back through the socket's error queue, with its number and without its octets
//! (OPT_TSONLY); that of each that arrives comes with it. The timestamps' clock differs from the
//! driver's: both are read together every 10 ms. If one of them is stepped, few timestamps are
//! wrong, and most wrong ones are impossible, which a comparison of the instants detects.
//!
//! Timestamps can be missing: the error queue shares the receive buffer, and a failed send makes
//! the numbering uncertain, because kernels differ in whether they count a datagram that they did
//! not send. Later datagrams get no timestamps until all earlier ones have left the host; then the
//! numbering is restarted.

use std::io;
use std::mem::zeroed;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use proto::Instant;

use crate::card::CardClock;
use crate::clock::Clock;
use crate::control::{self, ControlMessages, extended_error};
use crate::{SendStamp, StampSource, card, socket};

/// Stamps that one call reads from an error queue.
const STAMPS_MAX: usize = 64;
/// Room for a stamp and its number, each a control message.
const CONTROL_OCTETS: usize = 192;
/// How long a pair of clock readings is used.
const PAIR_FOR: Duration = Duration::from_millis(10);
/// Times that both clocks are read, to take the closest: the thread may lose its CPU in between.
const READINGS: usize = 3;

#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_OCTETS]);

/// Socket option: timestamps of arrivals.
fn receiving(source: StampSource) -> libc::c_uint {
    match source {
        StampSource::Kernel => libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE,
        StampSource::Hardware => {
            libc::SOF_TIMESTAMPING_RX_HARDWARE | libc::SOF_TIMESTAMPING_RAW_HARDWARE
        }
    }
}

/// In addition: timestamps of sent datagrams, numbered, without their octets.
fn sending(source: StampSource) -> libc::c_uint {
    let of_source = match source {
        StampSource::Kernel => libc::SOF_TIMESTAMPING_TX_SOFTWARE,
        StampSource::Hardware => libc::SOF_TIMESTAMPING_TX_HARDWARE,
    };
    of_source | libc::SOF_TIMESTAMPING_OPT_ID | libc::SOF_TIMESTAMPING_OPT_TSONLY
}

/// Which of the times of a stamp is of this source.
fn place(source: StampSource) -> usize {
    match source {
        StampSource::Kernel => 0,
        StampSource::Hardware => 2,
    }
}

/// State for reading timestamps, one per driver.
pub(super) struct Timestamps {
    source: StampSource,
    /// The clock of the card that stamps, once it is known.
    card: Option<CardClock>,
    clock: Clock,
    /// The clock of the stamps less the driver's, in nanoseconds; wraps around.
    ahead_ns: u64,
    paired_at: Option<Instant>,
    headers: Box<[libc::mmsghdr]>,
    controls: Box<[Control]>,
}

/// The numbering of one socket's datagrams. Numbers wrap around.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbering {
    /// Datagrams that the kernel has accepted.
    sent: u32,
    /// What the kernel counts as 0.
    base: u32,
    /// The timestamps of all before it have come, or never will.
    heard: u32,
    /// From this one on, the kernel's numbers may differ from ours.
    doubtful_from: Option<u32>,
}

impl Numbering {
    /// Records that the kernel accepted datagrams, and that sending failed after `failed_after` of
    /// them.
    pub(super) fn note_sent(&mut self, accepted: usize, failed_after: Option<usize>) {
        if let Some(place) = failed_after {
            let from = self.sent.wrapping_add(place as u32);
            self.doubtful_from.get_or_insert(from);
        }
        self.sent = self.sent.wrapping_add(accepted as u32);
    }

    /// True if sending has failed since the numbering began.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.doubtful_from.is_some()
    }

    /// Converts a number of the kernel's to ours; none if it is uncertain or belongs to no
    /// datagram.
    fn number(&mut self, key: u32) -> Option<u32> {
        let number = self.base.wrapping_add(key);
        let end = self.doubtful_from.unwrap_or(self.sent);
        let is_before_end = (number.wrapping_sub(end) as i32) < 0;
        if is_before_end && number.wrapping_sub(self.heard) as i32 >= 0 {
            self.heard = number.wrapping_add(1);
        }
        is_before_end.then_some(number)
    }

    fn restart(&mut self) {
        *self = Numbering {
            sent: self.sent,
            base: self.sent,
            heard: self.sent,
            doubtful_from: None,
        };
    }
}

/// Enables timestamps of a socket's datagrams.
///
/// # Errors
/// The kernel's, if it knows no such stamps.
pub(super) fn enable(fd: &OwnedFd, source: StampSource) -> io::Result<()> {
    ask(fd, receiving(source) | sending(source)).map_err(|error| {
        let what = format!("the kernel stamps no datagrams here: {error}");
        io::Error::new(error.kind(), what)
    })
}

fn ask(fd: &OwnedFd, flags: libc::c_uint) -> io::Result<()> {
    socket::set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as i32)
}

impl Timestamps {
    pub(super) fn new(clock: Clock, source: StampSource) -> Self {
        Timestamps {
            source,
            card: None,
            clock,
            ahead_ns: 0,
            paired_at: None,
            // SAFETY: all-zero mmsghdr are valid (null pointers, zero lengths).
            headers: vec![unsafe { zeroed() }; STAMPS_MAX].into_boxed_slice(),
            controls: vec![Control([0; CONTROL_OCTETS]); STAMPS_MAX].into_boxed_slice(),
        }
    }

    /// Gets ready for a socket to `peer`: with stamps of hardware, its card and that one's clock.
    ///
    /// # Errors
    /// Those of [`card::prepare`].
    pub(super) fn prepare(
        &mut self,
        peer: SocketAddr,
        local: Option<SocketAddr>,
    ) -> io::Result<()> {
        if self.source == StampSource::Hardware && self.card.is_none() {
            self.card = Some(card::prepare(peer, local.map(|local| local.ip()))?);
        }
        Ok(())
    }

    /// The time of the stamps' clock; none if its card is gone.
    fn read_clock(&self) -> Option<u64> {
        match &self.card {
            None => Some(Clock::unix_time().as_nanos() as u64),
            Some(card) => card.now_ns(),
        }
    }

    /// Turns the times of datagrams that arrived into instants of the driver's clock.
    pub(super) fn convert(&mut self, times_ns: &[u64], instants: &mut Vec<Instant>) {
        self.pair_clocks();
        instants.extend(times_ns.iter().map(|ns| self.instant(*ns)));
    }

    /// A time of the stamps' clock on the driver's clock; zero stands for none.
    fn instant(&self, time_ns: u64) -> Instant {
        match (time_ns, self.paired_at) {
            (0, _) | (_, None) => Instant::ZERO,
            _ => Instant::from_nanos(time_ns.wrapping_sub(self.ahead_ns)),
        }
    }

    /// Restarts the numbering of a socket's datagrams if it is uncertain and nothing is on its way
    /// out, so that no timestamp of the old numbering can follow.
    pub(super) fn settle(&mut self, fd: &OwnedFd, numbering: &mut Numbering) {
        if !numbering.is_in_doubt() || !matches!(socket::unsent_octets(fd), Ok(0)) {
            return;
        }
        let off = ask(fd, receiving(self.source));
        while self.read_queue(fd) == STAMPS_MAX {}
        // If timestamps cannot be enabled again, the numbering stays uncertain, and no more come.
        if off.and_then(|()| enable(fd, self.source)).is_ok() {
            numbering.restart();
        }
    }

    /// Reads the stamps of datagrams that left a socket, if some are not known yet.
    pub(super) fn read(
        &mut self,
        fd: &OwnedFd,
        numbering: &mut Numbering,
        stamps: &mut Vec<SendStamp>,
    ) {
        self.pair_clocks();
        while numbering.heard != numbering.sent {
            let count = self.read_queue(fd);
            for header in &self.headers[..count] {
                let stamp = stamp_of(&header.msg_hdr, self.source);
                if let Some((key, time_ns)) = stamp
                    && let Some(number) = numbering.number(key)
                {
                    let at = self.instant(time_ns);
                    stamps.push(SendStamp { number, at });
                }
            }
            if count < STAMPS_MAX {
                return;
            }
        }
    }

    /// Reads one batch of messages from an error queue; returns how many there were.
    fn read_queue(&mut self, fd: &OwnedFd) -> usize {
        for (header, control) in self.headers.iter_mut().zip(&mut self.controls) {
            let header = &mut header.msg_hdr;
            header.msg_control = control.0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL_OCTETS;
        }
        // SAFETY: the headers point to `self.controls`, which have CONTROL_OCTETS each, and to no
        // other memory.
        let count = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                self.headers.as_mut_ptr(),
                STAMPS_MAX as libc::c_uint,
                libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        usize::try_from(count).unwrap_or(0)
    }

    fn pair_clocks(&mut self) {
        let now = self.clock.now();
        if self.paired_at.is_some_and(|at| now < at + PAIR_FOR) {
            return;
        }
        let mut narrowest_ns = u64::MAX;
        for _ in 0..READINGS {
            let before = self.clock.now();
            let Some(time_ns) = self.read_clock() else {
                return;
            };
            let after = self.clock.now();
            let width_ns = after.nanos_since(before);
            if width_ns < narrowest_ns {
                narrowest_ns = width_ns;
                let middle_ns = before.as_nanos().midpoint(after.as_nanos());
                self.ahead_ns = time_ns.wrapping_sub(middle_ns);
            }
        }
        self.paired_at = Some(now);
    }
}

/// The time that `source` took, of the octets of an SCM_TIMESTAMPING, in nanoseconds of its clock;
/// zero stands for none.
pub(super) fn time_ns(data: &[u8], source: StampSource) -> u64 {
    control::time(data, place(source)).map_or(0, |time| {
        (time.tv_sec as u64).wrapping_mul(1_000_000_000) + time.tv_nsec as u64
    })
}

/// Number and time of the datagram that a message of the error queue is about.
fn stamp_of(message: &libc::msghdr, source: StampSource) -> Option<(u32, u64)> {
    let (mut key, mut stamped_ns) = (None, None);
    // SAFETY: the kernel filled the control buffer, which is kept for the next call.
    for control in unsafe { ControlMessages::of(message) } {
        if let (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, data) = control {
            stamped_ns = Some(time_ns(data, source)).filter(|ns| *ns > 0);
        } else if let Some((error, _)) = extended_error(control) {
            let is_stamp = error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING;
            key = is_stamp.then_some(error.ee_data);
        }
    }
    key.zip(stamped_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_that_of_the_datagram_also_when_it_wraps_around() {
        let begun = u32::MAX - 1;
        let mut numbering = Numbering {
            sent: begun,
            ..Numbering::default()
        };
        numbering.restart();
        numbering.note_sent(4, None);
        let numbers: Vec<_> = (0..5).map(|key| numbering.number(key)).collect();
        let known = [u32::MAX - 1, u32::MAX, 0, 1].map(Some);
        assert_eq!((&numbers[..4], numbers[4]), (&known[..], None));
        assert_eq!(numbering.heard, numbering.sent);
    }

    #[test]
    fn numbers_after_a_send_that_failed_are_in_doubt_until_it_begins_anew() {
        let mut numbering = Numbering::default();
        numbering.note_sent(5, Some(2));
        numbering.note_sent(5, Some(0));
        assert!(numbering.is_in_doubt());
        let numbers: Vec<_> = (0..4).map(|key| numbering.number(key)).collect();
        assert_eq!(numbers, [Some(0), Some(1), None, None]);
        numbering.restart();
        numbering.note_sent(1, None);
        assert_eq!((numbering.number(0), numbering.number(1)), (Some(10), None));
    }

    #[test]
    fn a_time_of_the_other_clock_is_the_instant_at_which_it_was_read() {
        let clock = Clock::start();
        let mut timestamps = Timestamps::new(clock, StampSource::Kernel);
        let before = clock.now();
        let unix_ns = Clock::unix_time().as_nanos() as u64;
        let after = clock.now();
        let mut instants = Vec::new();
        timestamps.convert(&[unix_ns, 0], &mut instants);
        // A thread that loses its CPU between two readings is off by that long.
        let slack = Duration::from_millis(5);
        assert!(before <= instants[0] + slack && instants[0] <= after + slack);
        assert_eq!(instants[1], Instant::ZERO);
    }
}
