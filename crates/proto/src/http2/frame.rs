//! Frames of HTTP/2 (RFC 9113, sections 4 and 6), and the error codes of section 7.

use std::fmt;

/// The preface that a client sends before its first frame (section 3.4).
pub const CLIENT_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Octets of a frame's header (section 4.1).
pub(super) const FRAME_HEADER_OCTETS: usize = 9;

/// The longest payload that we accept: what everybody must accept (SETTINGS_MAX_FRAME_SIZE).
pub(super) const PAYLOAD_OCTETS_MAX: usize = 16_384;

/// The largest flow-control window (section 6.9.1), and the largest stream identifier.
pub(super) const WINDOW_MAX: u32 = (1 << 31) - 1;

/// Flow-control windows before any SETTINGS (section 6.9.2).
pub(super) const WINDOW_INITIAL: u32 = 65_535;

/// A partial frame's buffer that is larger than this is freed with its frame.
const PARTIAL_OCTETS_KEPT: usize = 256;

/// Frame types (section 6).
pub(super) mod kind {
    pub(in crate::http2) const DATA: u8 = 0;
    pub(in crate::http2) const HEADERS: u8 = 1;
    pub(in crate::http2) const PRIORITY: u8 = 2;
    pub(in crate::http2) const RST_STREAM: u8 = 3;
    pub(in crate::http2) const SETTINGS: u8 = 4;
    pub(in crate::http2) const PUSH_PROMISE: u8 = 5;
    pub(in crate::http2) const PING: u8 = 6;
    pub(in crate::http2) const GOAWAY: u8 = 7;
    pub(in crate::http2) const WINDOW_UPDATE: u8 = 8;
    pub(in crate::http2) const CONTINUATION: u8 = 9;
}

/// Frame flags (section 6).
pub(super) mod flag {
    pub(in crate::http2) const END_STREAM: u8 = 1;
    pub(in crate::http2) const ACK: u8 = 1;
    pub(in crate::http2) const END_HEADERS: u8 = 4;
    pub(in crate::http2) const PADDED: u8 = 8;
    pub(in crate::http2) const PRIORITY: u8 = 0x20;
}

/// Settings (section 6.5.2).
pub(super) mod setting {
    pub(in crate::http2) const HEADER_TABLE_SIZE: u16 = 1;
    pub(in crate::http2) const ENABLE_PUSH: u16 = 2;
    pub(in crate::http2) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(in crate::http2) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(in crate::http2) const MAX_FRAME_SIZE: u16 = 5;
}

/// An error code of RST_STREAM and GOAWAY (section 7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// No error; also a graceful shutdown.
    pub const NO_ERROR: ErrorCode = ErrorCode(0);
    /// An unspecific breach of the protocol.
    pub const PROTOCOL_ERROR: ErrorCode = ErrorCode(1);
    /// An unexpected internal error.
    pub const INTERNAL_ERROR: ErrorCode = ErrorCode(2);
    /// The peer sent more than the window allows.
    pub const FLOW_CONTROL_ERROR: ErrorCode = ErrorCode(3);
    /// SETTINGS were not acknowledged in time.
    pub const SETTINGS_TIMEOUT: ErrorCode = ErrorCode(4);
    /// A frame came for a stream that was half-closed or closed.
    pub const STREAM_CLOSED: ErrorCode = ErrorCode(5);
    /// A frame with an invalid size.
    pub const FRAME_SIZE_ERROR: ErrorCode = ErrorCode(6);
    /// The stream was refused before any processing.
    pub const REFUSED_STREAM: ErrorCode = ErrorCode(7);
    /// The stream is not needed any more.
    pub const CANCEL: ErrorCode = ErrorCode(8);
    /// The field-section compression has failed.
    pub const COMPRESSION_ERROR: ErrorCode = ErrorCode(9);
    /// The connection of a CONNECT request failed.
    pub const CONNECT_ERROR: ErrorCode = ErrorCode(10);
    /// The peer generates excessive load.
    pub const ENHANCE_YOUR_CALM: ErrorCode = ErrorCode(11);
    /// The transport below is not secure enough.
    pub const INADEQUATE_SECURITY: ErrorCode = ErrorCode(12);
    /// HTTP/1.1 is required.
    pub const HTTP_1_1_REQUIRED: ErrorCode = ErrorCode(13);

    /// The name of the RFC, if it has one.
    pub fn name(self) -> Option<&'static str> {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        NAMES.get(self.0 as usize).copied()
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error code {:#x}", self.0),
        }
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A connection error (section 5.4.1) that we detected and sent to the peer in a GOAWAY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2Error {
    /// The code that went into the GOAWAY.
    pub code: ErrorCode,
    /// Description of the peer's violation.
    pub what: &'static str,
}

