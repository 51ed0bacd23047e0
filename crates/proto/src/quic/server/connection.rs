//! One connection of a server: queries in, responses out.

use crate::Instant;
use crate::doq::{self, MessageIds, StreamState};
use crate::http3::request::{self, Request};
use crate::http3::{Content, ErrorCode, Http3Error, Role, write_goaway};
use crate::quic::http3_streams::Http3Streams;
use crate::quic::server::ServerProtocol;
use crate::quic::server::memory::Memory;
use crate::quic::streams::{Octets, ReadTo, StreamMap, read, read_message, write_and_finish};
use crate::quic::transport::STREAM_OCTETS_MAX;
use crate::quic::{By, Established, LostReason, established};
use crate::tls::EarlyData;
use bytes::Bytes;
use quinn_proto::{ConnectionHandle, Dir, Endpoint, Event, Side, StreamEvent, StreamId, VarInt};
use std::collections::VecDeque;

/// The result of [`Connection::next_step`], without borrows.
pub(super) enum Step {
    Established(Established),
    /// The message is in the `held` that was handed in.
    Query {
        stream: u64,
        early: bool,
    },
    /// HTTP: to be refused with this status.
    Refused {
        stream: u64,
        status: u16,
    },
    /// Too much is kept of queries that are not whole; reset already.
    Excessive {
        stream: u64,
    },
    /// HTTP: malformed, and reset already.
    Malformed {
        stream: u64,
    },
    Cancelled {
        stream: u64,
    },
    Lost(LostReason),
}

/// The result of sending a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    Sent,
    /// The stream is gone.
    Gone,
    /// The client does not read what waits for it.
    Unread,
}

/// Buffers and context of [`Connection::next_step`].
pub(super) struct Buffers<'a> {
    pub(super) held: &'a mut Bytes,
    pub(super) scratch: &'a mut Vec<u8>,
    pub(super) protocol: &'a ServerProtocol,
    pub(super) message_ids: MessageIds,
    pub(super) stops_streams: bool,
}

pub(super) struct Connection {
    pub(super) quic: quinn_proto::Connection,
    pub(super) handle: ConnectionHandle,
    /// Queries that are not complete.
    pub(super) received: StreamMap<Vec<u8>>,
    /// Responses that flow control has held back in part.
    pub(super) unsent: StreamMap<Vec<u8>>,
    pub(super) memory: Memory,
    /// The client has not proved its address.
    pub(super) is_unvalidated: bool,
    /// When it was accepted, established, or last had a query.
    pub(super) progress_at: Instant,
    queued: VecDeque<Step>,
    /// `None` for DoQ.
    http3: Option<Box<Http3Streams>>,
    /// Streams of requests that the client has opened, and how many of them are processed after
    /// our GOAWAY.
    streams_seen: u64,
    goaway: Option<u64>,
    /// The client has opened streams that have not been read.
    has_new_streams: bool,
    /// A query came before the handshake was complete.
    had_early_data: bool,
    pub(super) is_handshaking: bool,
    /// Lost or closed: no events come any more but those queued.
    is_over: bool,
    /// Nothing of it is left but the memory.
    is_drained: bool,
    /// It is among those that may have events, or something to send.
    pub(super) in_events: bool,
    pub(super) in_transmits: bool,
    /// Nothing is sent for now; a held connection leaves the queue anyway.
    pub(super) is_held: bool,
    /// The instant of its entry among the timers.
    pub(super) timer: Option<Instant>,
}

impl Connection {
    pub(super) fn new(
        quic: quinn_proto::Connection,
        handle: ConnectionHandle,
        is_http3: bool,
        now: Instant,
    ) -> Self {
        Connection {
            http3: is_http3.then(|| Box::new(Http3Streams::new(Role::Server))),
            streams_seen: 0,
            goaway: None,
            quic,
            handle,
            received: StreamMap::default(),
            unsent: StreamMap::default(),
            memory: Memory::default(),
            is_unvalidated: false,
            progress_at: now,
            queued: VecDeque::new(),
            has_new_streams: false,
            had_early_data: false,
            is_handshaking: true,
            is_over: false,
            is_drained: false,
            in_events: false,
            in_transmits: false,
            is_held: false,
            timer: None,
        }
    }

