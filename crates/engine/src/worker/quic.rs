//! What happens within a QUIC connection, for DoQ and DoH/3.
//!
//! One endpoint a worker holds the state of all connections; each client has a UDP socket of its
//! own. Whatever was done to a connection, [`Worker::drive_quic`] follows: it takes the events,
//! sends the datagrams and sets the timer.

use std::time::Duration;

use driver::{Close, Driver, Received, SocketError, SocketSpec};
use load::Plan;
use measure::counts::Connections;
use proto::quic::{
    Blocked, By, ClientProtocol, Clock, ConnectionKey, LostReason, QuicClient, QuicClientOptions,
    QuicEvent,
};
use proto::tls::TlsFailure;
use proto::{Instant, Transport};

use super::Worker;
use super::connections::Ended;
use super::send::render_without_id;
use crate::client::{Channel, Client, Connection, Link, Reason};

/// Datagrams of one connection that are sent in one batch; the next batch follows at once.
const DATAGRAMS_MAX: usize = 16;

/// How long a connection may have nothing open and be allowed no stream, beside
/// [`STARVED_ROUND_TRIPS`]. Some servers allow each connection a number of streams and never
/// another.
const STARVED_MIN: Duration = Duration::from_millis(100);

/// Round trips in which the target may learn that all is answered, and allow more streams, even
/// if a datagram is lost.
const STARVED_ROUND_TRIPS: u32 = 4;

/// The endpoint of a worker, if the plan's transport is QUIC's.
pub(super) fn client(plan: &Plan, driver: &impl Driver) -> Option<QuicClient> {
    let epoch = driver.epoch();
    let protocol = match plan.transport {
        Transport::Doq => ClientProtocol::Doq,
        Transport::Doh3 => ClientProtocol::Http3(plan.doh.clone()?),
        _ => return None,
    };
    let mut quic = QuicClient::new(QuicClientOptions {
        protocol,
        // How long a connection stays is for the target and the plan to say.
        idle_timeout: None,
        keep_alive: None,
        seed: driver.seed(),
        clock: Clock::new(epoch),
    });
    if plan.connections.stop_sending_allowed {
        quic.allow_stop_sending();
    }
    Some(quic)
}

impl Worker {
    /// Opens a socket and sends the first flight.
    pub(super) fn attempt_quic(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let (Some(mut quic), Some(settings)) = (self.quic.take(), self.tls.clone()) else {
            return;
        };
        let peer = self.peer(index);
        let local = self.clients[index as usize].local;
        let spec = SocketSpec {
            local: local.filter(|local| local.is_ipv4() == peer.is_ipv4()),
            peer: Some(peer),
            ..SocketSpec::default()
        };
        let socket = match driver.open_udp(&spec) {
            Ok(socket) => socket,
            Err(error) => {
                self.quic = Some(quic);
                return self.attempt_failed(index, SocketError::of(&error), now);
            }
        };
        let resumes = settings.resume.decide(self.draw());
        let client = &mut self.clients[index as usize];
        let name = settings.name.to_str();
        let memory = std::mem::take(&mut client.session);
        let begun = quic.connect_remembering(now, &settings.config, &name, memory, resumes);
        let key = match begun {
            Ok(key) => key,
            Err(error) => {
                self.quic = Some(quic);
                driver.close(socket, Close::Graceful);
                let failure = TlsFailure::Protocol(error.to_string());
                self.count_tls_failure(&failure, false, now);
                return self.connection_is_down(index, now, Ended::BEFORE_USE);
            }
        };
        let early = quic.can_request(key);
        let channel = Channel::Quic {
            key,
            blocked: false,
            streams_free: if early { u32::MAX } else { 0 },
            starved_since: None,
        };
        let mut connection = Box::new(Connection::new(socket, channel, now));
        connection.early = early;
        client.link = Link::Connected(connection);
        self.quic = Some(quic);
        self.own(socket, index);
        self.arm(index, now + self.connect_timeout());
        if early {
            let counts = &mut self.tally.of_event(now).counts.connections;
            counts.early_data.tried += 1;
            self.send_waiting(driver, index);
            self.list_client(index, now);
        }
        self.drive_quic(driver, index, now);
    }

