//! One connection of a server: queries in, responses out.

use crate::Instant;
use crate::doq::{self, StreamState, Violation};
use crate::quic::streams::{Octets, ReadTo, StreamMap, read, write_and_finish};
use crate::quic::{By, Established, LostReason, established};
use crate::tls::EarlyData;
use bytes::Bytes;
use quinn_proto::{ConnectionHandle, Dir, Endpoint, Event, Side, StreamEvent, StreamId, VarInt};
use std::collections::VecDeque;

/// What [`Connection::next_step`] found, without borrowing anything.
pub(super) enum Step {
    Established(Established),
    /// The message is in the `held` that was handed in.
    Query {
        stream: u64,
        early: bool,
    },
    Cancelled {
        stream: u64,
    },
    Lost(LostReason),
}

pub(super) struct Connection {
    pub(super) quic: quinn_proto::Connection,
    pub(super) handle: ConnectionHandle,
    /// Queries that are not complete.
    received: StreamMap<Vec<u8>>,
    /// Responses that flow control has held back in part.
    unsent: StreamMap<Vec<u8>>,
    queued: VecDeque<Step>,
    /// The client has opened streams that have not been looked at.
    has_new_streams: bool,
    /// A query came before the handshake was complete.
    had_early_data: bool,
    is_handshaking: bool,
    /// Lost or closed: no events come any more but those queued.
    is_over: bool,
    /// Nothing of it is left but the memory.
    is_drained: bool,
    /// It is among those that may have events, or something to send.
    pub(super) in_events: bool,
    pub(super) in_transmits: bool,
    /// The instant of its entry among the timers.
    pub(super) timer: Option<Instant>,
}

impl Connection {
    pub(super) fn new(quic: quinn_proto::Connection, handle: ConnectionHandle) -> Self {
        Connection {
            quic,
            handle,
            received: StreamMap::default(),
            unsent: StreamMap::default(),
            queued: VecDeque::new(),
            has_new_streams: false,
            had_early_data: false,
            is_handshaking: true,
            is_over: false,
            is_drained: false,
            in_events: false,
            in_transmits: false,
            timer: None,
        }
    }

    pub(super) fn is_drained(&self) -> bool {
        self.is_drained && self.queued.is_empty()
    }

    /// Passes on what the connection has to say to its endpoint, and the other way round.
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
    pub(super) fn next_step(&mut self, now: std::time::Instant, held: &mut Bytes) -> Option<Step> {
        *held = Bytes::new();
        loop {
            if let Some(step) = self.queued.pop_front() {
                return Some(step);
            }
            if self.is_over {
                return None;
            }
            if self.has_new_streams {
                let step = self.accept_stream(now, held);
                self.has_new_streams = step.is_some();
                if step.is_some() {
                    return step;
                }
            }
            let step = match self.quic.poll()? {
                Event::Connected => Some(self.on_connected()),
                Event::ConnectionLost { reason } => {
                    self.is_over = true;
                    Some(Step::Lost(LostReason::of(reason, self.is_handshaking)))
                }
                Event::Stream(event) => self.on_stream_event(event, now, held),
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
    fn accept_stream(&mut self, now: std::time::Instant, held: &mut Bytes) -> Option<Step> {
        while let Some(id) = self.quic.streams().accept(Dir::Bi) {
            let step = self.on_readable(id, now, held);
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
        held: &mut Bytes,
    ) -> Option<Step> {
        match event {
            StreamEvent::Readable { id } => self.on_readable(id, now, held),
            StreamEvent::Writable { id } => {
                self.send_rest(id);
                None
            }
            StreamEvent::Stopped { id, error_code } => {
                self.unsent.remove(&id.index());
                // RFC 9000, section 3.5: RESET_STREAM answers STOP_SENDING.
                let _ = self.quic.send_stream(id).reset(error_code);
                let stream = id.index();
                Some(Step::Cancelled { stream })
            }
            StreamEvent::Opened { .. } => {
                self.has_new_streams = true;
                None
            }
            StreamEvent::Available { .. } | StreamEvent::Finished { .. } => None,
        }
    }

    fn on_readable(
        &mut self,
        id: StreamId,
        now: std::time::Instant,
        held: &mut Bytes,
    ) -> Option<Step> {
        let earlier = self.received.remove(&id.index()).unwrap_or_default();
        let (octets, read_to) = read(&mut self.quic, id, earlier);
        match read_to {
            ReadTo::Gone => None,
            ReadTo::Reset(_) => {
                let stream = id.index();
                Some(Step::Cancelled { stream })
            }
            ReadTo::Open | ReadTo::Finished => {
                let finished = read_to == ReadTo::Finished;
                self.on_query_octets(id, octets, finished, now, held)
            }
        }
    }

    /// A query counts when FIN has come: only then is it known to be the only one.
    fn on_query_octets(
        &mut self,
        id: StreamId,
        octets: Octets,
        finished: bool,
        now: std::time::Instant,
        held: &mut Bytes,
    ) -> Option<Step> {
        match doq::parse_stream(octets.as_slice(), finished) {
            Ok(StreamState::Message(message)) if finished => {
                let start = octets.as_slice().len() - message.len();
                *held = octets.into_bytes().slice(start..);
                self.had_early_data |= self.is_handshaking;
                Some(Step::Query {
                    stream: id.index(),
                    early: self.is_handshaking,
                })
            }
            Ok(StreamState::Message(_) | StreamState::Incomplete) => {
                self.received.insert(id.index(), octets.into_vec());
                None
            }
            Err(violation) => self.abort(violation, now),
        }
    }

    /// Aborts the connection (RFC 9250, section 4.3.3).
    fn abort(&mut self, violation: Violation, now: std::time::Instant) -> Option<Step> {
        let code = doq::DOQ_PROTOCOL_ERROR;
        self.close(now, code, violation.reason());
        Some(Step::Lost(LostReason::Application { code, by: By::Us }))
    }

    pub(super) fn close(&mut self, now: std::time::Instant, code: u64, reason: &'static str) {
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        self.quic
            .close(now, code, Bytes::from_static(reason.as_bytes()));
        self.is_over = true;
    }

    /// Sends a framed response; false if the stream is gone.
    pub(super) fn send(&mut self, stream: u64, octets: &[u8]) -> bool {
        if self.is_over {
            return false;
        }
        match write_and_finish(&mut self.quic, client_stream(stream), octets) {
            None => false,
            Some([]) => true,
            Some(unsent) => {
                self.unsent.insert(stream, unsent.to_vec());
                true
            }
        }
    }

    fn send_rest(&mut self, id: StreamId) {
        if let Some(octets) = self.unsent.remove(&id.index()) {
            let unsent = write_and_finish(&mut self.quic, id, &octets);
            if let Some(unsent @ [_, ..]) = unsent {
                self.unsent.insert(id.index(), unsent.to_vec());
            }
        }
    }

    pub(super) fn reset(&mut self, stream: u64, code: u64) -> bool {
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        self.unsent.remove(&stream);
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
