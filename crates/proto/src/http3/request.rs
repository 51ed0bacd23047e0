//! Requests: rendered by clients, read by servers (RFC 9114, section 4.1; RFC 8484, section 4.1).

use super::error::{ErrorCode, Http3Error};
use super::frame::{self, Body, Content, Frames, check_other_frame, write_frame_header};
use crate::doh::{DohRequest, Method, RequestField};
use crate::http2::fields::RequestFields;
use crate::http2::server::classify;
use crate::qpack;

/// The constant part of a run's requests, rendered.
#[derive(Clone, Debug)]
pub struct RequestTemplate {
    method: Method,
    /// The field section up to the path of a GET, or the whole of a POST but `content-length`.
    head: Vec<u8>,
    /// The fields behind the path of a GET.
    tail: Vec<u8>,
    /// Octets of the section as SETTINGS_MAX_FIELD_SECTION_SIZE counts them, without the value of
    /// the one field that changes.
    counted_octets: usize,
    request: std::sync::Arc<DohRequest>,
    /// Used while a request is rendered.
    section: Vec<u8>,
}

impl RequestTemplate {
    /// Renders what does not change.
    pub fn new(request: std::sync::Arc<DohRequest>) -> Self {
        let mut head = Vec::new();
        let method = request.method();
        qpack::start_section(&mut head);
        qpack::write_field(":method", method.name(), &mut head);
        qpack::write_field(":scheme", request.scheme().name(), &mut head);
        write_fields(request.pseudo_fields(), &mut head);
        let mut tail = Vec::new();
        let regular = match method {
            Method::Get => &mut tail,
            Method::Post => &mut head,
        };
        write_fields(request.regular_fields(), regular);
        let changing = match method {
            Method::Get => ":path",
            Method::Post => "content-length",
        };
        let fixed = [
            (":method", method.name()),
            (":scheme", request.scheme().name()),
            (changing, ""),
        ];
        let fields = request
            .pseudo_fields()
            .iter()
            .chain(request.regular_fields());
        let counted_octets = fields
            .map(|field| (&*field.name, &*field.value))
            .chain(fixed)
            .map(|(name, value)| name.len() + value.len() + 32)
            .sum();
        RequestTemplate {
            method,
            head,
            tail,
            counted_octets,
            request,
            section: Vec::new(),
        }
    }

    /// Octets of the field section of a request with a message of `message_octets`, as
    /// SETTINGS_MAX_FIELD_SECTION_SIZE counts them.
    pub fn counted_octets(&self, message_octets: usize) -> usize {
        self.counted_octets
            + match self.method {
                Method::Get => self.request.get_path_octets(message_octets),
                Method::Post => 5,
            }
    }

    /// Appends the stream of one request: HEADERS, and DATA if it is a POST. The ID of `message`
    /// should be 0 (RFC 8484, section 4.1). Allocates nothing after the first.
    pub fn write(&mut self, message: &[u8], out: &mut Vec<u8>) {
        self.section.clear();
        self.section.extend_from_slice(&self.head);
        match self.method {
            Method::Get => {
                let path_octets = self.request.get_path_octets(message.len());
                qpack::write_name(":path", &mut self.section);
                qpack::write_string_octets(path_octets, &mut self.section);
                self.request.write_get_path(message, &mut self.section);
                self.section.extend_from_slice(&self.tail);
            }
            Method::Post => {
                let octets = message.len() as u32;
                qpack::write_number_field("content-length", octets, &mut self.section);
            }
        }
        write_frame_header(frame::HEADERS, self.section.len(), out);
        out.extend_from_slice(&self.section);
        if self.method == Method::Post {
            write_frame_header(frame::DATA, message.len(), out);
            out.extend_from_slice(message);
        }
    }
}

fn write_fields(fields: &[RequestField], out: &mut Vec<u8>) {
    for field in fields {
        qpack::write_field(&field.name, &field.value, out);
    }
}

/// The content of a client's complete stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A DNS message of 1 to 65,535 octets.
    Query {
        /// How it came.
        method: Method,
        /// Where it is.
        message: Content,
    },
    /// To be refused with this status: 400, 404, 405, 413 or 415.
    Refused(u16),
    /// To be reset with this code.
    Broken(ErrorCode),
}

/// Reads a stream that the client has finished; `path` is that of the resource.
///
/// # Errors
/// Close the connection with the error's code.
pub fn parse(stream: &[u8], path: &str, scratch: &mut Vec<u8>) -> Result<Request, Http3Error> {
    let mut request: Option<RequestFields> = None;
    let (mut body, mut is_trailed) = (Body::default(), false);
    let mut frames = Frames::new(stream);
    let mut is_broken = false;
    while let Some(found) = frames.next() {
        let is_message_frame = matches!(found.kind, frame::HEADERS | frame::DATA);
        if is_message_frame && is_trailed || found.kind == frame::DATA && request.is_none() {
            return Err(frame_out_of_place());
        }
        match found.kind {
            frame::DATA => body.add(&found, stream),
            frame::HEADERS => {
                let mut fields = RequestFields::new(Vec::new());
                let decoded = qpack::decode(found.payload, scratch, |name, value| {
                    fields.add(name, value, path);
                });
                is_broken |= is_too_long(decoded)?;
                is_trailed = request.is_some();
                is_broken |= match is_trailed {
                    true => fields.is_malformed_trailer(),
                    false => fields.is_malformed_request(),
                };
                request.get_or_insert(fields);
            }
            frame::PUSH_PROMISE => return Err(frame_out_of_place()),
            kind => check_other_frame(kind)?,
        }
    }
    frames.check_end()?;
    let Some(fields) = request else {
        return Ok(Request::Broken(ErrorCode::REQUEST_INCOMPLETE));
    };
    let length = fields.content_length.octets;
    if is_broken || length.is_some_and(|length| length != body.octets() as u64) {
        return Ok(Request::Broken(ErrorCode::MESSAGE_ERROR));
    }
    Ok(answerable(fields, body))
}

/// How to handle a well-formed request.
fn answerable(fields: RequestFields, body: Body) -> Request {
    let octets = body.octets();
    match classify(&fields, fields.content_length, octets == 0) {
        Err(status) => Request::Refused(status),
        Ok(Method::Post) if octets > crate::doh::MESSAGE_OCTETS_MAX => Request::Refused(413),
        Ok(method @ Method::Post) => Request::Query {
            method,
            message: body.into_content(),
        },
        Ok(method @ Method::Get) => Request::Query {
            method,
            message: Content::Joined(fields.message),
        },
    }
}

/// True if the section is too long to be of use.
pub(super) fn is_too_long(decoded: Result<(), qpack::DecodeError>) -> Result<bool, Http3Error> {
    match decoded {
        Ok(()) => Ok(false),
        Err(qpack::DecodeError::TooLong) => Ok(true),
        Err(qpack::DecodeError::Failed(what)) => {
            Err(Http3Error::new(ErrorCode::QPACK_DECOMPRESSION_FAILED, what))
        }
    }
}

pub(super) fn frame_out_of_place() -> Http3Error {
    Http3Error::new(
        ErrorCode::FRAME_UNEXPECTED,
        "a frame that must not be there in a message",
    )
}
