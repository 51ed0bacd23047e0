//! DNS over dedicated QUIC connections (RFC 9250): the content of a stream, and violations.
//!
//! Each query has a bidirectional stream of its own, begun by the client: two octets of length, one
//! message with ID 0, FIN; the response comes back the same way. [`crate::quic`] handles the
//! streams themselves.

use crate::response::edns_option;

/// The application protocol (RFC 9250, section 4.1.1).
pub const ALPN: &[u8] = b"doq";

/// No error: used to close a connection or stream without one (RFC 9250, section 4.3).
pub const DOQ_NO_ERROR: u64 = 0x0;
/// The implementation cannot carry on.
pub const DOQ_INTERNAL_ERROR: u64 = 0x1;
/// The peer broke the protocol; the connection is aborted.
pub const DOQ_PROTOCOL_ERROR: u64 = 0x2;
/// A client cancels an outstanding transaction.
pub const DOQ_REQUEST_CANCELLED: u64 = 0x3;
/// A connection is closed because of excessive load.
pub const DOQ_EXCESSIVE_LOAD: u64 = 0x4;
/// An error without a specific code.
pub const DOQ_UNSPECIFIED_ERROR: u64 = 0x5;
/// Reserved for tests of how unknown codes are taken.
pub const DOQ_ERROR_RESERVED: u64 = 0xd098_ea5e;

/// Octets of the length in front of a message (RFC 9250, section 4.2).
const PREFIX_OCTETS: usize = 2;

/// The option for the idle timeout of TCP sessions (RFC 7828).
const EDNS_TCP_KEEPALIVE: u16 = 11;

/// A peer's violation of RFC 9250, section 4.3.3: fatal to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A message ID other than 0.
    NonzeroId,
    /// FIN before all octets of a message.
    CutOff,
    /// FIN before any message.
    NoMessage,
    /// Octets behind the one message of a stream.
    MoreThanOneMessage,
    /// A message with the edns-tcp-keepalive option (section 5.5.2).
    TcpKeepalive,
    /// STOP_SENDING from a server.
    StopSending,
}

impl Violation {
    /// The words that go into CONNECTION_CLOSE for people.
    pub const fn reason(self) -> &'static str {
        match self {
            Violation::NonzeroId => "message ID is not 0",
            Violation::CutOff => "FIN within a message",
            Violation::NoMessage => "FIN without a message",
            Violation::MoreThanOneMessage => "more than one message",
            Violation::TcpKeepalive => "edns-tcp-keepalive",
            Violation::StopSending => "STOP_SENDING from a server",
        }
    }
}

/// Which message IDs are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageIds {
    /// 0 alone (RFC 9250, section 4.2.1).
    #[default]
    Zero,
    /// Any: the clients of some tools send others.
    Any,
}

/// The state of a stream, determined from all octets received on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamState<'a> {
    /// The message is not complete.
    Incomplete,
    /// The message; nothing behind it so far.
    Message(&'a [u8]),
}

/// Looks at the octets of one stream from its start; `finished` says that FIN follows them.
///
/// # Errors
/// The stream breaks the protocol: abort the connection with [`DOQ_PROTOCOL_ERROR`].
pub fn parse_stream(octets: &[u8], finished: bool) -> Result<StreamState<'_>, Violation> {
    parse_stream_with(octets, finished, MessageIds::Zero)
}

/// As [`parse_stream`], of a peer that may send other message IDs.
///
/// # Errors
/// As [`parse_stream`].
pub fn parse_stream_with(
    octets: &[u8],
    finished: bool,
    ids: MessageIds,
) -> Result<StreamState<'_>, Violation> {
    let whole = octets
        .split_first_chunk()
        .and_then(|(prefix, rest)| rest.split_at_checked(usize::from(u16::from_be_bytes(*prefix))));
    match whole {
        Some((message, [])) => {
            check_message(message, ids)?;
            Ok(StreamState::Message(message))
        }
        Some(_) => Err(Violation::MoreThanOneMessage),
        None if !finished => Ok(StreamState::Incomplete),
        None if octets.is_empty() => Err(Violation::NoMessage),
        None => Err(Violation::CutOff),
    }
}

/// Rules for every message in both directions.
fn check_message(message: &[u8], ids: MessageIds) -> Result<(), Violation> {
    if ids == MessageIds::Zero && message.iter().take(2).any(|&octet| octet != 0) {
        return Err(Violation::NonzeroId);
    }
    if edns_option(message, EDNS_TCP_KEEPALIVE).is_some() {
        return Err(Violation::TcpKeepalive);
    }
    Ok(())
}

/// Appends the content of `message`'s stream: length, ID 0, the rest of the message.
///
/// # Panics
/// If the message is longer than 65,535 octets: a programmer error, templates are checked.
pub fn write_stream(message: &[u8], stream: &mut Vec<u8>) {
    let start = stream.len() + PREFIX_OCTETS;
    crate::framing::write_message(message, stream);
    let id_octets = message.len().min(2);
    stream[start..start + id_octets].fill(0);
}

#[cfg(test)]
mod tests;
