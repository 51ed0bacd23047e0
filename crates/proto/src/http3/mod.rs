//! HTTP/3 for DNS over HTTPS (RFC 9114, RFC 8484), client and server side, without QUIC.
//!
//! [`request`] and [`response`] turn whole messages into the octets of a stream and back;
//! [`PeerStreams`] reads the peer's unidirectional streams. [`crate::quic`] moves the octets.
//!
//! Not here: server push, CONNECT, priorities (unknown frames and streams are ignored, as those of
//! any other extension).

mod error;
mod frame;
mod peer_streams;
pub mod request;
pub mod response;
mod varint;

#[cfg(test)]
mod tests;

pub use error::{ErrorCode, Http3Error};
pub use peer_streams::{PeerStreams, Role, StreamEnd, UniStep};

pub use frame::Content;
use frame::write_frame_header;

/// The application protocol (RFC 9114, section 3.1).
pub const ALPN: &[u8] = b"h3";

/// Appends the start of our control stream: its type and SETTINGS (RFC 9114, section 6.2.1).
///
/// QPACK's capacity is 0 when it is not said (RFC 9204, section 5).
pub fn write_control_stream(out: &mut Vec<u8>) {
    const MAX_FIELD_SECTION_SIZE: u64 = 0x06;
    out.push(peer_streams::CONTROL as u8);
    let mut settings = Vec::new();
    varint::write(MAX_FIELD_SECTION_SIZE, &mut settings);
    varint::write(crate::qpack::SECTION_OCTETS_MAX as u64, &mut settings);
    write_frame_header(frame::SETTINGS, settings.len(), out);
    out.extend_from_slice(&settings);
}

/// Appends a GOAWAY frame for the control stream: requests on streams from `stream_id` on are not
/// processed (RFC 9114, section 5.2).
pub fn write_goaway(stream_id: u64, out: &mut Vec<u8>) {
    let mut payload = Vec::new();
    varint::write(stream_id, &mut payload);
    write_frame_header(frame::GOAWAY, payload.len(), out);
    out.extend_from_slice(&payload);
}
