//! One connection of a client: its streams, and what comes of them.

use crate::doq::{self, Violation};
use crate::exchange::ExchangeEnd;
use crate::http3::{self, Role, UniStep};
use crate::quic::client::Blocked;
use crate::quic::http3_streams::Http3Streams;
use crate::quic::streams::{StreamMap, write_and_finish};
use crate::quic::{By, Established, LostReason, established};
use crate::tls::{ClientSession, EarlyData};
use bytes::Bytes;
use quinn_proto::{
    ConnectionEvent, ConnectionHandle, Dir, Endpoint, Event, Side, StreamEvent, StreamId, VarInt,
};
use std::collections::VecDeque;
use std::time::Instant;

/// How many abandoned exchanges a connection keeps, to recognise late responses. The limit that
/// servers set to open streams is usually 100.
pub(super) const ABANDONED_MAX: usize = 16;

/// The result of [`Connection::next_step`], without borrows.
pub(super) enum Step {
    Established(Established),
    /// The message is in the `held` that was handed in.
    Message {
        token: u32,
    },
    Ended {
        token: u32,
        end: ExchangeEnd<'static>,
    },
    StreamsAvailable,
    GoingAway,
    Lost(LostReason),
}

/// Buffers and context of [`Connection::next_step`].
pub(super) struct Buffers<'a> {
    pub(super) held: &'a mut Bytes,
    pub(super) scratch: &'a mut Vec<u8>,
}

/// One query and its response, on their own stream.
pub(super) struct Exchange {
    pub(super) token: u32,
    pub(super) state: ExchangeState,
}

pub(super) enum ExchangeState {
    /// Sent whole; nothing of the response has come.
    Waiting,
    /// Octets that flow control has held back, or that are an incomplete response.
    Partial(Box<Partial>),
    /// The end has been reported; only FIN or a reset may follow.
    Ended,
}

#[derive(Default)]
pub(super) struct Partial {
    unsent: Vec<u8>,
    pub(super) received: Vec<u8>,
}

pub(super) struct Connection {
    pub(super) quic: quinn_proto::Connection,
    pub(super) handle: ConnectionHandle,
    pub(super) exchanges: StreamMap<Exchange>,
    /// `None` for DoQ.
    pub(super) http3: Option<Box<Http3Streams>>,
    /// A stream that is open and unused: opening one is the only way to learn from quinn-proto
    /// whether the peer allows it. Opening sends nothing.
    spare: Option<StreamId>,
    /// The peer allowed no further stream at the last attempt.
    lacks_streams: bool,
    /// Responses have come to their end since [`Connection::hurry_streams`] last did something.
    has_freed_streams: bool,
    /// Abandoned exchanges, oldest first.
    pub(super) abandoned: VecDeque<StreamId>,
    /// Steps that came about beside another one.
    pub(super) queued: VecDeque<Step>,
    /// The peer accepts no new requests.
    is_going_away: bool,
    /// Queries in the first flight with their framing, until the server has taken them.
    early: Vec<(u32, Vec<u8>)>,
    /// The client's TLS sessions, if it resumes any.
    pub(super) memory: Option<ClientSession>,
    /// The peer's violation, if that ended the connection.
    pub(super) broken: Option<&'static str>,
    /// STOP_SENDING is tolerated, over DoQ too.
    pub(super) allows_stop_sending: bool,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Handshaking,
    Established,
    /// Lost or closed: no events come any more but those queued.
    Over,
}

impl Connection {
    pub(super) fn new(
        quic: quinn_proto::Connection,
        handle: ConnectionHandle,
        is_http3: bool,
    ) -> Self {
        Connection {
            http3: is_http3.then(|| Box::new(Http3Streams::new(Role::Client))),
            is_going_away: false,
            quic,
            handle,
            exchanges: StreamMap::default(),
            spare: None,
            lacks_streams: false,
            has_freed_streams: false,
            abandoned: VecDeque::new(),
            queued: VecDeque::new(),
            early: Vec::new(),
            memory: None,
            broken: None,
            allows_stop_sending: false,
            phase: Phase::Handshaking,
        }
    }

    /// Handles a datagram, which may hold tickets for this client.
    pub(super) fn handle_event(&mut self, event: ConnectionEvent) {
        match &mut self.memory {
            None => self.quic.handle_event(event),
            Some(memory) => memory.remember(false, || self.quic.handle_event(event)),
        }
    }

