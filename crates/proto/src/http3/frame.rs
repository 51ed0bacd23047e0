//! Frames (RFC 9114, section 7).

use super::error::{ErrorCode, Http3Error};
use super::varint;

pub(super) const DATA: u64 = 0x00;
pub(super) const HEADERS: u64 = 0x01;
pub(super) const CANCEL_PUSH: u64 = 0x03;
pub(super) const SETTINGS: u64 = 0x04;
pub(super) const PUSH_PROMISE: u64 = 0x05;
pub(super) const GOAWAY: u64 = 0x07;
pub(super) const MAX_PUSH_ID: u64 = 0x0d;

/// True for types that HTTP/2 has and HTTP/3 must not (RFC 9114, section 7.2.8).
pub(super) const fn is_reserved(kind: u64) -> bool {
    matches!(kind, 0x02 | 0x06 | 0x08 | 0x09)
}

/// Appends type and length of a frame.
pub(super) fn write_frame_header(kind: u64, octets: usize, out: &mut Vec<u8>) {
    varint::write(kind, out);
    varint::write(octets as u64, out);
}

/// The frames of a stream whose octets are complete, or complete as far as they are read.
pub(super) struct Frames<'a> {
    rest: &'a [u8],
    /// Octets of the stream before `rest`.
    position: usize,
}

/// One frame; where its payload lies in the stream is `start` and on.
pub(super) struct Frame<'a> {
    pub(super) kind: u64,
    pub(super) payload: &'a [u8],
    pub(super) start: usize,
}

impl<'a> Frames<'a> {
    pub(super) fn new(stream: &'a [u8]) -> Self {
        Frames {
            rest: stream,
            position: 0,
        }
    }

    /// The next whole frame.
    pub(super) fn next(&mut self) -> Option<Frame<'a>> {
        let mut rest = self.rest;
        let kind = varint::read(&mut rest)?;
        let octets = usize::try_from(varint::read(&mut rest)?).ok()?;
        let (payload, after) = rest.split_at_checked(octets)?;
        let start = self.position + (self.rest.len() - rest.len());
        self.position = start + octets;
        self.rest = after;
        Some(Frame {
            kind,
            payload,
            start,
        })
    }

    /// # Errors
    /// The stream ends within a frame (RFC 9114, section 7.1).
    pub(super) fn check_end(&self) -> Result<(), Http3Error> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(Http3Error::new(
            ErrorCode::FRAME_ERROR,
            "a stream ends within a frame",
        ))
    }
}

/// The meaning of a frame other than HEADERS and DATA on a stream of requests or responses.
///
/// # Errors
/// It must not be there; frames of unknown types may (RFC 9114, section 9).
pub(super) fn check_other_frame(kind: u64) -> Result<(), Http3Error> {
    match kind {
        CANCEL_PUSH | SETTINGS | GOAWAY | MAX_PUSH_ID => Err(Http3Error::new(
            ErrorCode::FRAME_UNEXPECTED,
            "a frame of the control stream on another one",
        )),
        kind if is_reserved(kind) => Err(Http3Error::new(
            ErrorCode::FRAME_UNEXPECTED,
            "a frame of HTTP/2",
        )),
        _ => Ok(()),
    }
}

/// The body of a message as its DATA frames make it.
#[derive(Debug, Default)]
pub(super) struct Body {
    /// Its position in the stream, while it is in one piece.
    place: std::ops::Range<usize>,
    joined: Vec<u8>,
    octets: usize,
}

impl Body {
    /// Adds the payload of a DATA frame; `stream` is the whole stream.
    pub(super) fn add(&mut self, frame: &Frame<'_>, stream: &[u8]) {
        if frame.payload.is_empty() {
            return;
        }
        if self.octets == 0 {
            self.place = frame.start..frame.start + frame.payload.len();
        } else {
            if self.joined.is_empty() {
                self.joined.extend_from_slice(&stream[self.place.clone()]);
            }
            self.joined.extend_from_slice(frame.payload);
        }
        self.octets += frame.payload.len();
    }

    pub(super) fn octets(&self) -> usize {
        self.octets
    }

    pub(super) fn into_content(self) -> Content {
        if self.joined.is_empty() {
            Content::At(self.place)
        } else {
            Content::Joined(self.joined)
        }
    }
}

/// Where the content of a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// In the octets of the stream, in one piece.
    At(std::ops::Range<usize>),
    /// Put together from several frames.
    Joined(Vec<u8>),
}
