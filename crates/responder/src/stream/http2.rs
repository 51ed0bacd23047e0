//! DoH over HTTP/2 (RFC 8484, RFC 9113): from requests to the respondent, and back to their
//! streams.

use std::sync::Arc;

use driver::SocketId;
use proto::Instant;
use proto::http2::{
    Continuation, ErrorCode, Http2Error, Http2Server, Http2ServerOptions, RespondError,
    ServerCounts,
};

use super::{Delivery, Framing, Phase, Scratch};
use crate::behaviour::ConnectionEnd;
use crate::counters::Counters;
use crate::delayed::{Destination, Reply};
use crate::freshness::ttl_min;
use crate::respond::{Fate, Respondent};

/// The HTTP of one connection.
pub(super) struct Connection {
    options: Arc<Http2ServerOptions>,
    /// Created with the first bytes of the client, its preface.
    server: Option<Http2Server>,
    counted: ServerCounts,
}

/// Replies to the requests of one delivery.
#[derive(Debug, Default)]
pub(super) struct Replies {
    replies: Vec<(u32, Reply, usize)>,
    /// All messages, one after the other; each reply has the end of its own.
    messages: Vec<u8>,
    /// End of each reply in the bytes to send.
    ends: Vec<usize>,
}

impl Replies {
    pub(super) fn clear(&mut self) {
        self.replies.clear();
        self.messages.clear();
        self.ends.clear();
    }

    /// The pieces in which to encrypt `responses`: a TLS record for each reply, as from servers
    /// that answer queries one by one. `dnsperf` 2.10 loses all but one response of a record.
    pub(super) fn pieces<'a>(&self, responses: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let mut start = 0;
        let ends = self.ends.iter().copied().chain([responses.len()]);
        ends.map(move |end| {
            let piece = &responses[start..end];
            start = end;
            piece
        })
    }

    fn push(&mut self, stream: u32, reply: Reply) {
        self.replies.push((stream, reply, self.messages.len()));
    }
}

impl Connection {
    pub(super) fn new(options: Arc<Http2ServerOptions>) -> Self {
        Connection {
            options,
            server: None,
            counted: ServerCounts::default(),
        }
    }

    /// True if the client's flow control holds responses back.
    pub(super) fn is_held_back(&self) -> bool {
        let server = self.server.as_ref();
        server.is_some_and(|server| server.queued_octets() > 0)
    }

    /// Appends what is sent to the request on `stream`.
    pub(super) fn reply(
        &mut self,
        stream: u64,
        (reply, message): (Reply, &[u8]),
        out: &mut Vec<u8>,
    ) -> Delivery {
        // Streams of HTTP/2 have 31 bits; the number came from there.
        let stream = stream as u32;
        let Some(server) = &mut self.server else {
            return Delivery::Gone;
        };
        let replied = match reply {
            Reply::Message => server.respond(stream, message, ttl_min(message), out),
            Reply::Mistyped => server.respond_mistyped(stream, message, out),
            Reply::Status(status) => server.respond_status(stream, status, out),
            Reply::Reset | Reply::Malformed => {
                match server.reset_stream(stream, ErrorCode::INTERNAL_ERROR, out) {
                    true => Ok(()),
                    false => Err(RespondError::Closed),
                }
            }
        };
        match replied {
            Ok(()) => Delivery::Sent,
            Err(RespondError::Closed) => Delivery::Gone,
            Err(RespondError::QueueFull) => Delivery::Unread,
        }
    }

    /// Octets that it holds.
    pub(super) fn held_octets(&self) -> usize {
        self.server.as_ref().map_or(0, Http2Server::held_octets)
    }

    /// Adds to `counters` what the server has counted since the last time.
    fn count(&mut self, counters: &mut Counters) {
        let Some(server) = &self.server else {
            return;
        };
        let (now, before) = (server.counts(), self.counted);
        counters.streams_cancelled += now.resets_received - before.resets_received;
        counters.streams_refused += now.refused - before.refused;
        counters.streams_malformed += now.malformed - before.malformed;
        self.counted = now;
    }
}

