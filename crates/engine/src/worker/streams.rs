//! Events of TCP connections: TLS, and the messages or HTTP requests in them.

use driver::{Driver, Received};
use proto::Instant;
use proto::exchange::ExchangeEnd;
use proto::tls::{ClientTls, TlsFailure};

use super::Worker;
use super::disconnecting::Ended;
use super::inputs::TlsSettings;
use super::population::client::Role;
use super::population::connection::{Channel, Reason, Stage};

/// Room that there has to be for early data, so that the first queries fit: HTTP/2's preface and
/// some requests.
const EARLY_OCTETS: usize = 1_024;

impl Worker {
    /// TCP is established; TLS begins, where there is any.
    pub(super) fn handle_connected(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let Some(connection) = self.population.connection(index) else {
            return;
        };
        connection.times.established_at = now;
        let connect_ns = now.nanos_since(connection.times.attempted_at);
        let interval = self.ledger.tally.of_event(now);
        interval.counts.connections.established += 1;
        // With Fast Open the kernel reports this before it has sent anything.
        if !self.plan.connections.tcp_fast_open {
            let times = &mut interval.distributions.connections;
            times.tcp_connect.record(connect_ns);
        }
        let is_fallback = self.population.clients[index as usize].role == Role::Fallback;
        match self.wire.tls.clone().filter(|_| !is_fallback) {
            Some(settings) => self.begin_tls(driver, index, &settings, now),
            None => self.stream_is_usable(driver, index, now),
        }
    }

    fn begin_tls(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        settings: &TlsSettings,
        now: Instant,
    ) {
        let resumes = settings.resume.decide(self.wire.draw());
        let client = &mut self.population.clients[index as usize];
        let session = std::mem::take(&mut client.session);
        let (config, name) = (settings.config.clone(), settings.name.clone());
        let mut tls = match ClientTls::remembering(config, name, session, resumes) {
            Ok(tls) => tls,
            Err(reason) => {
                return self.end_by_tls(driver, index, &TlsFailure::Protocol(reason), now);
            }
        };
        let early = tls.can_write_early(EARLY_OCTETS);
        if let Some(connection) = client.connection() {
            connection.tls = Some(Box::new(tls));
            connection.stage = Stage::Handshaking;
            connection.early.is_open = early;
        }
        if early {
            self.begin_requests(driver, index, now);
            let counts = self.ledger.connections(now);
            counts.early_data.tried += 1;
            self.send_waiting(driver, index);
            self.list_client(index, now);
        }
        self.write_own(driver, index, now);
    }

    /// Sends the preface of HTTP/2.
    fn begin_requests(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let client = &mut self.population.clients[index as usize];
        if self.wire.begin_http2(&self.plan, client) {
            self.write_plaintext(driver, index, now);
        }
    }

    /// The last handshake of a TCP connection is over.
    fn stream_is_usable(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        self.begin_requests(driver, index, now);
        if let Err(failure) = self.check_handshake(index, now) {
            return self.end_by_tls(driver, index, &failure, now);
        }
        self.connection_is_usable(driver, index, now);
        self.write_own(driver, index, now);
    }

    /// Checks the state of the TLS handshake, if the connection has TLS.
    fn check_handshake(&mut self, index: u32, now: Instant) -> Result<(), TlsFailure> {
        let Some(connection) = self.population.connection(index) else {
            return Ok(());
        };
        let Some(tls) = &connection.tls else {
            return Ok(());
        };
        let (handshake, negotiated) = (tls.handshake(), tls.negotiated());
        if let (Channel::Http2(_), Some(negotiated)) = (&connection.channel, &negotiated) {
            negotiated.require_alpn("h2")?;
        }
        self.ledger.tls.negotiated = self.ledger.tls.negotiated.or(negotiated);
        if let Some(handshake) = handshake {
            self.ledger.count_handshake(connection, &handshake, now);
        }
        Ok(())
    }

