//! What becomes of one query that has a stream of its own: a DoH request (RFC 8484) or a DoQ stream
//! (RFC 9250).
//!
//! Their message ID is 0, so the stream says which query a response belongs to. Whoever opens one
//! hands in a token, and gets it back with the end of the exchange, exactly once; unless it cancels
//! the exchange, or the connection ends first.

use crate::doh::MediaType;

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeEnd<'a> {
    /// The octets of one whole DNS message; not looked into.
    Message(&'a [u8]),
    /// HTTP: a final status other than 200, whatever came with it.
    HttpStatus(u16),
    /// HTTP: status 200 with another media type than `application/dns-message`.
    MediaType(MediaType),
    /// The peer reset the stream (RST_STREAM, RESET_STREAM or STOP_SENDING), with this error code
    /// of its protocol.
    Reset(u64),
    /// The peer says that it has not processed the request (REFUSED_STREAM, or a stream above the
    /// last one of a GOAWAY); it may be sent again on another connection.
    NotProcessed,
    /// The stream broke the rules of its protocol without breaking the connection's: no message,
    /// more than one, one longer than 65,535 octets, or one that its framing contradicts.
    Malformed,
    /// A message came for an exchange that was cancelled before. The token is that of the cancelled
    /// exchange, and it is the second time that it is given back: only for counting.
    Late,
}