    /// Allows no stream beside those that the transport parameters allow.
    pub(super) fn end_stream_credit(&mut self) {
        self.quic
            .set_max_concurrent_streams(Dir::Bi, VarInt::from_u32(0));
    }

    pub(super) fn is_drained(&self) -> bool {
        self.is_drained && self.queued.is_empty()
    }

    /// Passes events between the connection and its endpoint, in both directions.
    ///
    /// That it is drained is kept until its last event has been seen.
    pub(super) fn settle(&mut self, endpoint: &mut Endpoint) {
        while let Some(event) = self.quic.poll_endpoint_events() {
            if event.is_drained() {
                self.is_drained = true;
            } else if let Some(event) = endpoint.handle_event(self.handle, event) {
                self.quic.handle_event(event);
            }
        }
    }

    /// Handles events of quinn-proto until one is of interest outside.
    pub(super) fn next_step(
        &mut self,
        now: std::time::Instant,
        mut buffers: Buffers<'_>,
    ) -> Option<Step> {
        *buffers.held = Bytes::new();
        if let Some(http3) = &mut self.http3 {
            http3.ensure_control(&mut self.quic);
        }
        loop {
            if let Some(step) = self.queued.pop_front() {
                return Some(step);
            }
            if self.is_over {
                return None;
            }
            if self.has_new_streams {
                let step = self.accept_stream(now, &mut buffers);
                self.has_new_streams = step.is_some();
                if step.is_some() {
                    return step;
                }
            }
            let step = match self.quic.poll()? {
                Event::Connected => Some(self.on_connected()),
                Event::ConnectionLost { reason } => {
                    self.is_over = true;
                    self.forget_octets();
                    Some(Step::Lost(LostReason::of(reason, self.is_handshaking)))
                }
                Event::Stream(event) => self.on_stream_event(event, now, &mut buffers),
                Event::HandshakeDataReady | Event::DatagramReceived | Event::DatagramsUnblocked => {
                    None
                }
            };
            if step.is_some() {
                return step;
            }
        }
    }

    fn on_connected(&mut self) -> Step {
        self.is_handshaking = false;
        let early_data = if self.had_early_data {
            EarlyData::Accepted
        } else {
            EarlyData::NotSent
        };
        Step::Established(established(&self.quic, early_data))
    }

    /// Takes new streams until one of them has a whole query.
    fn accept_stream(
        &mut self,
        now: std::time::Instant,
        buffers: &mut Buffers<'_>,
    ) -> Option<Step> {
        while let Some(id) = self.quic.streams().accept(Dir::Bi) {
            self.streams_seen = self.streams_seen.max(id.index() + 1);
            let step = self.on_readable(id, now, buffers);
            if step.is_some() {
                return step;
            }
        }
        None
    }

    fn on_stream_event(
        &mut self,
        event: StreamEvent,
        now: std::time::Instant,
        buffers: &mut Buffers<'_>,
    ) -> Option<Step> {
        match event {
            StreamEvent::Readable { id } if id.dir() == Dir::Uni => self.on_uni_readable(id, now),
            StreamEvent::Readable { id } => self.on_readable(id, now, buffers),
            StreamEvent::Writable { id } => {
                if let Some(http3) = &mut self.http3 {
                    http3.send_rest(&mut self.quic, id);
                }
                self.send_rest(id);
                None
            }
            StreamEvent::Stopped { id, .. } if id.dir() == Dir::Uni => {
                let code = ErrorCode::CLOSED_CRITICAL_STREAM;
                self.abort(code.0, "STOP_SENDING for the control stream", now)
            }
            StreamEvent::Stopped { id, error_code } => {
                self.drop_unsent(id.index());
                // RFC 9000, section 3.5: RESET_STREAM answers STOP_SENDING.
                let _ = self.quic.send_stream(id).reset(error_code);
                let stream = id.index();
                Some(Step::Cancelled { stream })
            }
            StreamEvent::Opened { dir: Dir::Uni } => {
                while let Some(id) = self.quic.streams().accept(Dir::Uni) {
                    let step = self.on_uni_readable(id, now);
                    self.queued.extend(step);
                }
                None
            }
            StreamEvent::Opened { dir: Dir::Bi } => {
                self.has_new_streams = true;
                None
            }
            StreamEvent::Available { .. } | StreamEvent::Finished { .. } => None,
        }
    }