impl Http2Error {
    pub(super) const fn new(code: ErrorCode, what: &'static str) -> Self {
        Http2Error { code, what }
    }

    pub(super) const fn protocol(what: &'static str) -> Self {
        Http2Error::new(ErrorCode::PROTOCOL_ERROR, what)
    }

    pub(super) const fn frame_size(what: &'static str) -> Self {
        Http2Error::new(ErrorCode::FRAME_SIZE_ERROR, what)
    }

    pub(super) const fn flow_control(what: &'static str) -> Self {
        Http2Error::new(ErrorCode::FLOW_CONTROL_ERROR, what)
    }
}

impl fmt::Display for Http2Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.what, self.code)
    }
}

impl std::error::Error for Http2Error {}

/// One frame as it was received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) kind: u8,
    pub(super) flags: u8,
    /// Without the reserved bit.
    pub(super) stream: u32,
    pub(super) payload: &'a [u8],
}

impl<'a> Frame<'a> {
    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The payload of DATA or HEADERS without padding (section 6.1).
    pub(super) fn unpadded(&self) -> Result<&'a [u8], Http2Error> {
        if !self.has(flag::PADDED) {
            return Ok(self.payload);
        }
        let unpadded = self.payload.split_first().and_then(|(&padding, rest)| {
            let octets = rest.len().checked_sub(usize::from(padding))?;
            Some(&rest[..octets])
        });
        unpadded.ok_or(Http2Error::protocol(
            "a frame's padding is longer than the frame",
        ))
    }

    /// The field-block fragment of a HEADERS frame (section 6.2); its priority is ignored.
    pub(super) fn fragment(&self) -> Result<&'a [u8], Http2Error> {
        let unpadded = self.unpadded()?;
        match self.has(flag::PRIORITY) {
            false => Ok(unpadded),
            true => unpadded
                .get(5..)
                .ok_or(Http2Error::frame_size("a HEADERS frame is too short")),
        }
    }

    /// The payload as one number of 32 bits.
    pub(super) fn number(&self) -> Result<u32, Http2Error> {
        <[u8; 4]>::try_from(self.payload)
            .map(u32::from_be_bytes)
            .map_err(|_| Http2Error::frame_size("a frame of four bytes has another length"))
    }
}

/// Cuts received octets into frames; holds at most one partial frame.
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    /// A frame that the octets so far have not finished.
    partial: Vec<u8>,
}

impl FrameReader {
    /// Passes every whole frame to `on_frame`: in place, unless it arrived in parts.
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        mut on_frame: impl FnMut(Frame<'_>) -> Result<(), Http2Error>,
    ) -> Result<(), Http2Error> {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = self.read_one(rest, &mut on_frame)?;
        }
        Ok(())
    }

    /// True if no frame has been cut off.
    #[inline]
    pub(super) fn is_between_frames(&self) -> bool {
        self.partial.is_empty()
    }

    /// Hands the next frame to `on_frame`, or keeps what there is of it; returns the octets of
    /// `bytes`, which is not empty, after it.
    pub(super) fn read_one<'a>(
        &mut self,
        bytes: &'a [u8],
        on_frame: impl FnOnce(Frame<'_>) -> Result<(), Http2Error>,
    ) -> Result<&'a [u8], Http2Error> {
        if !self.partial.is_empty() {
            let rest = self.extend_partial(bytes)?;
            if let Some((frame, _)) = split_frame(&self.partial)? {
                on_frame(frame)?;
                match self.partial.capacity() > PARTIAL_OCTETS_KEPT {
                    true => self.partial = Vec::new(),
                    false => self.partial.clear(),
                }
            }
            return Ok(rest);
        }
        let Some((frame, rest)) = split_frame(bytes)? else {
            return self.extend_partial(bytes);
        };
        on_frame(frame)?;
        Ok(rest)
    }

    /// Moves what belongs to the partial frame into the buffer; returns the octets after it.
    fn extend_partial<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Http2Error> {
        let rest = self.extend_partial_to(FRAME_HEADER_OCTETS, bytes);
        match self.partial.first_chunk() {
            None => Ok(rest),
            Some(header) => {
                let octets = FRAME_HEADER_OCTETS + payload_octets(header)?;
                Ok(self.extend_partial_to(octets, rest))
            }
        }
    }

    fn extend_partial_to<'a>(&mut self, octets: usize, bytes: &'a [u8]) -> &'a [u8] {
        let missing = octets.saturating_sub(self.partial.len());
        let (taken, rest) = bytes.split_at(missing.min(bytes.len()));
        self.partial.reserve_exact(missing);
        self.partial.extend_from_slice(taken);
        rest
    }
}

