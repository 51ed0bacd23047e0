//! One connection of a client, TCP, DoT or DoH/2 (RFC 7766, RFC 7858, RFC 8484): octets in, octets
//! out.
//!
//! Owns no socket: [`crate::worker`] passes in received bytes and sends those appended to
//! [`Scratch::wire`]. An idle connection holds this structure and its TLS session, but no buffer.

mod http2;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use driver::{Close, SocketId};
use proto::framing::Deframer;
use proto::http2::{ALPN, Http2ServerOptions};
use proto::tls::{HandshakeKind, ServerTls, rustls};
use proto::{Instant, Transport};

use crate::behaviour::ConnectionEnd;
use crate::config::ResponderConfig;
use crate::delayed::{Destination, Waiting};
use crate::octets::Octets;
use crate::respond::{Fate, Respondent};

/// A TLS record of no known content type (RFC 8446, section 5.1): a session that receives it
/// answers with a fatal alert.
const INVALID_RECORD: [u8; 8] = [0xff, 3, 3, 0, 3, 0, 0, 0];

/// Memory of a connection without queries, rounded up: its state here and in the driver, and its
/// TLS session with an incomplete record or handshake message.
const CONNECTION_OCTETS: usize = 1024;
const TLS_OCTETS: usize = 8 * 1024;
const TLS_HANDSHAKE_OCTETS: usize = 32 * 1024;

/// Buffers that all connections of a worker share.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Octets for the socket.
    pub(crate) wire: Vec<u8>,
    /// Decrypted data.
    received: Vec<u8>,
    /// Framed responses before TLS encrypts them.
    responses: Vec<u8>,
    /// Responses before HTTP frames them.
    replies: http2::Replies,
}

/// Settings of all connections of a worker.
pub(crate) struct Settings {
    /// In the order of [`Transport::ALL`].
    tls: [Option<Arc<rustls::ServerConfig>>; Transport::ALL.len()],
    http2: Arc<Http2ServerOptions>,
}

impl Settings {
    pub(crate) fn of(config: &ResponderConfig) -> Self {
        Settings {
            tls: config.tls_by_transport(),
            http2: Arc::new(config.http2()),
        }
    }
}

/// The result of delivering a delayed response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    Sent,
    /// The client does not read its responses.
    Unread,
    /// The client has reset the query's stream.
    Gone,
}

/// Timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expiry {
    pub(crate) idle: Duration,
    pub(crate) handshake: Duration,
}

impl Expiry {
    pub(crate) fn of(config: &ResponderConfig) -> Self {
        Expiry {
            idle: config.idle_timeout(),
            handshake: config.limits.handshake_timeout,
        }
    }
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Queries are answered.
    Open,
    /// No further query is answered; ends this way once the responses are sent.
    Ending(ConnectionEnd),
    /// Further queries are received and not answered; open until the client ends it.
    Silent,
    /// Nothing is read any more; open until it is idle for too long or fails.
    Deaf,
}

/// One connection.
pub(crate) struct Connection {
    pub(crate) transport: Transport,
    accepted_at: Instant,
    /// When octets were last received.
    pub(crate) last_active: Instant,
    /// This connection's part of the worker's account.
    pub(crate) counted: Octets,
    /// When it was accepted, or the client's last query came.
    pub(crate) progress_at: Instant,
    /// Delayed responses that will be sent here.
    pub(crate) awaiting: u32,
    /// Bytes that the blocked stream did not accept.
    pub(crate) unsent: Vec<u8>,
    /// The driver delivers nothing until reading is resumed.
    pub(crate) reading_paused: bool,
    /// Nothing is read or sent before this instant: the modelled server is busy with the
    /// connection.
    pub(crate) held_until: Option<Instant>,
    /// The modelled server has seen the handshake begin.
    handshake_begun: bool,
    phase: Phase,
    /// The closing alert of TLS is written.
    said_goodbye: bool,
    queries: u64,
    framing: Framing,
    tls: Option<Box<ServerTls>>,
}

/// How messages are delimited.
enum Framing {
    /// By a prefix with their length.
    Prefix(Deframer),
    /// By HTTP/2.
    Http2(Box<http2::Connection>),
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("transport", &self.transport)
            .field("phase", &self.phase)
            .field("queries", &self.queries)
            .finish_non_exhaustive()
    }
}

