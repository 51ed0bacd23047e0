//! One connection of a client: its streams, and what comes of them.

use crate::doq::{self, StreamState, Violation};
use crate::exchange::ExchangeEnd;
use crate::quic::client::Blocked;
use crate::quic::streams::{Octets, ReadTo, StreamMap, read, write_and_finish};
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

/// What [`Connection::next_step`] found, without borrowing anything.
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
    Lost(LostReason),
}

/// One query and its response, on a stream of their own.
struct Exchange {
    token: u32,
    progress: Progress,
}

enum Progress {
    /// Sent whole; nothing of the response has come.
    Waiting,
    /// Octets that flow control has held back, or that are an incomplete response.
    Partial(Box<Partial>),
    /// The end has been reported; only FIN or a reset may follow.
    Ended,
}

#[derive(Default)]
struct Partial {
    unsent: Vec<u8>,
    received: Vec<u8>,
}

pub(super) struct Connection {
    pub(super) quic: quinn_proto::Connection,
    pub(super) handle: ConnectionHandle,
    exchanges: StreamMap<Exchange>,
    /// A stream that is opened and not used yet: quinn-proto tells in no other way whether the
    /// peer allows one. Opening puts nothing on the wire.
    spare: Option<StreamId>,
    /// Abandoned exchanges, oldest first.
    abandoned: VecDeque<StreamId>,
    /// Steps that came about beside another one.
    queued: VecDeque<Step>,
    /// Queries in the first flight with their framing, until the server has taken them.
    early: Vec<(u32, Vec<u8>)>,
    /// What the client remembers of its sessions, if it resumes any.
    pub(super) memory: Option<ClientSession>,
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
    pub(super) fn new(quic: quinn_proto::Connection, handle: ConnectionHandle) -> Self {
        Connection {
            quic,
            handle,
            exchanges: StreamMap::default(),
            spare: None,
            abandoned: VecDeque::new(),
            queued: VecDeque::new(),
            early: Vec::new(),
            memory: None,
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

    /// Passes on what the connection has to say to its endpoint, and the other way round.
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
        let ended = |exchange: &&Exchange| !matches!(exchange.progress, Progress::Ended);
        self.exchanges.values().filter(ended).count()
    }

    /// Opens a stream, or finds the one that is open and unused.
    pub(super) fn open_stream(&mut self) -> Result<StreamId, Blocked> {
        match self.phase {
            Phase::Over => return Err(Blocked::Closed),
            Phase::Handshaking if !self.quic.has_0rtt() => return Err(Blocked::Handshaking),
            Phase::Handshaking | Phase::Established => {}
        }
        if self.spare.is_none() {
            self.spare = self.quic.streams().open(Dir::Bi);
        }
        self.spare.ok_or(Blocked::Streams)
    }

    /// Sends a framed query on the stream that [`Connection::open_stream`] gave.
    pub(super) fn request(&mut self, stream: StreamId, octets: &[u8], token: u32) {
        if self.phase == Phase::Handshaking {
            self.early.push((token, octets.to_vec()));
        }
        self.send(stream, octets, token);
    }

    fn send(&mut self, stream: StreamId, octets: &[u8], token: u32) {
        self.spare = None;
        let progress = match write_and_finish(&mut self.quic, stream, octets) {
            Some([]) => Progress::Waiting,
            Some(unsent) => Progress::Partial(Box::new(Partial {
                unsent: unsent.to_vec(),
                received: Vec::new(),
            })),
            // A stream just opened is there; if the connection has closed meanwhile, its loss is
            // reported and ends the exchange.
            None => Progress::Waiting,
        };
        let exchange = Exchange { token, progress };
        self.exchanges.insert(number(stream), exchange);
    }

    /// Handles events of quinn-proto until one is of interest outside.
    pub(super) fn next_step(&mut self, now: Instant, held: &mut Bytes) -> Option<Step> {
        *held = Bytes::new();
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
        Step::Established(established(&self.quic, early_data))
    }

    /// quinn-proto has forgotten all streams; what was sent on them is sent again.
    fn on_early_data_rejected(&mut self, early: Vec<(u32, Vec<u8>)>) {
        self.spare = None;
        self.abandoned.clear();
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

    fn on_stream_event(
        &mut self,
        event: StreamEvent,
        now: Instant,
        held: &mut Bytes,
    ) -> Option<Step> {
        match event {
            StreamEvent::Readable { id } => self.on_readable(id, now, held),
            StreamEvent::Writable { id } => {
                self.send_rest(id);
                None
            }
            StreamEvent::Stopped { .. } => self.abort(Violation::StopSending, now),
            StreamEvent::Available { dir: Dir::Bi } => Some(Step::StreamsAvailable),
            // Unidirectional streams are not allowed to the peer; acknowledged streams have
            // nothing left to do.
            StreamEvent::Available { dir: Dir::Uni }
            | StreamEvent::Opened { .. }
            | StreamEvent::Finished { .. } => None,
        }
    }

    /// Sends what flow control held back.
    fn send_rest(&mut self, id: StreamId) {
        let Some(exchange) = self.exchanges.get_mut(&number(id)) else {
            return;
        };
        let Progress::Partial(partial) = &mut exchange.progress else {
            return;
        };
        if partial.unsent.is_empty() {
            return;
        }
        let left = write_and_finish(&mut self.quic, id, &partial.unsent).map_or(0, <[u8]>::len);
        let sent = partial.unsent.len() - left;
        partial.unsent.drain(..sent);
    }

    fn on_readable(&mut self, id: StreamId, now: Instant, held: &mut Bytes) -> Option<Step> {
        let exchange = self.exchanges.get_mut(&number(id))?;
        let earlier = match &mut exchange.progress {
            Progress::Partial(partial) => std::mem::take(&mut partial.received),
            Progress::Waiting | Progress::Ended => Vec::new(),
        };
        let (octets, read_to) = read(&mut self.quic, id, earlier);
        let token = exchange.token;
        let has_ended = matches!(exchange.progress, Progress::Ended);
        match read_to {
            ReadTo::Gone => None,
            ReadTo::Reset(code) => {
                let was_wanted = !has_ended && !self.abandoned.contains(&id);
                self.remove(id);
                was_wanted.then_some(Step::Ended {
                    token,
                    end: ExchangeEnd::Reset(code),
                })
            }
            ReadTo::Open | ReadTo::Finished if has_ended => {
                if !octets.as_slice().is_empty() {
                    return self.abort(Violation::MoreThanOneMessage, now);
                }
                if read_to == ReadTo::Finished {
                    self.remove(id);
                }
                None
            }
            ReadTo::Open | ReadTo::Finished => {
                let finished = read_to == ReadTo::Finished;
                self.on_response_octets(id, octets, finished, now, held)
            }
        }
    }

    /// A message counts when it is whole, whether FIN comes with it or later.
    fn on_response_octets(
        &mut self,
        id: StreamId,
        octets: Octets,
        finished: bool,
        now: Instant,
        held: &mut Bytes,
    ) -> Option<Step> {
        let exchange = self.exchanges.get_mut(&number(id))?;
        let token = exchange.token;
        match doq::parse_stream(octets.as_slice(), finished) {
            Ok(StreamState::Incomplete) => {
                exchange.keep_received(octets.into_vec());
                None
            }
            Ok(StreamState::Message(message)) => {
                let start = octets.as_slice().len() - message.len();
                *held = octets.into_bytes().slice(start..);
                exchange.progress = Progress::Ended;
                let is_late = self.abandoned.contains(&id);
                if finished {
                    self.remove(id);
                }
                let end = ExchangeEnd::Late;
                Some(match is_late {
                    true => Step::Ended { token, end },
                    false => Step::Message { token },
                })
            }
            Err(violation) => {
                let was_wanted = !self.abandoned.contains(&id);
                self.remove(id);
                let lost = self.abort(violation, now);
                if !was_wanted {
                    return lost;
                }
                self.queued.extend(lost);
                let end = ExchangeEnd::Malformed;
                Some(Step::Ended { token, end })
            }
        }
    }

    /// Aborts the connection (RFC 9250, section 4.3.3).
    fn abort(&mut self, violation: Violation, now: Instant) -> Option<Step> {
        let code = doq::DOQ_PROTOCOL_ERROR;
        self.close(now, code, violation.reason());
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
            .filter(|(_, exchange)| !matches!(exchange.progress, Progress::Ended));
        open.find(|(_, exchange)| exchange.token == token)
            .map(|(&number, _)| stream(number))
    }

    /// RFC 9250, section 4.3.1: STOP_SENDING, and RESET_STREAM unless FIN has been sent.
    fn cancel(&mut self, id: StreamId) {
        let code = VarInt::from_u32(doq::DOQ_REQUEST_CANCELLED as u32);
        let exchange = self.remove(id);
        let unsent = exchange.is_some_and(|exchange| match exchange.progress {
            Progress::Partial(partial) => !partial.unsent.is_empty(),
            Progress::Waiting | Progress::Ended => false,
        });
        // Either fails only if the stream is gone already.
        let _ = self.quic.recv_stream(id).stop(code);
        if unsent {
            let _ = self.quic.send_stream(id).reset(code);
        }
    }

    fn remove(&mut self, id: StreamId) -> Option<Exchange> {
        if !self.abandoned.is_empty() {
            self.abandoned.retain(|&abandoned| abandoned != id);
        }
        self.exchanges.remove(&number(id))
    }
}

impl Exchange {
    fn keep_received(&mut self, received: Vec<u8>) {
        match &mut self.progress {
            Progress::Partial(partial) => partial.received = received,
            Progress::Waiting if received.is_empty() => {}
            Progress::Waiting | Progress::Ended => {
                self.progress = Progress::Partial(Box::new(Partial {
                    received,
                    unsent: Vec::new(),
                }));
            }
        }
    }
}

/// Streams of a client are numbered apart from their ID's two bits for kind and initiator.
fn number(id: StreamId) -> u64 {
    id.index()
}

fn stream(number: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Bi, number)
}