    fn on_uni_readable(&mut self, id: StreamId, now: std::time::Instant) -> Option<Step> {
        let http3 = self.http3.as_mut()?;
        let error = http3.read(&mut self.quic, id).err()?;
        self.abort(error.code.0, error.what, now)
    }

    fn on_readable(
        &mut self,
        id: StreamId,
        now: std::time::Instant,
        buffers: &mut Buffers<'_>,
    ) -> Option<Step> {
        let stream = id.index();
        if self.goaway.is_some_and(|processed| stream >= processed) {
            self.refuse(id, ErrorCode::REQUEST_REJECTED.0);
            return None;
        }
        let earlier = self.received.remove(&stream).unwrap_or_default();
        let earlier_octets = earlier.len();
        self.memory.received -= earlier.capacity();
        let (octets, read_to) = match buffers.stops_streams {
            true => read_message(&mut self.quic, id, earlier),
            false => read(&mut self.quic, id, earlier),
        };
        self.memory
            .count_read(octets.as_slice().len() - earlier_octets);
        let finished = read_to == ReadTo::Finished;
        match (read_to, buffers.protocol) {
            (ReadTo::Gone, _) => None,
            (ReadTo::Reset(_), _) => Some(Step::Cancelled { stream }),
            (_, ServerProtocol::Doq) => self.on_doq_octets(id, octets, finished, now, buffers),
            (ReadTo::Open, ServerProtocol::Http3 { .. }) => {
                self.on_http3_octets(id, octets, buffers)
            }
            (ReadTo::Finished, ServerProtocol::Http3 { path }) => {
                let parsed = request::parse(octets.as_slice(), path, buffers.scratch);
                self.on_http3_request(id, octets, parsed, now, buffers)
            }
        }
    }

    /// DoQ: a query counts when FIN has come: only then is it known to be the only one.
    fn on_doq_octets(
        &mut self,
        id: StreamId,
        octets: Octets,
        finished: bool,
        now: std::time::Instant,
        buffers: &mut Buffers<'_>,
    ) -> Option<Step> {
        match doq::parse_stream_with(octets.as_slice(), finished, buffers.message_ids) {
            Ok(StreamState::Message(message)) if finished => {
                let start = octets.as_slice().len() - message.len();
                *buffers.held = octets.into_bytes().slice(start..);
                Some(self.query(id))
            }
            Ok(StreamState::Message(message)) if buffers.stops_streams => {
                let start = octets.as_slice().len() - message.len();
                *buffers.held = octets.into_bytes().slice(start..);
                let _ = self.quic.recv_stream(id).stop(VarInt::from_u32(0));
                Some(self.query(id))
            }
            Ok(StreamState::Message(_) | StreamState::Incomplete) => {
                self.keep(id, octets, buffers.protocol)
            }
            Err(violation) => self.abort(doq::DOQ_PROTOCOL_ERROR, violation.reason(), now),
        }
    }

    /// HTTP/3: a request is read when it is whole; one that is too long is refused before.
    fn on_http3_octets(
        &mut self,
        id: StreamId,
        octets: Octets,
        buffers: &Buffers<'_>,
    ) -> Option<Step> {
        let stream = id.index();
        if octets.as_slice().len() < STREAM_OCTETS_MAX as usize {
            return self.keep(id, octets, buffers.protocol);
        }
        // RFC 9114, section 4.1: a response may come before the request is whole.
        let code = VarInt::from_u64(ErrorCode::NO_ERROR.0).unwrap_or(VarInt::MAX);
        let _ = self.quic.recv_stream(id).stop(code);
        Some(Step::Refused {
            stream,
            status: 413,
        })
    }