    /// Datagrams on the socket of client `index`.
    pub(super) fn handle_quic_datagrams(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        received: &Received,
    ) {
        let Some(mut quic) = self.quic.take() else {
            return;
        };
        let peer = self.peer(index);
        if let Some(key) = self.quic_key(index) {
            for datagram in &received.datagrams {
                if datagram.from == peer {
                    quic.handle_datagram(received.at, key, received.datagram(*datagram));
                } else {
                    let counts = &mut self.tally.of_event(received.at).counts;
                    counts.unexpected.wrong_source += 1;
                }
            }
        }
        self.quic = Some(quic);
        self.drive_quic(driver, index, received.at);
    }

    /// Opens a stream for each of up to `room` waiting queries; their lengths go to `outgoing`.
    pub(super) fn open_streams(
        &mut self,
        index: u32,
        room: usize,
        unix_time: Duration,
        now: Instant,
    ) {
        self.outgoing.clear();
        self.positions.clear();
        let Client { pending, link, .. } = &mut self.clients[index as usize];
        let (Link::Connected(connection), Some(quic)) = (link, &mut self.quic) else {
            return;
        };
        let Channel::Quic { key, .. } = &mut connection.channel else {
            return;
        };
        for query in pending.waiting_queries(room) {
            let message = &mut self.message;
            render_without_id(
                (&self.plan, &self.offer),
                query.question,
                unix_time,
                message,
            );
            if quic.request(now, *key, message, query.number).is_err() {
                break;
            }
            self.outgoing.push_length(message.len());
            if self.is_watched {
                self.positions.push(query.position);
            }
        }
    }

    /// Takes what a connection has to say and sends what it has to send; true if all was taken.
    pub(super) fn drive_quic(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        now: Instant,
    ) -> bool {
        let Some(key) = self.quic_key(index) else {
            return false;
        };
        let Some(mut quic) = self.quic.take() else {
            return false;
        };
        let in_flight_before = self.clients[index as usize].pending.in_flight();
        let mut lost = None;
        let mut is_usable = false;
        let mut has_served = false;
        while let Some(event) = quic.poll_event(key) {
            match event {
                QuicEvent::Established(established) => {
                    self.count_handshake(index, &established.handshake, now);
                    self.tls_negotiated = self.tls_negotiated.or(established.negotiated);
                    is_usable = true;
                }
                QuicEvent::Exchange { token, end } => {
                    has_served = true;
                    self.handle_exchange_end(index, token, end, now);
                }
                QuicEvent::StreamsAvailable => {}
                QuicEvent::GoingAway => self.retire(index, Reason::GoingAway(0)),
                QuicEvent::Lost(reason) => lost = Some(reason),
            }
        }
        let blocked = quic.blocked(key);
        self.quic = Some(quic);
        self.note_streams(index, blocked, now);
        if has_served {
            self.connection_has_served(index, now);
        }
        self.after_messages(index, in_flight_before, now);
        self.settle_unprocessed(index, blocked.is_some(), now);
        let sent = self.transmit_quic(driver, index, key, now);
        // One that was lost at once was usable for all that.
        if is_usable {
            self.connection_is_usable(driver, index, now);
        }
        if let Some(reason) = lost {
            if self.quic_key(index) == Some(key) {
                self.end_quic(driver, index, &reason, now);
            }
            return false;
        }
        if self.starved_until(index).is_some_and(|until| until <= now) {
            self.retire(index, Reason::NoStreams);
        }
        self.close_if_used_up(driver, index, now);
        self.arm_quic(index);
        sent
    }

