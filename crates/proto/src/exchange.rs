//! Outcomes of queries on their own streams: DoH requests (RFC 8484) or DoQ streams (RFC 9250).
//!
//! Their message ID is 0, so the stream identifies the query of a response. The caller opens an
//! exchange with a token, and gets it back with its end, exactly once; unless it cancels the
//! exchange, or the connection ends first.

use crate::doh::MediaType;

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeEnd<'a> {
    /// The octets of one whole DNS message, not parsed.
    Message(&'a [u8]),
    /// HTTP: a final status other than 200, whatever came with it.
    HttpStatus(u16),
    /// HTTP: status 200 with another media type than `application/dns-message`.
    MediaType(MediaType),
    /// The peer reset the stream (RST_STREAM, RESET_STREAM or STOP_SENDING), with this error code
    /// of its protocol.
    Reset(u64),
    /// The peer reports that it has not processed the request (REFUSED_STREAM, or a stream above
    /// the last one of a GOAWAY); it may be sent again on another connection.
    NotProcessed,
    /// The stream broke the rules of its protocol without breaking the connection's: no message,
    /// more than one, one longer than 65,535 octets, or one that its framing contradicts.
    Malformed,
    /// A message came for an exchange that was cancelled before. The token is that of the cancelled
    /// exchange, and it is the second time that it is given back: only for counting.
    Late,
}