/// The result of one delivery of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// The connection stays open.
    Continues,
    /// TLS or HTTP failed: send what is in the scratch buffer (an alert, a GOAWAY) and close.
    Broken,
}

impl Connection {
    /// A connection just accepted, which begins with a handshake or not.
    ///
    /// # Errors
    /// rustls' description of why the configuration cannot be used.
    pub(crate) fn new(
        (transport, has_tls): (Transport, bool),
        settings: &Settings,
        now: Instant,
    ) -> Result<Self, String> {
        let tls = settings.tls[transport as usize].clone();
        let tls = tls.filter(|_| has_tls).map(ServerTls::new).transpose()?;
        let framing = match transport {
            Transport::Doh2 => {
                let http2 = http2::Connection::new(settings.http2.clone());
                Framing::Http2(Box::new(http2))
            }
            _ => Framing::Prefix(Deframer::default()),
        };
        Ok(Connection {
            transport,
            accepted_at: now,
            last_active: now,
            counted: Octets::default(),
            progress_at: now,
            awaiting: 0,
            unsent: Vec::new(),
            reading_paused: false,
            held_until: None,
            handshake_begun: false,
            phase: Phase::Open,
            said_goodbye: false,
            queries: 0,
            framing,
            tls: tls.map(Box::new),
        })
    }

    /// True until the TLS handshake is over.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Memory of the connection, in bytes, rounded up.
    pub(crate) fn held(&self) -> Octets {
        let tls = match &self.tls {
            None => 0,
            Some(tls) if tls.is_handshaking() => TLS_HANDSHAKE_OCTETS,
            Some(_) => TLS_OCTETS,
        };
        let framing = match &self.framing {
            Framing::Prefix(deframer) => deframer.partial_octets(),
            Framing::Http2(http2) => http2.held_octets(),
        };
        Octets {
            idle: CONNECTION_OCTETS + tls,
            pending: framing + self.unsent.capacity(),
        }
    }

    /// When the connection times out, and whether that is because of its handshake.
    pub(crate) fn expires_at(&self, now: Instant, limits: Expiry) -> (Instant, bool) {
        // A client that waits for us is not idle.
        if self.awaiting > 0 || self.held_until.is_some() {
            return (now + limits.idle, false);
        }
        let idle_at = self.last_active + limits.idle;
        match self.accepted_at + limits.handshake {
            late_at if self.is_handshaking() && late_at < idle_at => (late_at, true),
            _ => (idle_at, false),
        }
    }

    /// Handles bytes from the client; appends bytes to send to `scratch.wire`.
    pub(crate) fn handle_bytes(
        &mut self,
        socket: SocketId,
        (bytes, at): (&[u8], Instant),
        respondent: &mut Respondent,
        scratch: &mut Scratch,
    ) -> Continuation {
        self.last_active = at;
        let queries_before = self.queries;
        let mut received = std::mem::take(&mut scratch.received);
        let mut peer_closed = false;
        let mut plaintext = bytes;
        let mut failed = false;
        received.clear();
        scratch.responses.clear();
        scratch.replies.clear();
        if let Some(tls) = &mut self.tls {
            let was_handshaking = tls.is_handshaking();
            match tls.handle_bytes(bytes, &mut received) {
                Ok(progress) => peer_closed = progress.peer_closed,
                Err(_) => failed = true,
            }
            let counters = &mut respondent.counters;
            let completed = was_handshaking && !tls.is_handshaking();
            let resumed = completed && tls.handshake_kind() == Some(HandshakeKind::Resumed);
            counters.handshakes_completed += u64::from(completed);
            counters.handshakes_resumed += u64::from(resumed);
            failed |= completed && !has_agreed(self.transport, tls);
            counters.tls_failed += u64::from(failed && !tls.is_handshaking());
            if let Some(service) = &mut respondent.service
                && !self.handshake_begun
                && let Some(kind) = tls.handshake_begun()
            {
                self.handshake_begun = true;
                let done_at = service.handshake(at, kind);
                self.held_until = (done_at > at).then_some(done_at);
            }
            plaintext = &received;
        }
        match &self.framing {
            Framing::Prefix(_) => {
                let responses = &mut scratch.responses;
                self.handle_stream(socket, (plaintext, at), respondent, responses);
            }
            Framing::Http2(_) if self.is_handshaking() && plaintext.is_empty() => {}
            Framing::Http2(_) => {
                failed |= !self.handle_frames(socket, (plaintext, at), respondent, scratch);
            }
        }
        scratch.received = received;
        if peer_closed {
            self.handle_end_of_stream();
        }
        if self.queries > queries_before {
            self.progress_at = at;
        }
        self.write(scratch);
        match failed {
            true => Continuation::Broken,
            false => Continuation::Continues,
        }
    }

