//! Responses: rendered by servers, read by clients (RFC 9114, section 4.1; RFC 8484, section 4.2).

use super::error::{ErrorCode, Http3Error};
use super::frame::{self, Body, Content, Frames, check_other_frame, write_frame_header};
use super::request::{frame_out_of_place, is_too_long};
use crate::doh::{self, MESSAGE_OCTETS_MAX, MediaType};
use crate::http2::fields::ResponseFields;
use crate::qpack::{self, Decimal};

/// The content of a server's complete stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// Status 200 and a DNS message.
    Message(Content),
    /// Another final status.
    Status(u16),
    /// Status 200 with another media type.
    MediaType(MediaType),
    /// Malformed (RFC 9114, section 4.1.2), or without a message.
    Malformed,
}

/// The parts read so far.
#[derive(Default)]
struct Reading {
    /// The final response's fields.
    head: Option<ResponseFields>,
    is_trailed: bool,
    is_malformed: bool,
    body: Body,
}

/// Reads a stream that the server has finished.
///
/// # Errors
/// Close the connection with the error's code.
pub fn parse(stream: &[u8], scratch: &mut Vec<u8>) -> Result<Response, Http3Error> {
    let mut frames = Frames::new(stream);
    let reading = read(stream, &mut frames, scratch)?;
    frames.check_end()?;
    Ok(reading.into_response())
}

/// The status of a response whose stream is too long to be read to its end.
///
/// # Errors
/// As [`parse`].
pub fn parse_start(stream: &[u8], scratch: &mut Vec<u8>) -> Result<Response, Http3Error> {
    let reading = read(stream, &mut Frames::new(stream), scratch)?;
    Ok(match reading.head {
        Some(head) if !reading.is_malformed && head.status != 200 => Response::Status(head.status),
        Some(head) if !reading.is_malformed && head.media_type != MediaType::DnsMessage => {
            Response::MediaType(head.media_type)
        }
        _ => Response::Malformed,
    })
}

fn read(
    stream: &[u8],
    frames: &mut Frames<'_>,
    scratch: &mut Vec<u8>,
) -> Result<Reading, Http3Error> {
    let mut reading = Reading::default();
    while let Some(found) = frames.next() {
        let is_message_frame = matches!(found.kind, frame::HEADERS | frame::DATA);
        if is_message_frame && reading.is_trailed
            || found.kind == frame::DATA && reading.head.is_none()
        {
            return Err(frame_out_of_place());
        }
        match found.kind {
            frame::DATA => reading.body.add(&found, stream),
            frame::HEADERS => reading.add_section(found.payload, scratch)?,
            // No push ID has been allowed (RFC 9114, section 7.2.5).
            frame::PUSH_PROMISE => {
                return Err(Http3Error::new(ErrorCode::ID_ERROR, "PUSH_PROMISE"));
            }
            kind => check_other_frame(kind)?,
        }
    }
    Ok(reading)
}

impl Reading {
    /// Takes a field section: of an interim response, of the response, or trailers.
    fn add_section(&mut self, section: &[u8], scratch: &mut Vec<u8>) -> Result<(), Http3Error> {
        let mut fields = ResponseFields::default();
        let decoded = qpack::decode(section, scratch, |name, value| fields.add(name, value));
        self.is_malformed |= is_too_long(decoded)? | fields.is_malformed;
        if self.head.is_some() {
            self.is_trailed = true;
            self.is_malformed |= fields.status != 0;
            return Ok(());
        }
        match fields.status {
            // 101 is of HTTP/1.1 (RFC 9114, section 4.5).
            0 | 101 => {
                self.is_malformed = true;
                self.head = Some(fields);
            }
            100..200 => {}
            _ => self.head = Some(fields),
        }
        Ok(())
    }

    fn into_response(self) -> Response {
        let Some(head) = self.head.filter(|_| !self.is_malformed) else {
            return Response::Malformed;
        };
        let length = head.content_length.octets;
        let contradicted = length.is_some_and(|length| length != self.body.octets() as u64);
        // These have no content whatever they say about it (RFC 9110, section 8.6).
        let has_content = !matches!(head.status, 204 | 304);
        if contradicted && has_content {
            return Response::Malformed;
        }
        match (head.status, head.media_type) {
            (200, MediaType::DnsMessage)
                if matches!(self.body.octets(), 1..=MESSAGE_OCTETS_MAX) =>
            {
                Response::Message(self.body.into_content())
            }
            (200, MediaType::DnsMessage) => Response::Malformed,
            (200, other) => Response::MediaType(other),
            (status, _) => Response::Status(status),
        }
    }
}

/// The field section of every response with a message, up to the value of `content-length`:
/// entries 25 (`:status: 200`) and 44 (`content-type`) of the static table, the name of entry 4.
const MESSAGE_SECTION: [u8; 5] = [0, 0, 0xc0 | 25, 0xc0 | 44, 0x50 | 4];

/// Appends the stream of a response with a message, which is fresh for `max_age` seconds. Does not
/// allocate itself.
pub fn write(message: &[u8], max_age: Option<u32>, out: &mut Vec<u8>) {
    let length = Decimal::new(message.len() as u32);
    let age = max_age.map(Decimal::new);
    // Name with reference to entry 36, whose index is longer than its prefix; length; value.
    let age_octets = age.map_or(0, |age| 3 + MAX_AGE.len() + age.digits().len());
    let section_octets = MESSAGE_SECTION.len() + 1 + length.digits().len() + age_octets;
    write_frame_header(frame::HEADERS, section_octets, out);
    out.extend_from_slice(&MESSAGE_SECTION);
    out.push(length.digits().len() as u8);
    out.extend_from_slice(length.digits());
    if let Some(age) = age {
        let octets = MAX_AGE.len() + age.digits().len();
        out.extend_from_slice(&[0x5f, 36 - 15, octets as u8]);
        out.extend_from_slice(MAX_AGE);
        out.extend_from_slice(age.digits());
    }
    write_frame_header(frame::DATA, message.len(), out);
    out.extend_from_slice(message);
}

/// How the value of `cache-control` begins.
const MAX_AGE: &[u8] = b"max-age=";

/// Appends the stream of a response whose message has the media type [`doh::DNS`].
pub fn write_mistyped(message: &[u8], out: &mut Vec<u8>) {
    let mut section = Vec::new();
    qpack::start_section(&mut section);
    qpack::write_field(":status", "200", &mut section);
    qpack::write_field("content-type", doh::DNS, &mut section);
    write_frame_header(frame::HEADERS, section.len(), out);
    out.extend_from_slice(&section);
    write_frame_header(frame::DATA, message.len(), out);
    out.extend_from_slice(message);
}

/// Appends the stream of a response with a status and no content.
pub fn write_status(status: u16, out: &mut Vec<u8>) {
    let mut section = Vec::new();
    qpack::start_section(&mut section);
    qpack::write_field(":status", &status.to_string(), &mut section);
    if status == 405 {
        // RFC 9110, section 15.5.6.
        qpack::write_field("allow", "GET, POST", &mut section);
    }
    write_frame_header(frame::HEADERS, section.len(), out);
    out.extend_from_slice(&section);
}
