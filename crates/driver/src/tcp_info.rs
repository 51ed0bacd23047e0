//! The kernel's statistics of a TCP connection: `struct tcp_info` of linux/tcp.h, which only grows.

use std::os::fd::{AsRawFd, OwnedFd};

/// Octets of the structure up to the last field that is read here.
const OCTETS: usize = 228;

/// Where its fields are.
const TIMEOUTS_AT: usize = 2;
const OPTIONS_AT: usize = 5;
const RTT_AT: usize = 68;
const RETRANSMITTED_AT: usize = 100;
const RECEIVED_AT: usize = 128;
const SEGMENTS_AT: usize = 136;
const DUPLICATES_AT: usize = 216;
const OUT_OF_ORDER_AT: usize = 224;

/// Bit of the options: the peer accepted data in our SYN (RFC 7413).
const SYN_DATA: u8 = 32;

/// Successive timeouts of TCP without an acknowledgement, from which on the peer is silent: one may
/// be chance.
const TIMEOUTS_MIN: u8 = 2;

/// Up to this number, the statistics of every closed connection are read; beyond it, those of one
/// in [`READ_EACH`], so that a run with a connection for each query pays little.
const READ_FIRST: u64 = 10_000;
const READ_EACH: u64 = 16;

/// TCP statistics of the connections that we opened, read when they were closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpStats {
    /// Connections closed.
    pub closed: u64,
    /// Connections whose statistics were read; all further counters are of these.
    pub read: u64,
    /// Segments sent, acknowledgements and repeated ones included.
    pub segments_sent: u64,
    /// Segments sent again.
    pub segments_repeated: u64,
    /// Segments that the peer reported as duplicates (DSACK, RFC 2883): retransmitted although none
    /// was lost.
    pub segments_repeated_in_vain: u64,
    /// Segments sent again on connections from which no octet was received.
    pub segments_repeated_unanswered: u64,
    /// Connections that received a segment before an earlier one.
    pub out_of_order: u64,
    /// Connections that had sent a segment again repeatedly, without an acknowledgement of it.
    pub unacknowledged: u64,
    /// The sum of the round-trip times as last estimated, in microseconds.
    pub rtt_us_sum: u64,
    /// The longest of them.
    pub rtt_us_max: u64,
}

impl TcpStats {
    /// Records a connection of ours that is about to be closed.
    pub(crate) fn note_close(&mut self, fd: &OwnedFd) {
        self.closed += 1;
        if self.closed > READ_FIRST && !self.closed.is_multiple_of(READ_EACH) {
            return;
        }
        let Some(info) = TcpInfo::read(fd) else {
            return;
        };
        let rtt_us = info.number(RTT_AT);
        self.read += 1;
        self.segments_sent += info.number(SEGMENTS_AT);
        self.segments_repeated += info.number(RETRANSMITTED_AT);
        self.segments_repeated_in_vain += info.number(DUPLICATES_AT);
        if !info.has_received() {
            self.segments_repeated_unanswered += info.number(RETRANSMITTED_AT);
        }
        self.out_of_order += u64::from(info.number(OUT_OF_ORDER_AT) > 0);
        self.unacknowledged += u64::from(info.0[TIMEOUTS_AT] >= TIMEOUTS_MIN);
        self.rtt_us_sum += rtt_us;
        self.rtt_us_max = self.rtt_us_max.max(rtt_us);
    }
}

/// The structure of one connection; an older kernel leaves its end at zero.
pub(crate) struct TcpInfo([u8; OCTETS]);

impl TcpInfo {
    pub(crate) fn read(fd: &OwnedFd) -> Option<TcpInfo> {
        let mut info = [0_u8; OCTETS];
        let mut length = OCTETS as libc::socklen_t;
        // SAFETY: the buffer is valid for the length given with it.
        let result = unsafe {
            let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
            let place = info.as_mut_ptr().cast();
            libc::getsockopt(fd.as_raw_fd(), level, option, place, &mut length)
        };
        (result == 0).then_some(TcpInfo(info))
    }

    /// True if the peer has acknowledged octets that came with our SYN.
    pub(crate) fn was_fast_opened(&self) -> bool {
        self.0[OPTIONS_AT] & SYN_DATA != 0
    }

    /// True if data came from the peer (the field is of 64 bits).
    fn has_received(&self) -> bool {
        self.0[RECEIVED_AT..RECEIVED_AT + 8]
            .iter()
            .any(|it| *it != 0)
    }

    fn number(&self, at: usize) -> u64 {
        let octets = self.0[at..].first_chunk().copied();
        u32::from_ne_bytes(octets.unwrap_or_default()).into()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn connections_on_loopback_have_sent_segments_and_repeated_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stats = TcpStats::default();
        for _ in 0..3 {
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            client.write_all(b"question").unwrap();
            server.read_exact(&mut [0; 8]).unwrap();
            server.write_all(b"response").unwrap();
            client.read_exact(&mut [0; 8]).unwrap();
            stats.note_close(&client.into());
        }
        assert_eq!((stats.closed, stats.read), (3, 3));
        // A SYN, an acknowledgement and the question at least.
        assert!(stats.segments_sent >= 9, "{stats:?}");
        assert!(
            stats.rtt_us_sum > 0 && stats.rtt_us_max <= stats.rtt_us_sum,
            "{stats:?}"
        );
    }

    #[test]
    fn of_very_many_connections_a_part_is_asked() {
        let socket: OwnedFd = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().into();
        let mut stats = TcpStats {
            closed: READ_FIRST,
            ..TcpStats::default()
        };
        stats.note_close(&socket);
        // A socket of another kind has no statistics; that is not an error.
        assert_eq!((stats.closed, stats.read), (READ_FIRST + 1, 0));
    }
}