    /// Handles bytes on the stream of client `index`.
    pub(super) fn handle_bytes(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        received: &Received,
    ) {
        self.count_fast_open(driver, index, received.at);
        let Some(connection) = self.population.connection(index) else {
            return;
        };
        let Some(tls) = &mut connection.tls else {
            return self.handle_plaintext(driver, index, received.bytes(), received.at);
        };
        let mut plaintext = std::mem::take(&mut self.wire.plain_in);
        plaintext.clear();
        let was_handshaking = tls.is_handshaking();
        let outcome = tls.handle_bytes(received.bytes(), &mut plaintext);
        let is_usable = was_handshaking && !tls.is_handshaking();
        if is_usable && outcome.is_ok() {
            self.stream_is_usable(driver, index, received.at);
        }
        if !plaintext.is_empty() && self.population.has_connection(index, received.socket) {
            self.handle_plaintext(driver, index, &plaintext, received.at);
        }
        self.wire.plain_in = plaintext;
        if self.population.has_connection(index, received.socket) {
            self.write_own(driver, index, received.at);
        }
        // Each step may have ended the connection; its successor must not be mistaken for it.
        if !self.population.has_connection(index, received.socket) {
            return;
        }
        match outcome {
            Ok(progress) if progress.peer_closed => {
                self.handle_end(driver, index, None, received.at);
            }
            // A connection without queries may have received the ticket that it waits for.
            Ok(_) => self.close_if_used_up(driver, index, received.at),
            Err(failure) => self.end_by_tls(driver, index, &failure, received.at),
        }
    }

    /// Checks once a connection whether the target accepted data in its SYN.
    pub(super) fn count_fast_open(&mut self, driver: &impl Driver, index: u32, now: Instant) {
        if !self.plan.connections.tcp_fast_open {
            return;
        }
        let Some(connection) = self.population.connection(index) else {
            return;
        };
        let is_unknown = std::mem::take(&mut connection.counted.fast_open_unknown);
        if is_unknown && driver.was_fast_opened(connection.socket) {
            self.ledger.connections(now).fast_opened += 1;
        }
    }

    fn handle_plaintext(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        octets: &[u8],
        at: Instant,
    ) {
        let client = &mut self.population.clients[index as usize];
        let in_flight_before = client.pending.in_flight();
        let Some(connection) = client.connection() else {
            return;
        };
        match &mut connection.channel {
            Channel::Framed(deframer) => {
                let mut deframer = std::mem::take(deframer);
                let whose = (index, self.ledger.only_counts(&self.population, index, at));
                let is_cut = deframer
                    .handle_bytes(octets, |message| self.handle_message(whose, message, at));
                if is_cut {
                    self.ledger.connections(at).messages_cut += 1;
                }
                if let Some(connection) = self.population.connection(index) {
                    connection.channel = Channel::Framed(deframer);
                }
                self.connection_has_served(index, at);
                self.after_messages(index, in_flight_before, at);
            }
            Channel::Http2(_) => {
                if !self.handle_http2(driver, index, octets, at) {
                    return;
                }
                // The target may have allowed more streams or octets without a response.
                self.has_room_again(index, at);
            }
            Channel::Quic { .. } => return,
        }
        self.close_if_used_up(driver, index, at);
    }

    /// Records that a connection has carried a response.
    pub(super) fn connection_has_served(&mut self, index: u32, at: Instant) {
        let client = &mut self.population.clients[index as usize];
        client.failures = 0;
        let Some(connection) = client.connection() else {
            return;
        };
        connection.served = true;
        connection.times.active_at = at;
        self.ledger.open_connections.review(connection);
        if let Some(timeout) = self.plan.connections.idle_timeout {
            self.population.arm(index, at + timeout);
        }
    }

