//! Transport parameters of both sides (RFC 9000, section 18.2), chosen for memory.

use quinn_proto::{IdleTimeout, TransportConfig, VarInt};
use std::time::Duration;

/// Octets that a peer may have in flight towards us on one stream: the longest DNS message with
/// its framing, and room for the fields of HTTP.
pub(super) const STREAM_OCTETS_MAX: u32 = 96 * 1024;

/// Octets that a server may have in flight towards a client on one connection, and keeps until they
/// are acknowledged; the same in the other direction. Received data is read at once, so this bounds
/// memory, not throughput.
pub(super) const CLIENT_WINDOW_OCTETS: u32 = 1024 * 1024;

/// As [`CLIENT_WINDOW_OCTETS`], for a server, which has many more and untrusted peers: a kilobyte
/// for each of 256 streams.
pub(super) const SERVER_WINDOW_OCTETS: u32 = 256 * 1024;

/// Unidirectional streams that HTTP/3 needs from a peer: control, QPACK encoder and decoder
/// (RFC 9114, section 6.2).
pub(super) const HTTP3_UNI_STREAMS: u32 = 3;

/// Transport parameters of one side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    /// Streams of queries that the peer may have open; 0 for a client.
    pub(super) bidi_streams_max: u32,
    /// True for HTTP/3, which has unidirectional streams.
    pub(super) http3: bool,
    /// The connection is given up after this long without a datagram; `None` for never.
    pub(super) idle_timeout: Option<Duration>,
    /// Octets in flight on the connection, either way.
    pub(super) window_octets: u32,
    /// A PING after this long without a datagram; `None` for none.
    pub(super) keep_alive: Option<Duration>,
}

/// Builds the parameters for quinn-proto.
///
/// Each stream that a peer may open costs two map entries at once, so there are no more than the
/// protocol needs. MTU discovery is off: it costs memory and datagrams that are no queries, and
/// 1,200 octets hold more than ten queries.
pub(super) fn config(parameters: &Parameters) -> TransportConfig {
    let mut config = TransportConfig::default();
    let uni_streams = if parameters.http3 {
        HTTP3_UNI_STREAMS
    } else {
        0
    };
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(parameters.bidi_streams_max))
        .max_concurrent_uni_streams(VarInt::from_u32(uni_streams))
        .max_idle_timeout(parameters.idle_timeout.map(idle_timeout))
        .keep_alive_interval(parameters.keep_alive)
        .stream_receive_window(VarInt::from_u32(STREAM_OCTETS_MAX))
        .receive_window(VarInt::from_u32(parameters.window_octets))
        .send_window(parameters.window_octets.into())
        .send_fairness(false)
        .datagram_receive_buffer_size(None)
        .allow_spin(false)
        .mtu_discovery_config(None);
    config
}

/// A timeout of whole milliseconds, of which the field holds 2^62.
fn idle_timeout(timeout: Duration) -> IdleTimeout {
    IdleTimeout::try_from(timeout).unwrap_or(IdleTimeout::from(VarInt::MAX))
}
