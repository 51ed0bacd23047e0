//! Error codes of HTTP/3 and QPACK.

use std::fmt;

/// An error code (RFC 9114, section 8.1; RFC 9204, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u64);

impl ErrorCode {
    /// No error.
    pub const NO_ERROR: ErrorCode = ErrorCode(0x100);
    /// The peer violated the protocol in a way without a specific code.
    pub const GENERAL_PROTOCOL_ERROR: ErrorCode = ErrorCode(0x101);
    /// An internal error.
    pub const INTERNAL_ERROR: ErrorCode = ErrorCode(0x102);
    /// A stream that the peer must not create.
    pub const STREAM_CREATION_ERROR: ErrorCode = ErrorCode(0x103);
    /// The control stream, or one of QPACK's, was closed.
    pub const CLOSED_CRITICAL_STREAM: ErrorCode = ErrorCode(0x104);
    /// A frame that is not allowed there.
    pub const FRAME_UNEXPECTED: ErrorCode = ErrorCode(0x105);
    /// A frame that is laid out wrongly.
    pub const FRAME_ERROR: ErrorCode = ErrorCode(0x106);
    /// The peer makes us do too much.
    pub const EXCESSIVE_LOAD: ErrorCode = ErrorCode(0x107);
    /// A stream or push ID that is not allowed.
    pub const ID_ERROR: ErrorCode = ErrorCode(0x108);
    /// An error in the payload of SETTINGS.
    pub const SETTINGS_ERROR: ErrorCode = ErrorCode(0x109);
    /// The control stream does not begin with SETTINGS.
    pub const MISSING_SETTINGS: ErrorCode = ErrorCode(0x10a);
    /// The server has not processed the request.
    pub const REQUEST_REJECTED: ErrorCode = ErrorCode(0x10b);
    /// The request, or its response, is not wanted any more.
    pub const REQUEST_CANCELLED: ErrorCode = ErrorCode(0x10c);
    /// The client's stream ended before the request was whole.
    pub const REQUEST_INCOMPLETE: ErrorCode = ErrorCode(0x10d);
    /// A message that is malformed.
    pub const MESSAGE_ERROR: ErrorCode = ErrorCode(0x10e);
    /// A field section that cannot be decoded.
    pub const QPACK_DECOMPRESSION_FAILED: ErrorCode = ErrorCode(0x200);
    /// An error on the encoder stream.
    pub const QPACK_ENCODER_STREAM_ERROR: ErrorCode = ErrorCode(0x201);
    /// An error on the decoder stream.
    pub const QPACK_DECODER_STREAM_ERROR: ErrorCode = ErrorCode(0x202);
}

/// A connection error: close the connection with its code (RFC 9114, section 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http3Error {
    /// The error sent to the peer.
    pub code: ErrorCode,
    /// The fault in words.
    pub what: &'static str,
}

impl Http3Error {
    pub(super) const fn new(code: ErrorCode, what: &'static str) -> Self {
        Http3Error { code, what }
    }
}

impl fmt::Display for Http3Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }
}

impl std::error::Error for Http3Error {}