impl super::Connection {
    /// Handles HTTP/2 frames; appends bytes to send to `scratch.responses`. False if the client has
    /// violated the protocol.
    pub(super) fn handle_frames(
        &mut self,
        socket: SocketId,
        input: (&[u8], Instant),
        respondent: &mut Respondent,
        scratch: &mut Scratch,
    ) -> bool {
        if self.phase == Phase::Deaf {
            return true;
        }
        let was_open = self.phase == Phase::Open;
        let handled = self.receive(socket, input, respondent, scratch);
        let (queries_max, end) = super::Connection::end_after(respondent);
        if was_open
            && let Some(end) = end
            && self.queries == queries_max
        {
            self.phase = match end {
                ConnectionEnd::StopReading => Phase::Deaf,
                ConnectionEnd::GoAway => Phase::Silent,
                _ => Phase::Ending(end),
            };
        }
        let unsent_octets = self.unsent.len();
        let Framing::Http2(http2) = &mut self.framing else {
            return true;
        };
        let Scratch {
            replies, responses, ..
        } = scratch;
        let mut start = 0;
        let Replies {
            replies,
            messages,
            ends,
        } = replies;
        for &(stream, reply, end) in replies.iter() {
            let message = &messages[start..end];
            start = end;
            let unsent_max = respondent.config.limits.unsent_octets_max;
            let delivery = match unsent_octets + responses.len() <= unsent_max {
                true => http2.reply(u64::from(stream), (reply, message), responses),
                false => Delivery::Unread,
            };
            match delivery {
                Delivery::Sent => respondent.counters.count_reply(self.transport, reply),
                Delivery::Unread => respondent.counters.unread_dropped += 1,
                Delivery::Gone => respondent.counters.orphaned += 1,
            }
            ends.push(responses.len());
        }
        http2.count(&mut respondent.counters);
        match handled {
            Ok(Continuation::Continues) => {}
            Ok(Continuation::Drained) => self.handle_drained(),
            Err(_) => respondent.counters.http_failed += 1,
        }
        handled.is_ok()
    }

    /// The client has sent GOAWAY, or has all responses before ours.
    fn handle_drained(&mut self) {
        if self.phase == Phase::Open {
            self.handle_end_of_stream();
        }
    }

    /// Passes requests to the respondent and collects immediate replies.
    fn receive(
        &mut self,
        socket: SocketId,
        (bytes, at): (&[u8], Instant),
        respondent: &mut Respondent,
        scratch: &mut Scratch,
    ) -> Result<Continuation, Http2Error> {
        let Scratch {
            replies, responses, ..
        } = scratch;
        let Framing::Http2(http2) = &mut self.framing else {
            return Ok(Continuation::Continues);
        };
        let options = &http2.options;
        let server = http2
            .server
            .get_or_insert_with(|| Http2Server::new(options.clone(), responses));
        let (queries_max, end) = super::Connection::end_after(respondent);
        let (queries, awaiting) = (&mut self.queries, &mut self.awaiting);
        let is_open = self.phase == Phase::Open;
        let context = (at, self.transport);
        let mut last_stream = None;
        let handled = server.handle_bytes(bytes, responses, |stream, request| {
            respondent.counters.http_requests += 1;
            if !is_open || *queries == queries_max {
                respondent.counters.unanswered += 1;
                return;
            }
            let message = match request {
                Ok(query) => query.message,
                Err(status) => return replies.push(stream, Reply::Status(status)),
            };
            *queries += 1;
            if *queries == queries_max {
                last_stream = Some(stream);
            }
            let destination = Destination::Stream {
                socket,
                stream: u64::from(stream),
            };
            let ignored_before = respondent.counters.ignored;
            match respondent.handle(context, destination, message, &mut replies.messages) {
                Fate::Now(_) => replies.push(stream, Reply::Message),
                Fate::Instead(reply) => replies.push(stream, reply),
                Fate::Later(copies) => *awaiting += copies,
                // Not a query: HTTP has a status for it.
                Fate::Dropped if respondent.counters.ignored > ignored_before => {
                    replies.push(stream, Reply::Status(400));
                }
                Fate::Dropped => {}
            }
        });
        if let Some(last_stream) = last_stream
            && end == Some(ConnectionEnd::GoAway)
        {
            server.go_away_after(last_stream, ErrorCode::NO_ERROR, responses);
            respondent.counters.goaways += 1;
        }
        handled
    }
}