    /// HTTP/2 frames; false if they ended the connection.
    fn handle_http2(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        octets: &[u8],
        at: Instant,
    ) -> bool {
        let client = &mut self.population.clients[index as usize];
        let in_flight_before = client.pending.in_flight();
        let Some(connection) = client.connection() else {
            return false;
        };
        // Moved out, because matching its responses borrows the whole worker.
        let placeholder = Channel::Framed(proto::framing::Deframer::default());
        let socket = connection.socket;
        let Channel::Http2(mut session) = std::mem::replace(&mut connection.channel, placeholder)
        else {
            return false;
        };
        let mut own = std::mem::take(&mut self.wire.plain_out);
        own.clear();
        let mut has_served = false;
        let outcome = session.handle_bytes(octets, &mut own, |token, end: ExchangeEnd<'_>| {
            has_served = true;
            self.handle_exchange_end(index, token, end, at);
        });
        let is_going_away = session.is_going_away();
        let code = session.goaway_code().map_or(0, |code| code.0.into());
        let streams_max = session.streams_max().map(u64::from);
        self.ledger.streams_max = [self.ledger.streams_max, streams_max]
            .into_iter()
            .flatten()
            .min();
        if let Some(connection) = self.population.connection(index) {
            connection.channel = Channel::Http2(session);
        }
        if is_going_away {
            self.population.retire(index, Reason::GoingAway(code));
        }
        // Before the next step, which may end the connection and its queries in flight.
        self.after_messages(index, in_flight_before, at);
        let takes_no_more = match self.population.connection(index) {
            Some(connection) => connection.retired_for.is_some(),
            None => true,
        };
        self.settle_unprocessed(index, takes_no_more, at);
        self.wire.plain_out = own;
        if !self.wire.plain_out.is_empty() {
            let now = driver.now();
            self.write_plaintext(driver, index, now);
        }
        if !self.population.has_connection(index, socket) {
            return false;
        }
        if has_served {
            self.connection_has_served(index, at);
        }
        let Err(broken) = outcome else {
            return true;
        };
        self.ledger.count_violation(broken.what, "RFC 9113", at);
        driver.close(socket, driver::Close::Graceful);
        self.lose_connection(driver, index, Ended::here(true), at);
        false
    }

    /// Sends the TLS session's own messages: handshake flights, alerts, close_notify.
    pub(super) fn write_own(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let connection = self.population.connection(index);
        let Some(tls) = connection.and_then(|connection| connection.tls.as_mut()) else {
            return;
        };
        self.wire.cipher_out.clear();
        tls.poll_transmit(&mut self.wire.cipher_out);
        if !self.wire.cipher_out.is_empty() {
            self.write_cipher_out(driver, index, now);
        }
    }

    /// Writes `plain_out` to the client's stream, through TLS if it has it; true if the socket
    /// accepted all of it.
    pub(super) fn write_plaintext(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        now: Instant,
    ) -> bool {
        let Some(connection) = self.population.connection(index) else {
            return false;
        };
        if let Some(tls) = &mut connection.tls {
            self.wire.cipher_out.clear();
            match connection.channel {
                // Some servers read one message from a record and leave the rest of it until more
                // bytes arrive.
                Channel::Framed(_) => {
                    tls.write_messages(&mut self.wire.plain_out, &mut self.wire.cipher_out);
                }
                _ => tls.write_into(&self.wire.plain_out, &mut self.wire.cipher_out),
            }
            return self.write_cipher_out(driver, index, now);
        }
        let octets = std::mem::take(&mut self.wire.plain_out);
        let taken = self.write_octets(driver, index, &octets, now);
        self.wire.plain_out = octets;
        taken
    }

    /// Writes `cipher_out` to the client's stream; true if the socket accepted all of it.
    pub(super) fn write_cipher_out(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        now: Instant,
    ) -> bool {
        let octets = std::mem::take(&mut self.wire.cipher_out);
        let taken = self.write_octets(driver, index, &octets, now);
        self.wire.cipher_out = octets;
        taken
    }

    fn write_octets(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        octets: &[u8],
        now: Instant,
    ) -> bool {
        let Some(connection) = self.population.connection(index) else {
            return false;
        };
        if !connection.unsent.octets.is_empty() {
            connection.keep_unsent(octets, now);
            return false;
        }
        match driver.send_bytes(connection.socket, octets) {
            Ok(taken) if taken == octets.len() => {
                self.ledger.of_event(now).wire.write(taken);
                true
            }
            Ok(taken) => {
                self.ledger.of_event(now).wire.write(taken);
                connection.keep_unsent(&octets[taken..], now);
                self.population.arm(index, now + self.plan.timeout);
                false
            }
            Err(error) => {
                self.handle_end(driver, index, Some(error), now);
                false
            }
        }
    }
}