    fn on_http3_request(
        &mut self,
        id: StreamId,
        octets: Octets,
        parsed: Result<Request, Http3Error>,
        now: std::time::Instant,
        buffers: &mut Buffers<'_>,
    ) -> Option<Step> {
        let stream = id.index();
        match parsed {
            Ok(Request::Query { message, .. }) => {
                *buffers.held = match message {
                    Content::At(place) => octets.into_bytes().slice(place),
                    Content::Joined(message) => message.into(),
                };
                Some(self.query(id))
            }
            Ok(Request::Refused(status)) => Some(Step::Refused { stream, status }),
            Ok(Request::Broken(code)) => {
                self.refuse(id, code.0);
                Some(Step::Malformed { stream })
            }
            Err(error) => self.abort(error.code.0, error.what, now),
        }
    }

    fn query(&mut self, id: StreamId) -> Step {
        self.had_early_data |= self.is_handshaking;
        Step::Query {
            stream: id.index(),
            early: self.is_handshaking,
        }
    }

    /// Neither reads nor answers a stream.
    pub(super) fn refuse(&mut self, id: StreamId, code: u64) {
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        // Either fails only if the stream is gone already.
        let _ = self.quic.recv_stream(id).stop(code);
        let _ = self.quic.send_stream(id).reset(code);
    }

    /// Streams of queries whose answer is not acknowledged.
    pub(super) fn streams_open(&mut self) -> usize {
        let ours = self.http3.as_ref().is_some_and(|http3| http3.has_control());
        self.quic.streams().send_streams() - usize::from(ours)
    }

    /// Says that no further requests are processed (RFC 9114, section 5.2); nothing for DoQ.
    pub(super) fn go_away(&mut self) {
        if let Some(http3) = &mut self.http3 {
            self.goaway = Some(self.streams_seen);
            let mut frame = Vec::new();
            write_goaway(client_stream(self.streams_seen).into(), &mut frame);
            http3.write_control(&mut self.quic, &frame);
        }
    }

    /// Aborts the connection because of what the client did.
    fn abort(&mut self, code: u64, reason: &'static str, now: std::time::Instant) -> Option<Step> {
        self.close(now, code, reason);
        Some(Step::Lost(LostReason::Application { code, by: By::Us }))
    }

    pub(super) fn close(&mut self, now: std::time::Instant, code: u64, reason: &'static str) {
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        self.quic
            .close(now, code, Bytes::from_static(reason.as_bytes()));
        self.is_over = true;
        self.forget_octets();
    }

    /// Ends the connection without a word: there may be no client.
    pub(super) fn give_up(&mut self, reason: LostReason) {
        if !self.is_over {
            self.queued.push_back(Step::Lost(reason));
        }
        (self.is_over, self.is_drained) = (true, true);
        self.forget_octets();
    }

    /// Sends a framed response; at most `unsent_max` octets may wait for the client.
    pub(super) fn send(&mut self, stream: u64, octets: &[u8], unsent_max: usize) -> Delivery {
        if self.is_over {
            return Delivery::Gone;
        }
        self.memory.count_sent(octets.len());
        match write_and_finish(&mut self.quic, client_stream(stream), octets) {
            None => Delivery::Gone,
            Some([]) => Delivery::Sent,
            Some(unsent) if self.memory.unsent + unsent.len() > unsent_max => Delivery::Unread,
            Some(unsent) => {
                self.keep_unsent(stream, unsent.to_vec());
                Delivery::Sent
            }
        }
    }

    fn send_rest(&mut self, id: StreamId) {
        if let Some(octets) = self.drop_unsent(id.index()) {
            let unsent = write_and_finish(&mut self.quic, id, &octets);
            if let Some(unsent @ [_, ..]) = unsent {
                self.keep_unsent(id.index(), unsent.to_vec());
            }
        }
    }

    pub(super) fn reset(&mut self, stream: u64, code: u64) -> bool {
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        self.drop_unsent(stream);
        !self.is_over
            && self
                .quic
                .send_stream(client_stream(stream))
                .reset(code)
                .is_ok()
    }
}

fn client_stream(number: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Bi, number)
}