    /// Passes events between the connection and its endpoint, in both directions.
    ///
    /// That it is drained is not passed on: `forget` does that, so that the handle stays ours.
    pub(super) fn settle(&mut self, endpoint: &mut Endpoint) {
        while let Some(event) = self.quic.poll_endpoint_events() {
            if event.is_drained() {
                continue;
            }
            if let Some(event) = endpoint.handle_event(self.handle, event) {
                self.quic.handle_event(event);
            }
        }
    }

    pub(super) fn exchanges_open(&self) -> usize {
        let is_open = |exchange: &&Exchange| !exchange.has_ended();
        self.exchanges.values().filter(is_open).count()
    }

    /// Sends octets without FIN.
    #[cfg(test)]
    pub(super) fn write_raw(
        &mut self,
        stream: Option<StreamId>,
        octets: &[u8],
    ) -> Option<(StreamId, usize)> {
        let stream = match stream {
            Some(stream) => stream,
            None => self.quic.streams().open(Dir::Bi)?,
        };
        let written = self.quic.send_stream(stream).write(octets);
        Some((stream, written.unwrap_or(0)))
    }

    /// Opens a stream, or finds the one that is open and unused.
    pub(super) fn open_stream(&mut self) -> Result<StreamId, Blocked> {
        match self.phase {
            Phase::Over => return Err(Blocked::Closed),
            Phase::Handshaking if !self.quic.has_0rtt() => return Err(Blocked::Handshaking),
            Phase::Handshaking | Phase::Established => {}
        }
        if self.is_going_away {
            return Err(Blocked::GoingAway);
        }
        if self.spare.is_none() {
            self.spare = self.quic.streams().open(Dir::Bi);
            self.lacks_streams = self.spare.is_none();
        }
        self.spare.ok_or(Blocked::Streams)
    }

    /// Has what has come acknowledged at once if a stream is lacking.
    ///
    /// To the peer a stream is over, and another one allowed, when the end of its response has
    /// been acknowledged, which may otherwise wait for max_ack_delay (RFC 9000, section 13.2.1).
    pub(super) fn hurry_streams(&mut self) {
        if self.lacks_streams && self.has_freed_streams && self.phase == Phase::Established {
            self.has_freed_streams = false;
            // quinn-proto has no other way to send acknowledgements before they are due.
            self.quic.ping();
        }
    }

    /// Whether the peer takes a field section that counts `octets`.
    pub(super) fn check_fields(&self, octets: usize) -> Result<(), Blocked> {
        let max = self.http3.as_ref();
        let max = max.and_then(|http3| http3.peer.field_section_octets_max());
        match max {
            Some(max) if max < octets as u64 => Err(Blocked::FieldsTooLarge),
            _ => Ok(()),
        }
    }

    /// Sends a framed query on the stream that [`Connection::open_stream`] gave.
    pub(super) fn request(&mut self, stream: StreamId, octets: &[u8], token: u32) {
        if self.phase == Phase::Handshaking {
            self.early.push((token, octets.to_vec()));
            self.ensure_control();
        }
        self.send(stream, octets, token);
    }

    fn send(&mut self, stream: StreamId, octets: &[u8], token: u32) {
        self.spare = None;
        let state = match write_and_finish(&mut self.quic, stream, octets) {
            Some([]) => ExchangeState::Waiting,
            Some(unsent) => ExchangeState::Partial(Box::new(Partial {
                unsent: unsent.to_vec(),
                received: Vec::new(),
            })),
            // A stream just opened is there; if the connection has closed meanwhile, its loss is
            // reported and ends the exchange.
            None => ExchangeState::Waiting,
        };
        let exchange = Exchange { token, state };
        self.exchanges.insert(number(stream), exchange);
    }