    /// Notes whether a connection lets us open a stream, or why not.
    fn note_streams(&mut self, index: u32, blocked: Option<Blocked>, now: Instant) {
        let client = &mut self.clients[index as usize];
        let is_idle = client.pending.in_flight() == 0;
        let Some(connection) = client.connection() else {
            return;
        };
        // One that was never allowed a stream is no better when it is opened anew.
        let was_used = connection.queries_sent > 0;
        let Channel::Quic {
            streams_free,
            starved_since,
            ..
        } = &mut connection.channel
        else {
            return;
        };
        let lacks_streams = blocked == Some(Blocked::Streams);
        let had_streams = *streams_free > 0;
        *streams_free = if blocked.is_none() { u32::MAX } else { 0 };
        *starved_since = match lacks_streams && is_idle && was_used {
            true => Some(starved_since.unwrap_or(now)),
            false => None,
        };
        match (lacks_streams, had_streams) {
            (true, true) => {
                let counts = &mut self.tally.of_event(now).counts.connections;
                counts.quic_stream_limits_met += 1;
            }
            // More may have been allowed without a response that makes room.
            (false, false) if blocked.is_none() => self.has_room_again(index, now),
            _ => {}
        }
    }

    /// When a connection that is allowed no stream, though none is open, is given up.
    fn starved_until(&self, index: u32) -> Option<Instant> {
        let Link::Connected(connection) = &self.clients[index as usize].link else {
            return None;
        };
        let Channel::Quic {
            key, starved_since, ..
        } = connection.channel
        else {
            return None;
        };
        let rtt = self.quic.as_ref()?.rtt(key);
        Some(starved_since? + STARVED_MIN + rtt * STARVED_ROUND_TRIPS)
    }

    fn quic_key(&self, index: u32) -> Option<ConnectionKey> {
        match &self.clients[index as usize].link {
            Link::Connected(connection) => match connection.channel {
                Channel::Quic { key, .. } => Some(key),
                _ => None,
            },
            _ => None,
        }
    }

    /// Has the client's timer fire when the connection wants it to.
    fn arm_quic(&mut self, index: u32) {
        if let Some(at) = self.quic_due(index) {
            self.arm(index, at);
        }
    }

    /// When the connection next wants a turn, if it is a QUIC connection.
    pub(super) fn quic_due(&mut self, index: u32) -> Option<Instant> {
        let key = self.quic_key(index)?;
        let starved_until = self.starved_until(index);
        let timeout = self.quic.as_mut()?.timeout(key);
        timeout.into_iter().chain(starved_until).min()
    }

    /// Gives a connection the turn that it is due at `now`, if it is.
    pub(super) fn fire_quic(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        if self.quic_due(index).is_none_or(|due| due > now) {
            return;
        }
        let Some(key) = self.quic_key(index) else {
            return;
        };
        if let Some(quic) = &mut self.quic {
            quic.handle_timeout(now, key);
        }
        self.drive_quic(driver, index, now);
    }

    /// Sends the datagrams that wait; true if the socket took all of them.
    fn transmit_quic(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        key: ConnectionKey,
        now: Instant,
    ) -> bool {
        let Some(connection) = self.clients[index as usize].connection() else {
            return false;
        };
        let socket = connection.socket;
        if connection.is_blocked() {
            return false;
        }
        loop {
            let Some(quic) = &mut self.quic else {
                return false;
            };
            fill_burst(quic, (now, key), &mut self.outgoing);
            let datagrams = self.outgoing.datagrams.len();
            if datagrams == 0 {
                return true;
            }
            let outcome = driver.send_datagrams(socket, &self.outgoing);
            self.count_datagrams(outcome.accepted, now);
            if outcome.accepted == datagrams {
                continue;
            }
            // To the connection they are lost on the way, and are repeated.
            let dropped = (datagrams - outcome.accepted) as u64;
            let counts = &mut self.tally.of_event(now).counts.connections;
            counts.quic_datagrams_not_sent += dropped;
            if outcome.error.is_none()
                && let Some(connection) = self.clients[index as usize].connection()
                && let Channel::Quic { blocked, .. } = &mut connection.channel
            {
                *blocked = true;
            }
            return false;
        }
    }

    /// The socket of a QUIC connection takes datagrams again.
    pub(super) fn handle_quic_writable(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        now: Instant,
    ) {
        if let Some(connection) = self.clients[index as usize].connection()
            && let Channel::Quic { blocked, .. } = &mut connection.channel
        {
            *blocked = false;
        }
        self.drive_quic(driver, index, now);
        self.send_waiting(driver, index);
        self.list_client(index, now);
    }