    /// The number of queries to answer, and how the connection ends then.
    fn end_after(respondent: &Respondent) -> (u64, Option<ConnectionEnd>) {
        match respondent.config.behaviour.end_after {
            Some((queries, end)) => (queries, Some(end)),
            None => (u64::MAX, None),
        }
    }

    /// Answers the queries in `bytes`; framed responses are appended to `responses`.
    fn handle_stream(
        &mut self,
        socket: SocketId,
        (bytes, at): (&[u8], Instant),
        respondent: &mut Respondent,
        responses: &mut Vec<u8>,
    ) {
        if self.phase != Phase::Open {
            return;
        }
        let (queries_max, end) = Connection::end_after(respondent);
        let exchange = Exchange {
            socket,
            at,
            transport: self.transport,
            unsent_octets: self.unsent.len(),
        };
        let Connection {
            queries, awaiting, ..
        } = self;
        let Framing::Prefix(deframer) = &mut self.framing else {
            return;
        };
        deframer.handle_bytes(bytes, |message| {
            if *queries == queries_max {
                respondent.counters.unanswered += 1;
                return;
            }
            *queries += 1;
            *awaiting += exchange.answer(message, respondent, responses);
        });
        if let Some(end) = end
            && self.queries == queries_max
        {
            self.phase = match end {
                ConnectionEnd::StopReading => Phase::Deaf,
                _ => Phase::Ending(end),
            };
        }
    }

    /// Appends a delayed response, or its replacement.
    pub(crate) fn write_delayed(
        &mut self,
        waiting: &Waiting,
        unsent_max: usize,
        scratch: &mut Scratch,
    ) -> Delivery {
        self.awaiting -= 1;
        if self.unsent.len() + scratch.wire.len() > unsent_max {
            return Delivery::Unread;
        }
        scratch.responses.clear();
        let delivery = match (&mut self.framing, waiting.destination) {
            (Framing::Http2(http2), Destination::Stream { stream, .. }) => {
                let reply = (waiting.reply, &*waiting.message);
                http2.reply(stream, reply, &mut scratch.responses)
            }
            _ => {
                scratch.responses.extend_from_slice(&[0, 0]);
                scratch.responses.extend_from_slice(&waiting.message);
                frame(&mut scratch.responses, 0, 1);
                Delivery::Sent
            }
        };
        scratch.replies.clear();
        self.write(scratch);
        delivery
    }

    /// Appends framed responses to the output, encrypted if there is TLS, and TLS' own messages.
    fn write(&mut self, scratch: &mut Scratch) {
        let Scratch {
            responses,
            replies,
            wire,
            ..
        } = scratch;
        let Some(tls) = &mut self.tls else {
            wire.extend_from_slice(responses);
            return;
        };
        for piece in replies.pieces(responses) {
            if !piece.is_empty() {
                tls.write_into(piece, wire);
            }
        }
        tls.poll_transmit(wire);
    }

    /// True if reading should pause: by state, or because the client does not read its responses.
    pub(crate) fn wants_pause(&self, unsent_octets_max: usize) -> bool {
        let is_held = self.held_until.is_some();
        is_held || self.phase == Phase::Deaf || self.unsent.len() > unsent_octets_max / 2
    }

    /// The client sends nothing more: closes once the responses are sent.
    pub(crate) fn handle_end_of_stream(&mut self) {
        if matches!(self.phase, Phase::Open | Phase::Silent | Phase::Deaf) {
            self.phase = Phase::Ending(ConnectionEnd::Close);
        }
    }

    /// True if the connection ends and all responses are written.
    pub(crate) fn is_answered(&self) -> bool {
        matches!(self.phase, Phase::Ending(_)) && self.awaiting == 0 && !self.is_held_back()
    }

    /// True if the client's flow control holds responses back.
    fn is_held_back(&self) -> bool {
        match &self.framing {
            Framing::Prefix(_) => false,
            Framing::Http2(http2) => http2.is_held_back(),
        }
    }

