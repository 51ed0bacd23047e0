//! Data passed to and from sockets, and its size on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Data passed to and from sockets, including TLS, HTTP, QUIC, handshakes and messages that match
/// no query, without the headers of TCP, UDP and IP. Counted in the interval in which it happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WireCounts {
    /// UDP datagrams sent, those of QUIC included.
    pub sent_datagrams: u64,
    /// Bytes in them.
    pub sent_datagram_octets: u64,
    /// UDP datagrams received.
    pub received_datagrams: u64,
    /// Bytes in them.
    pub received_datagram_octets: u64,
    /// Bytes written to TCP streams.
    pub sent_stream_octets: u64,
    /// TCP segments that these take at least: each write its own, of 1,448 bytes at most.
    pub sent_segments: u64,
    /// Bytes that TCP streams gave.
    pub received_stream_octets: u64,
    /// TCP segments that these take at least, counted alike by reads.
    pub received_segments: u64,
}

impl_add!(
    WireCounts,
    numbers: [
        sent_datagrams, sent_datagram_octets, received_datagrams, received_datagram_octets,
        sent_stream_octets, sent_segments, received_stream_octets, received_segments,
    ],
    groups: []
);

/// Bytes of a TCP segment on a path of 1,500 bytes, with the timestamps option (RFC 7323).
const SEGMENT_OCTETS: u64 = 1_448;
/// Bytes of the headers of an IPv4 packet (RFC 791) and of an IPv6 packet (RFC 8200).
const IP_OCTETS: [u64; 2] = [20, 40];
/// Bytes of the header of a UDP datagram (RFC 768).
const UDP_OCTETS: u64 = 8;
/// Bytes of the header of a TCP segment (RFC 9293), with the timestamps option.
const TCP_OCTETS: u64 = 32;

impl WireCounts {
    /// True if nothing was counted, as in records of versions that did not.
    pub fn is_empty(&self) -> bool {
        *self == WireCounts::default()
    }

    /// Counts datagrams sent, with their bytes.
    #[inline]
    pub fn send_datagrams(&mut self, datagrams: usize, octets: usize) {
        self.sent_datagrams += datagrams as u64;
        self.sent_datagram_octets += octets as u64;
    }

    /// Counts datagrams received, with their bytes.
    #[inline]
    pub fn receive_datagrams(&mut self, datagrams: usize, octets: usize) {
        self.received_datagrams += datagrams as u64;
        self.received_datagram_octets += octets as u64;
    }

    /// Counts one write to a stream.
    #[inline]
    pub fn write(&mut self, octets: usize) {
        self.sent_stream_octets += octets as u64;
        self.sent_segments += (octets as u64).div_ceil(SEGMENT_OCTETS);
    }

    /// Counts one read from a stream.
    #[inline]
    pub fn read(&mut self, octets: usize) {
        self.received_stream_octets += octets as u64;
        self.received_segments += (octets as u64).div_ceil(SEGMENT_OCTETS);
    }

    /// Bytes of the IP packets sent.
    pub fn sent_octets(&self, is_ipv6: bool) -> u64 {
        let payload = self.sent_datagram_octets + self.sent_stream_octets;
        payload + headers(is_ipv6, self.sent_datagrams, self.sent_segments)
    }

    /// Bytes of the IP packets received.
    pub fn received_octets(&self, is_ipv6: bool) -> u64 {
        let payload = self.received_datagram_octets + self.received_stream_octets;
        payload + headers(is_ipv6, self.received_datagrams, self.received_segments)
    }
}

/// Header bytes of these datagrams and segments.
fn headers(is_ipv6: bool, datagrams: u64, segments: u64) -> u64 {
    let ip = IP_OCTETS[usize::from(is_ipv6)];
    datagrams * (ip + UDP_OCTETS) + segments * (ip + TCP_OCTETS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_each_datagram_and_segment_are_on_the_wire() {
        let mut wire = WireCounts::default();
        wire.send_datagrams(3, 120);
        wire.receive_datagrams(2, 100);
        assert_eq!(wire.sent_octets(false), 120 + 3 * 28);
        assert_eq!(wire.received_octets(true), 100 + 2 * 48);
        let mut wire = WireCounts::default();
        wire.write(42);
        wire.write(1_449);
        wire.read(1_448);
        assert_eq!(wire.sent_octets(false), 42 + 1_449 + 3 * 52);
        assert_eq!(wire.received_octets(true), 1_448 + 72);
        assert!(!wire.is_empty() && WireCounts::default().is_empty());
    }
}
