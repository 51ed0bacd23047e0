//! One exchange as the client sees it: a response in the making (RFC 9113, section 8.1).

use super::endpoint::ReceiveWindow;
use super::fields::ResponseFields;
use crate::doh::{MESSAGE_OCTETS_MAX, MediaType};
use crate::exchange::ExchangeEnd;

/// An open stream, small; what most never need is in [`Surplus`].
#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) token: u32,
    /// The final status; 0 until it is known.
    status: u16,
    media_type: MediaType,
    /// `content-length`, if it was given.
    content_length: Option<u32>,
    body_octets: u32,
    pub(super) receive_window: ReceiveWindow,
    pub(super) surplus: Option<Box<Surplus>>,
}

/// The buffer of a stream whose message is received, or sent, in several parts.
#[derive(Debug, Default)]
pub(super) struct Surplus {
    /// The response so far.
    pub(super) body: Vec<u8>,
    /// Data that the windows have not allowed to be sent yet, and how much of it is sent.
    pub(super) unsent: Vec<u8>,
    pub(super) unsent_start: usize,
    pub(super) send_window: i64,
    /// The next one of those kept for use.
    pub(super) next: Option<Box<Surplus>>,
}

/// Where a stream is after a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// More is to come.
    GoesOn,
    /// The response is whole.
    Ended,
    /// The stream breaks the rules: reset it.
    Broken,
    /// The body has no end that we would wait for: reset it, the rest is known.
    TooLong,
}

impl Stream {
    pub(super) fn new(token: u32, receive_window: ReceiveWindow) -> Self {
        Stream {
            token,
            receive_window,
            ..Stream::default()
        }
    }

    /// True if the request is sent, nothing has come yet, and this number of octets is allowed.
    #[inline]
    pub(super) fn is_fresh(&self, octets: u32) -> bool {
        self.status == 0 && self.surplus.is_none() && self.receive_window.allows(octets)
    }

    /// True if part of the request is not sent.
    pub(super) fn has_unsent(&self) -> bool {
        self.surplus
            .as_ref()
            .is_some_and(|surplus| !surplus.unsent.is_empty())
    }

    /// Takes a field section: of an interim response, of the response, or trailers.
    pub(super) fn handle_fields(&mut self, fields: &ResponseFields, end_stream: bool) -> Step {
        if fields.is_malformed {
            return Step::Broken;
        }
        if self.status != 0 {
            let is_trailer = end_stream && fields.status == 0;
            return if is_trailer {
                Step::Ended
            } else {
                Step::Broken
            };
        }
        match fields.status {
            0 | 101 => Step::Broken,
            102..200 | 100 if end_stream => Step::Broken,
            102..200 | 100 => Step::GoesOn,
            status => {
                self.status = status;
                self.media_type = fields.media_type;
                self.content_length = fields.content_length.for_stream();
                if end_stream {
                    Step::Ended
                } else {
                    Step::GoesOn
                }
            }
        }
    }

    /// Takes `octets` of the body, not the octets themselves.
    pub(super) fn handle_data(&mut self, octets: usize, end_stream: bool) -> Step {
        if self.status == 0 {
            return Step::Broken;
        }
        // At most 65,535 and a frame.
        self.body_octets += octets as u32;
        match (self.body_octets as usize > MESSAGE_OCTETS_MAX, end_stream) {
            (true, _) if self.is_message() => Step::Broken,
            (true, false) => Step::TooLong,
            (_, true) => Step::Ended,
            (false, false) => Step::GoesOn,
        }
    }

    /// True if the body is, or will be, a message.
    pub(super) fn is_message(&self) -> bool {
        self.status == 200 && self.media_type == MediaType::DnsMessage
    }

    /// How the exchange has ended with a whole response, whose body is `body` if it is a message.
    pub(super) fn end<'a>(&self, body: &'a [u8]) -> ExchangeEnd<'a> {
        let contradicted = self
            .content_length
            .is_some_and(|octets| octets != self.body_octets);
        // These have no content whatever they say about it (RFC 9110, section 8.6).
        let has_content = !matches!(self.status, 204 | 304);
        if contradicted && has_content {
            return ExchangeEnd::Malformed;
        }
        self.end_of_part(body)
    }

    /// As [`Stream::end`] for a body that was given up.
    pub(super) fn end_of_part<'a>(&self, body: &'a [u8]) -> ExchangeEnd<'a> {
        match (self.status, self.media_type, self.body_octets) {
            (200, MediaType::DnsMessage, 0) => ExchangeEnd::Malformed,
            (200, MediaType::DnsMessage, _) => ExchangeEnd::Message(body),
            (200, other, _) => ExchangeEnd::MediaType(other),
            (status, _, _) => ExchangeEnd::HttpStatus(status),
        }
    }
}
