//! Responses on the streams of queries, in DoQ and in HTTP/3.

use super::connection::{Buffers, Connection, ExchangeState, Step, number};
use crate::doq::{self, StreamState, Violation};
use crate::exchange::ExchangeEnd;
use crate::http3::response::{self, Response};
use crate::http3::{Content, ErrorCode, Http3Error};
use crate::quic::streams::{Octets, ReadTo, read};
use crate::quic::transport::STREAM_OCTETS_MAX;
use quinn_proto::StreamId;
use std::time::Instant;

/// How an exchange ended; a message is in the buffer for it.
enum End {
    Message,
    Other(ExchangeEnd<'static>),
}

impl Connection {
    pub(super) fn on_readable(
        &mut self,
        id: StreamId,
        now: Instant,
        buffers: &mut Buffers<'_>,
    ) -> Option<Step> {
        let exchange = self.exchanges.get_mut(&number(id))?;
        let earlier = match &mut exchange.state {
            ExchangeState::Partial(partial) => std::mem::take(&mut partial.received),
            ExchangeState::Waiting | ExchangeState::Ended => Vec::new(),
        };
        let has_ended = exchange.has_ended();
        let (octets, read_to) = read(&mut self.quic, id, earlier);
        let finished = read_to == ReadTo::Finished;
        match read_to {
            ReadTo::Gone => None,
            ReadTo::Reset(_) if has_ended => {
                self.remove(id);
                None
            }
            ReadTo::Reset(code) => {
                let end = self.end_of_reset(code);
                self.end(id, End::Other(end), true)
            }
            ReadTo::Open | ReadTo::Finished if has_ended => {
                if finished {
                    self.remove(id);
                }
                if octets.as_slice().is_empty() {
                    return None;
                }
                let reason = Violation::MoreThanOneMessage.reason();
                self.abort(doq::DOQ_PROTOCOL_ERROR, reason, now)
            }
            ReadTo::Open | ReadTo::Finished if self.http3.is_none() => {
                self.on_doq_octets(id, octets, finished, now, buffers)
            }
            ReadTo::Finished => self.on_http3_stream(id, octets, now, buffers),
            ReadTo::Open => self.on_http3_octets(id, octets, now, buffers),
        }
    }

    fn end_of_reset(&self, code: u64) -> ExchangeEnd<'static> {
        match self.http3 {
            Some(_) if code == ErrorCode::REQUEST_REJECTED.0 => ExchangeEnd::NotProcessed,
            _ => ExchangeEnd::Reset(code),
        }
    }

    /// Reports how an exchange ended, unless it was abandoned. `is_gone`: nothing more can come.
    fn end(&mut self, id: StreamId, end: End, is_gone: bool) -> Option<Step> {
        let is_late = self.abandoned.contains(&id);
        let exchange = self.exchanges.get_mut(&number(id))?;
        let token = exchange.token;
        exchange.state = ExchangeState::Ended;
        if is_gone {
            self.remove(id);
        }
        match end {
            End::Message if is_late => Some(Step::Ended {
                token,
                end: ExchangeEnd::Late,
            }),
            End::Message => Some(Step::Message { token }),
            End::Other(_) if is_late => None,
            End::Other(end) => Some(Step::Ended { token, end }),
        }
    }

    /// The exchange is malformed, and with it the connection is over.
    fn end_with_connection(
        &mut self,
        id: StreamId,
        code: u64,
        reason: &'static str,
        now: Instant,
    ) -> Option<Step> {
        let ended = self.end(id, End::Other(ExchangeEnd::Malformed), true);
        self.queued.extend(ended);
        let lost = self.abort(code, reason, now);
        self.queued.extend(lost);
        self.queued.pop_front()
    }

    /// DoQ: a message counts when it is whole, whether FIN comes with it or later.
    fn on_doq_octets(
        &mut self,
        id: StreamId,
        octets: Octets,
        finished: bool,
        now: Instant,
        buffers: &mut Buffers<'_>,
    ) -> Option<Step> {
        match doq::parse_stream(octets.as_slice(), finished) {
            Ok(StreamState::Incomplete) => {
                let exchange = self.exchanges.get_mut(&number(id))?;
                exchange.keep_received(octets.into_vec());
                None
            }
            Ok(StreamState::Message(message)) => {
                let start = octets.as_slice().len() - message.len();
                *buffers.held = octets.into_bytes().slice(start..);
                self.end(id, End::Message, finished)
            }
            Err(violation) => {
                let code = doq::DOQ_PROTOCOL_ERROR;
                self.end_with_connection(id, code, violation.reason(), now)
            }
        }
    }

    /// HTTP/3: a response is read when it is whole; one that is too long is given up.
    fn on_http3_octets(
        &mut self,
        id: StreamId,
        octets: Octets,
        now: Instant,
        buffers: &mut Buffers<'_>,
    ) -> Option<Step> {
        if octets.as_slice().len() < STREAM_OCTETS_MAX as usize {
            let exchange = self.exchanges.get_mut(&number(id))?;
            exchange.keep_received(octets.into_vec());
            return None;
        }
        let parsed = response::parse_start(octets.as_slice(), buffers.scratch);
        let step = self.on_http3_response(id, octets, parsed, now, buffers);
        self.cancel(id);
        step
    }

    fn on_http3_stream(
        &mut self,
        id: StreamId,
        octets: Octets,
        now: Instant,
        buffers: &mut Buffers<'_>,
    ) -> Option<Step> {
        let parsed = response::parse(octets.as_slice(), buffers.scratch);
        let step = self.on_http3_response(id, octets, parsed, now, buffers);
        self.remove(id);
        step
    }

    fn on_http3_response(
        &mut self,
        id: StreamId,
        octets: Octets,
        parsed: Result<Response, Http3Error>,
        now: Instant,
        buffers: &mut Buffers<'_>,
    ) -> Option<Step> {
        let end = match parsed {
            Ok(Response::Message(Content::At(place))) => {
                *buffers.held = octets.into_bytes().slice(place);
                End::Message
            }
            Ok(Response::Message(Content::Joined(message))) => {
                *buffers.held = message.into();
                End::Message
            }
            Ok(Response::Status(status)) => End::Other(ExchangeEnd::HttpStatus(status)),
            Ok(Response::MediaType(other)) => End::Other(ExchangeEnd::MediaType(other)),
            Ok(Response::Malformed) => End::Other(ExchangeEnd::Malformed),
            Err(error) => return self.end_with_connection(id, error.code.0, error.what, now),
        };
        self.end(id, end, false)
    }
}