    /// Appends the closing alert (close_notify or fatal) to `wire`, once.
    pub(crate) fn say_goodbye(&mut self, wire: &mut Vec<u8>) {
        let Phase::Ending(end) = self.phase else {
            return;
        };
        if self.said_goodbye {
            return;
        }
        self.said_goodbye = true;
        let Some(tls) = &mut self.tls else {
            return;
        };
        match end {
            ConnectionEnd::Reset => {}
            ConnectionEnd::TlsAlert => {
                // The session is meant to fail; its alert is transmitted below.
                let _ = tls.handle_bytes(&INVALID_RECORD, &mut Vec::new());
            }
            ConnectionEnd::HalfClose => {
                tls.close();
                self.phase = Phase::Silent;
            }
            ConnectionEnd::Close
            | ConnectionEnd::StopReading
            | ConnectionEnd::GoAway
            | ConnectionEnd::Error(_) => tls.close(),
        }
        tls.poll_transmit(wire);
    }

    /// True, once, if this is the moment to half-close a TCP stream; from now on queries on it are
    /// received and not answered. Over TLS the close_notify was the half-close.
    pub(crate) fn half_closes_now(&mut self) -> bool {
        let wanted = self.phase == Phase::Ending(ConnectionEnd::HalfClose);
        let answered = self.awaiting == 0 && !self.is_held_back();
        let now = wanted && self.tls.is_none() && answered && self.unsent.is_empty();
        if now {
            self.phase = Phase::Silent;
        }
        now
    }

    /// How to close now, if everything is sent.
    pub(crate) fn ready_to_close(&self) -> Option<Close> {
        let Phase::Ending(end) = self.phase else {
            return None;
        };
        if self.awaiting > 0 || self.is_held_back() || !self.unsent.is_empty() {
            return None;
        }
        match end {
            ConnectionEnd::Reset => Some(Close::Reset),
            _ => Some(Close::Graceful),
        }
    }
}

/// False if a DoH/2 client has not offered HTTP/2 (RFC 9113, section 3.2); one that offered only
/// others has failed already.
fn has_agreed(transport: Transport, tls: &ServerTls) -> bool {
    let negotiated = tls.negotiated().and_then(|negotiated| negotiated.alpn);
    transport != Transport::Doh2 || negotiated.is_some_and(|alpn| alpn.as_bytes() == ALPN)
}

/// Context shared by the queries of one delivery.
struct Exchange {
    socket: SocketId,
    at: Instant,
    transport: Transport,
    unsent_octets: usize,
}

impl Exchange {
    /// Appends the framed response to `message`, or returns how many copies of it will follow.
    fn answer(&self, message: &[u8], respondent: &mut Respondent, responses: &mut Vec<u8>) -> u32 {
        let start = responses.len();
        responses.extend_from_slice(&[0, 0]);
        let destination = Destination::Stream {
            socket: self.socket,
            stream: 0,
        };
        let context = (self.at, self.transport);
        let fate = respondent.handle(context, destination, message, responses);
        let unsent_max = respondent.config.limits.unsent_octets_max;
        match fate {
            Fate::Now(copies) if self.unsent_octets + start <= unsent_max => {
                frame(responses, start, copies);
                respondent
                    .counters
                    .responses
                    .add(self.transport, u64::from(copies));
                return 0;
            }
            Fate::Now(copies) => respondent.counters.unread_dropped += u64::from(copies),
            // Only HTTP has a stream for each query.
            Fate::Later(_) | Fate::Dropped | Fate::Instead(_) => {}
        }
        responses.truncate(start);
        match fate {
            Fate::Later(copies) => copies,
            Fate::Now(_) | Fate::Dropped | Fate::Instead(_) => 0,
        }
    }
}

/// Sets the length prefix of the message that ends `responses` and starts, prefix included, at
/// `start`; repeats it until there are `copies`.
fn frame(responses: &mut Vec<u8>, start: usize, copies: u32) {
    // At most 65,535 octets: `answer` truncates and `pad` stops there.
    let length = (responses.len() - start - 2) as u16;
    responses[start..start + 2].copy_from_slice(&length.to_be_bytes());
    let end = responses.len();
    for _ in 1..copies {
        responses.extend_from_within(start..end);
    }
}