/// The length in a frame's header, if it is one that we accept (section 4.2).
fn payload_octets(header: &[u8; FRAME_HEADER_OCTETS]) -> Result<usize, Http2Error> {
    let octets = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
    match octets <= PAYLOAD_OCTETS_MAX {
        true => Ok(octets),
        false => Err(Http2Error::frame_size(
            "a frame is longer than 16,384 bytes",
        )),
    }
}

/// Splits `stream` behind its first frame; `None` if that is cut off.
fn split_frame(stream: &[u8]) -> Result<Option<(Frame<'_>, &[u8])>, Http2Error> {
    let Some((header, rest)) = stream.split_first_chunk() else {
        return Ok(None);
    };
    let Some((payload, after)) = rest.split_at_checked(payload_octets(header)?) else {
        return Ok(None);
    };
    let frame = Frame {
        kind: header[3],
        flags: header[4],
        stream: u32::from_be_bytes([header[5], header[6], header[7], header[8]]) & WINDOW_MAX,
        payload,
    };
    Ok(Some((frame, after)))
}

/// A frame's header.
#[inline]
pub(super) fn frame_header(
    octets: usize,
    kind: u8,
    flags: u8,
    stream: u32,
) -> [u8; FRAME_HEADER_OCTETS] {
    let mut header = [0; FRAME_HEADER_OCTETS];
    header[..4].copy_from_slice(&((octets as u32) << 8 | u32::from(kind)).to_be_bytes());
    header[4] = flags;
    header[5..].copy_from_slice(&stream.to_be_bytes());
    header
}

/// Appends a frame's header.
pub(super) fn write_header(octets: usize, kind: u8, flags: u8, stream: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&frame_header(octets, kind, flags, stream));
}

/// Appends a SETTINGS frame.
pub(super) fn write_settings(settings: &[(u16, u32)], out: &mut Vec<u8>) {
    write_header(settings.len() * 6, kind::SETTINGS, 0, 0, out);
    for (id, value) in settings {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends a WINDOW_UPDATE frame.
pub(super) fn write_window_update(stream: u32, octets: u32, out: &mut Vec<u8>) {
    write_header(4, kind::WINDOW_UPDATE, 0, stream, out);
    out.extend_from_slice(&octets.to_be_bytes());
}

/// Appends an RST_STREAM frame.
pub(super) fn write_reset(stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
    write_header(4, kind::RST_STREAM, 0, stream, out);
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Appends a GOAWAY frame, with `what` as its debug data.
pub(super) fn write_goaway(last_stream: u32, code: ErrorCode, what: &str, out: &mut Vec<u8>) {
    write_header(8 + what.len(), kind::GOAWAY, 0, 0, out);
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
    out.extend_from_slice(what.as_bytes());
}

/// Turns the octets of `out` after `start`, nine free octets and a field block, into a HEADERS
/// frame; and into CONTINUATION frames, too, if the block is longer than `payload_max`.
pub(super) fn finish_headers(
    start: usize,
    stream: u32,
    flags: u8,
    payload_max: usize,
    out: &mut Vec<u8>,
) {
    let block_start = start + FRAME_HEADER_OCTETS;
    let octets = out.len() - block_start;
    let (mut kind, mut flags) = (kind::HEADERS, flags);
    if octets <= payload_max {
        flags |= flag::END_HEADERS;
        let header = ((octets as u32) << 8 | u32::from(kind)).to_be_bytes();
        out[start..start + 4].copy_from_slice(&header);
        out[start + 4] = flags;
        out[start + 5..block_start].copy_from_slice(&stream.to_be_bytes());
        return;
    }
    let block = out.split_off(block_start);
    out.truncate(start);
    let mut chunks = block.chunks(payload_max).peekable();
    while let Some(chunk) = chunks.next() {
        if chunks.peek().is_none() {
            flags |= flag::END_HEADERS;
        }
        write_header(chunk.len(), kind, flags, stream, out);
        out.extend_from_slice(chunk);
        (kind, flags) = (kind::CONTINUATION, 0);
    }
}