    /// Says goodbye to the target.
    pub(super) fn close_quic(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let (Some(key), Some(quic)) = (self.quic_key(index), &mut self.quic) else {
            return;
        };
        let no_error = match self.plan.transport {
            Transport::Doh3 => H3_NO_ERROR,
            _ => DOQ_NO_ERROR,
        };
        quic.close(now, key, no_error);
        self.transmit_quic(driver, index, key, now);
    }

    /// A connection is gone, by no decision of ours.
    fn end_quic(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        reason: &LostReason,
        now: Instant,
    ) {
        let Some(connection) = self.clients[index as usize].connection() else {
            return;
        };
        let (socket, usable) = (connection.socket, connection.is_open());
        let key = self.quic_key(index);
        let broken = key.zip(self.quic.as_ref());
        let broken = broken.and_then(|(key, quic)| quic.broken_rule(key));
        match reason {
            LostReason::Tls(failure) => self.count_tls_failure(failure, usable, now),
            LostReason::Application { by: By::Us, .. } if usable => {
                let (what, rules) = broken.unwrap_or(("broken protocol", "RFC 9000"));
                self.count_violation(what, rules, now);
            }
            _ => {
                let counts = &mut self.tally.of_event(now).counts.connections;
                count_quic_end(counts, reason, usable);
            }
        }
        driver.close(socket, Close::Graceful);
        self.lose_connection(driver, index, Ended::here(usable), now);
    }
}

/// Fills `outgoing` with the next datagrams of a connection, up to [`DATAGRAMS_MAX`].
fn fill_burst(
    quic: &mut QuicClient,
    (now, key): (Instant, ConnectionKey),
    outgoing: &mut driver::Outgoing,
) {
    outgoing.clear();
    while outgoing.datagrams.len() < DATAGRAMS_MAX {
        let most = DATAGRAMS_MAX - outgoing.datagrams.len();
        let Some(burst) = quic.poll_transmit(now, key, &mut outgoing.octets, most) else {
            return;
        };
        let mut left = burst.octets;
        while left > 0 {
            let octets = left.min(burst.datagram_octets);
            outgoing.push_length(octets);
            left -= octets;
        }
    }
}

/// Counts how a connection ended, other than by TLS.
fn count_quic_end(counts: &mut Connections, reason: &LostReason, usable: bool) {
    let failed = &mut counts.failed;
    match (reason, usable) {
        (LostReason::IdleTimeout, true) => counts.quic_idle_timeouts += 1,
        (LostReason::HandshakeTimeout, true) => counts.quic_idle_timeouts += 1,
        (LostReason::IdleTimeout | LostReason::HandshakeTimeout, false) => failed.timed_out += 1,
        (LostReason::Transport { code, .. }, true) => counts.quic_transport.record(*code),
        (LostReason::Transport { code, .. }, false) => failed.quic_transport.record(*code),
        (LostReason::Application { code, by: By::Peer }, true) if is_no_error(*code) => {
            counts.closed_by_target += 1;
        }
        (LostReason::Application { code, .. }, true) => counts.quic_application.record(*code),
        (LostReason::Application { code, .. }, false) => failed.quic_application.record(*code),
        (LostReason::StatelessReset, true) => counts.reset_by_target += 1,
        (LostReason::StatelessReset, false) => failed.reset += 1,
        (LostReason::VersionNegotiation, _) => failed.quic_version += 1,
        (LostReason::ClosedByUs, true) => counts.closed_by_client += 1,
        (LostReason::ClosedByUs, false) => failed.closed += 1,
        (LostReason::Tls(_), _) => {}
    }
}

/// RFC 9250, section 8.4.
const DOQ_NO_ERROR: u64 = 0;
/// RFC 9114, section 8.1.
const H3_NO_ERROR: u64 = 0x100;

fn is_no_error(code: u64) -> bool {
    matches!(code, DOQ_NO_ERROR | H3_NO_ERROR)
}