    /// Handles events of quinn-proto until one is of interest outside.
    pub(super) fn next_step(&mut self, now: Instant, mut buffers: Buffers<'_>) -> Option<Step> {
        *buffers.held = Bytes::new();
        loop {
            if let Some(step) = self.queued.pop_front() {
                return Some(step);
            }
            if self.phase == Phase::Over {
                return None;
            }
            let step = match self.quic.poll()? {
                Event::Connected => Some(self.on_connected()),
                Event::ConnectionLost { reason } => {
                    let was_handshaking = self.phase == Phase::Handshaking;
                    self.phase = Phase::Over;
                    Some(Step::Lost(LostReason::of(reason, was_handshaking)))
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
        self.phase = Phase::Established;
        let early = std::mem::take(&mut self.early);
        let early_data = match (early.is_empty(), self.quic.accepted_0rtt()) {
            (true, _) => EarlyData::NotSent,
            (false, true) => EarlyData::Accepted,
            (false, false) => EarlyData::Rejected,
        };
        if self.quic.has_0rtt() && !self.quic.accepted_0rtt() {
            self.on_early_data_rejected(early);
        }
        self.ensure_control();
        Step::Established(established(&self.quic, early_data))
    }

    /// quinn-proto has forgotten all streams; what was sent on them is sent again.
    fn on_early_data_rejected(&mut self, early: Vec<(u32, Vec<u8>)>) {
        self.spare = None;
        self.abandoned.clear();
        if let Some(http3) = &mut self.http3 {
            http3.forget_ours();
        }
        let open = std::mem::take(&mut self.exchanges);
        for (token, octets) in early {
            // Those that were cancelled meanwhile are not.
            if !open.values().any(|exchange| exchange.token == token) {
                continue;
            }
            match self.open_stream() {
                Ok(stream) => self.send(stream, &octets, token),
                // The server allows fewer streams than when it gave the ticket.
                Err(_) => self.queued.push_back(Step::Ended {
                    token,
                    end: ExchangeEnd::NotProcessed,
                }),
            }
        }
    }

    /// Opens the control stream of HTTP/3.
    fn ensure_control(&mut self) {
        if let Some(http3) = &mut self.http3 {
            http3.ensure_control(&mut self.quic);
        }
    }

    fn on_stream_event(
        &mut self,
        event: StreamEvent,
        now: Instant,
        buffers: &mut Buffers<'_>,
    ) -> Option<Step> {
        match event {
            StreamEvent::Readable { id } if id.dir() == Dir::Uni => self.on_uni_readable(id, now),
            StreamEvent::Readable { id } => self.on_readable(id, now, buffers),
            StreamEvent::Opened { .. } => {
                // Bidirectional streams are not allowed to the peer.
                while let Some(id) = self.quic.streams().accept(Dir::Uni) {
                    let step = self.on_uni_readable(id, now);
                    self.queued.extend(step);
                }
                None
            }
            StreamEvent::Writable { id } => {
                if let Some(http3) = &mut self.http3 {
                    http3.send_rest(&mut self.quic, id);
                }
                self.send_rest(id);
                None
            }
            StreamEvent::Stopped { id, .. } => self.on_stopped(id, now),
            StreamEvent::Available { dir: Dir::Bi } => Some(Step::StreamsAvailable),
            StreamEvent::Available { dir: Dir::Uni } => {
                self.ensure_control();
                None
            }
            StreamEvent::Finished { .. } => None,
        }
    }

    /// The peer does not want to read what we send on a stream.
    fn on_stopped(&mut self, id: StreamId, now: Instant) -> Option<Step> {
        if self.http3.is_none() && !self.allows_stop_sending {
            return self.abort(
                doq::DOQ_PROTOCOL_ERROR,
                Violation::StopSending.reason(),
                now,
            );
        }
        if id.dir() == Dir::Uni {
            let code = http3::ErrorCode::CLOSED_CRITICAL_STREAM;
            return self.abort(code.0, "STOP_SENDING for the control stream", now);
        }
        // The response may still come (RFC 9114, section 4.1); the rest of the request is not sent.
        // After FIN it means nothing (RFC 9000, section 3.5).
        let exchange = self.exchanges.get_mut(&number(id))?;
        if let ExchangeState::Partial(partial) = &mut exchange.state {
            partial.unsent.clear();
        }
        None
    }

    fn on_uni_readable(&mut self, id: StreamId, now: Instant) -> Option<Step> {
        let http3 = self.http3.as_mut()?;
        match http3.read(&mut self.quic, id) {
            Ok(UniStep::None | UniStep::Stop(_)) => None,
            Ok(UniStep::GoAway(id)) => {
                self.on_goaway(StreamId::from(VarInt::from_u64(id).unwrap_or(VarInt::MAX)));
                None
            }
            Err(error) => self.abort(error.code.0, error.what, now),
        }
    }

    /// Requests from stream `id` on are not processed (RFC 9114, section 5.2).
    fn on_goaway(&mut self, id: StreamId) {
        if !std::mem::replace(&mut self.is_going_away, true) {
            self.queued.push_back(Step::GoingAway);
        }
        let open = self.exchanges.iter();
        let mut refused: Vec<u64> = open
            .filter(|&(&stream, exchange)| stream >= number(id) && !exchange.has_ended())
            .map(|(&stream, _)| stream)
            .collect();
        refused.sort_unstable();
        for refused in refused {
            let is_wanted = !self.abandoned.contains(&stream(refused));
            let exchange = self.cancel(stream(refused));
            if let Some(exchange) = exchange.filter(|_| is_wanted) {
                self.queued.push_back(Step::Ended {
                    token: exchange.token,
                    end: ExchangeEnd::NotProcessed,
                });
            }
        }
    }

    /// Sends what flow control held back.
    fn send_rest(&mut self, id: StreamId) {
        let Some(exchange) = self.exchanges.get_mut(&number(id)) else {
            return;
        };
        let ExchangeState::Partial(partial) = &mut exchange.state else {
            return;
        };
        if partial.unsent.is_empty() {
            return;
        }
        let left = write_and_finish(&mut self.quic, id, &partial.unsent).map_or(0, <[u8]>::len);
        let sent = partial.unsent.len() - left;
        partial.unsent.drain(..sent);
    }

    /// Aborts the connection because of what the peer did.
    pub(super) fn abort(&mut self, code: u64, reason: &'static str, now: Instant) -> Option<Step> {
        self.broken = Some(reason);
        self.close(now, code, reason);
        Some(Step::Lost(LostReason::Application { code, by: By::Us }))
    }

    pub(super) fn close(&mut self, now: Instant, code: u64, reason: &'static str) {
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        self.quic
            .close(now, code, Bytes::from_static(reason.as_bytes()));
        self.phase = Phase::Over;
    }

    pub(super) fn cancel_token(&mut self, token: u32) -> bool {
        let found = self.find(token);
        if let Some(id) = found {
            self.cancel(id);
        }
        found.is_some()
    }

    pub(super) fn abandon_token(&mut self, token: u32) -> bool {
        let found = self.find(token);
        if let Some(id) = found
            && !self.abandoned.contains(&id)
        {
            self.abandoned.push_back(id);
            if self.abandoned.len() > ABANDONED_MAX
                && let Some(oldest) = self.abandoned.front().copied()
            {
                self.cancel(oldest);
            }
        }
        found.is_some()
    }

    /// The stream of an exchange that has not ended.
    fn find(&self, token: u32) -> Option<StreamId> {
        let mut open = self
            .exchanges
            .iter()
            .filter(|(_, exchange)| !exchange.has_ended());
        open.find(|(_, exchange)| exchange.token == token)
            .map(|(&number, _)| stream(number))
    }

    /// STOP_SENDING, and RESET_STREAM unless FIN has been sent (RFC 9250, section 4.3.1; RFC 9114,
    /// section 4.1.1).
    pub(super) fn cancel(&mut self, id: StreamId) -> Option<Exchange> {
        let code = VarInt::from_u32(match self.http3 {
            None => doq::DOQ_REQUEST_CANCELLED as u32,
            Some(_) => http3::ErrorCode::REQUEST_CANCELLED.0 as u32,
        });
        let exchange = self.remove(id)?;
        // Either fails only if the stream is gone already.
        let _ = self.quic.recv_stream(id).stop(code);
        if matches!(&exchange.state, ExchangeState::Partial(partial) if !partial.unsent.is_empty())
        {
            let _ = self.quic.send_stream(id).reset(code);
        }
        Some(exchange)
    }

    pub(super) fn remove(&mut self, id: StreamId) -> Option<Exchange> {
        if !self.abandoned.is_empty() {
            self.abandoned.retain(|&abandoned| abandoned != id);
        }
        self.has_freed_streams = true;
        self.exchanges.remove(&number(id))
    }
}

impl Exchange {
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.state, ExchangeState::Ended)
    }

    pub(super) fn keep_received(&mut self, received: Vec<u8>) {
        match &mut self.state {
            ExchangeState::Partial(partial) => partial.received = received,
            ExchangeState::Waiting if received.is_empty() => {}
            ExchangeState::Waiting | ExchangeState::Ended => {
                self.state = ExchangeState::Partial(Box::new(Partial {
                    received,
                    unsent: Vec::new(),
                }));
            }
        }
    }
}

/// Streams of a client are numbered apart from their ID's two bits for kind and initiator.
pub(super) fn number(id: StreamId) -> u64 {
    id.index()
}

fn stream(number: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Bi, number)
}
