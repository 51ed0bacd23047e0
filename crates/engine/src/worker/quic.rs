//! Events of QUIC connections.
//!
//! One endpoint a worker holds the state of all connections; each client has a UDP socket of its
//! own. After every operation on a connection, [`Worker::drive_quic`] takes its events, sends its
//! datagrams and sets its timer.

use driver::{Close, Driver, Received, SocketError, SocketSpec};
use proto::Instant;
use proto::quic::{Blocked, By, ConnectionKey, LostReason, QuicEvent};
use proto::tls::TlsFailure;

use super::Worker;
use super::disconnecting::Ended;
use super::population::client::Link;
use super::population::connection::{Channel, Connection, Reason};
use super::wire::quic::count_quic_end;

impl Worker {
    /// Opens a socket and sends the first flight.
    pub(super) fn attempt_quic(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let (Some(mut quic), Some(settings)) = (self.wire.quic.take(), self.wire.tls.clone())
        else {
            return;
        };
        let peer = self.population.peer(&self.plan, index);
        let local = self.population.clients[index as usize].local;
        let spec = SocketSpec {
            local: local.filter(|local| local.is_ipv4() == peer.is_ipv4()),
            peer: Some(peer),
            ..SocketSpec::default()
        };
        let socket = match driver.open_udp(&spec) {
            Ok(socket) => socket,
            Err(error) => {
                self.wire.quic = Some(quic);
                return self.attempt_failed(index, SocketError::of(&error), now);
            }
        };
        let resumes = settings.resume.decide(self.wire.draw());
        let client = &mut self.population.clients[index as usize];
        let name = settings.name.to_str();
        let memory = std::mem::take(&mut client.session);
        let begun = quic.connect_remembering(now, &settings.config, &name, memory, resumes);
        let key = match begun {
            Ok(key) => key,
            Err(error) => {
                self.wire.quic = Some(quic);
                driver.close(socket, Close::Graceful);
                let failure = TlsFailure::Protocol(error.to_string());
                self.ledger.count_tls_failure(&failure, false, now);
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
        connection.early.is_open = early;
        client.link = Link::Connected(connection);
        self.wire.quic = Some(quic);
        self.population.own(socket, index);
        self.population
            .arm(index, now + self.population.connect_timeout(&self.plan));
        if early {
            let counts = self.ledger.connections(now);
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
        let Some(mut quic) = self.wire.quic.take() else {
            return;
        };
        let peer = self.population.peer(&self.plan, index);
        if let Some(key) = self.population.quic_key(index) {
            for datagram in &received.datagrams {
                if datagram.from == peer {
                    quic.handle_datagram(received.at, key, received.datagram(*datagram));
                } else {
                    let counts = self.ledger.of_event(received.at);
                    counts.unexpected.wrong_source += 1;
                }
            }
        }
        self.wire.quic = Some(quic);
        self.drive_quic(driver, index, received.at);
    }

    /// Takes a connection's events and sends its datagrams; true if the socket accepted all of
    /// them.
    pub(super) fn drive_quic(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        now: Instant,
    ) -> bool {
        let Some(key) = self.population.quic_key(index) else {
            return false;
        };
        let Some(mut quic) = self.wire.quic.take() else {
            return false;
        };
        let in_flight_before = self.population.clients[index as usize].pending.in_flight();
        let mut lost = None;
        let mut is_usable = false;
        let mut has_served = false;
        while let Some(event) = quic.poll_event(key) {
            match event {
                QuicEvent::Established(established) => {
                    if let Some(connection) = self.population.connection(index) {
                        self.ledger
                            .count_handshake(connection, &established.handshake, now);
                    }
                    let tls = &mut self.ledger.tls;
                    tls.negotiated = tls.negotiated.or(established.negotiated);
                    is_usable = true;
                }
                QuicEvent::Exchange { token, end } => {
                    has_served = true;
                    self.handle_exchange_end(index, token, end, now);
                }
                QuicEvent::StreamsAvailable => {}
                QuicEvent::GoingAway => self.population.retire(index, Reason::GoingAway(0)),
                QuicEvent::Lost(reason) => lost = Some(reason),
            }
        }
        let blocked = quic.blocked(key);
        self.wire.quic = Some(quic);
        self.note_streams(index, blocked, now);
        if has_served {
            self.connection_has_served(index, now);
        }
        self.after_messages(index, in_flight_before, now);
        self.settle_unprocessed(index, blocked.is_some(), now);
        let sent = self.transmit_quic(driver, index, key, now);
        // It was usable even if it was lost at once.
        if is_usable {
            self.connection_is_usable(driver, index, now);
        }
        if let Some(reason) = lost {
            if self.population.quic_key(index) == Some(key) {
                self.end_quic(driver, index, &reason, now);
            }
            return false;
        }
        if self
            .wire
            .starved_until(&self.population.clients[index as usize])
            .is_some_and(|until| until <= now)
        {
            self.population.retire(index, Reason::NoStreams);
        }
        self.close_if_used_up(driver, index, now);
        self.arm_quic(index);
        sent
    }

    /// Notes whether a connection lets us open a stream, or why not.
    fn note_streams(&mut self, index: u32, blocked: Option<Blocked>, now: Instant) {
        let client = &mut self.population.clients[index as usize];
        let is_idle = client.pending.in_flight() == 0;
        let Some(connection) = client.connection() else {
            return;
        };
        // If it was never allowed a stream, a new one will not be either.
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
                let counts = self.ledger.connections(now);
                counts.quic_stream_limits_met += 1;
            }
            // More may have been allowed without a response that makes room.
            (false, false) if blocked.is_none() => self.has_room_again(index, now),
            _ => {}
        }
    }

    /// Sets the client's timer to the connection's deadline.
    fn arm_quic(&mut self, index: u32) {
        if let Some(at) = self.wire.quic_due(&self.population.clients[index as usize]) {
            self.population.arm(index, at);
        }
    }

    /// Handles a connection's timeout if it is due at `now`.
    pub(super) fn fire_quic(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        if self
            .wire
            .quic_due(&self.population.clients[index as usize])
            .is_none_or(|due| due > now)
        {
            return;
        }
        let Some(key) = self.population.quic_key(index) else {
            return;
        };
        if let Some(quic) = &mut self.wire.quic {
            quic.handle_timeout(now, key);
        }
        self.drive_quic(driver, index, now);
    }

    /// Sends the waiting datagrams; true if the socket accepted all of them.
    fn transmit_quic(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        key: ConnectionKey,
        now: Instant,
    ) -> bool {
        let Some(connection) = self.population.connection(index) else {
            return false;
        };
        let socket = connection.socket;
        if connection.is_blocked() {
            return false;
        }
        loop {
            let datagrams = self.wire.fill_datagrams(key, now);
            if datagrams == 0 {
                return true;
            }
            let outcome = driver.send_datagrams(socket, &self.wire.outgoing);
            self.ledger
                .count_datagrams(&self.wire.outgoing, outcome.accepted, now);
            if outcome.accepted == datagrams {
                continue;
            }
            // QUIC treats them as lost and retransmits.
            let dropped = (datagrams - outcome.accepted) as u64;
            let counts = self.ledger.connections(now);
            counts.quic_datagrams_not_sent += dropped;
            if outcome.error.is_none()
                && let Some(connection) = self.population.connection(index)
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
        if let Some(connection) = self.population.connection(index)
            && let Channel::Quic { blocked, .. } = &mut connection.channel
        {
            *blocked = false;
        }
        self.drive_quic(driver, index, now);
        self.send_waiting(driver, index);
        self.list_client(index, now);
    }

    /// Closes the connection at the target.
    pub(super) fn close_quic(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        if let Some(key) = self.population.quic_key(index) {
            self.wire.close_quic(&self.plan, key, now);
            self.transmit_quic(driver, index, key, now);
        }
    }

    /// The target or the network ended the connection.
    fn end_quic(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        reason: &LostReason,
        now: Instant,
    ) {
        let Some(connection) = self.population.connection(index) else {
            return;
        };
        let (socket, usable) = (connection.socket, connection.is_open());
        let key = self.population.quic_key(index);
        let broken = key.zip(self.wire.quic.as_ref());
        let broken = broken.and_then(|(key, quic)| quic.broken_rule(key));
        self.count_end(index, now, |ledger| match reason {
            LostReason::Tls(failure) => ledger.count_tls_failure(failure, usable, now),
            LostReason::Application { by: By::Us, .. } if usable => {
                let (what, rules) = broken.unwrap_or(("broken protocol", "RFC 9000"));
                ledger.count_violation(what, rules, now);
            }
            _ => count_quic_end(ledger.connections(now), reason, usable),
        });
        driver.close(socket, Close::Graceful);
        self.lose_connection(driver, index, Ended::here(usable), now);
    }
}
