//! What happens within a TCP connection: TLS, and the messages or HTTP requests in it.

use driver::{Driver, Received, SocketId};
use proto::Instant;
use proto::exchange::ExchangeEnd;
use proto::http2::{Http2Client, Http2Options};
use proto::tls::{ClientTls, EarlyData, Handshake, HandshakeKind, TlsFailure};

use super::{TlsSettings, Worker};
use crate::client::{Channel, Link, Progress, Reason, Role};

/// Room that there has to be for early data, so that the first queries fit: HTTP/2's first octets
/// and some requests.
const EARLY_OCTETS: usize = 1_024;

impl Worker {
    /// TCP is established; TLS begins, where there is any.
    pub(super) fn handle_connected(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let Some(connection) = self.clients[index as usize].connection() else {
            return;
        };
        connection.established_at = now;
        let connect_ns = now.nanos_since(connection.attempted_at);
        let interval = self.tally.of_event(now);
        interval.counts.connections.established += 1;
        // With Fast Open the kernel says so before it has sent anything.
        if !self.plan.connections.tcp_fast_open {
            let times = &mut interval.distributions.connections;
            times.tcp_connect.record(connect_ns);
        }
        let is_fallback = self.clients[index as usize].role == Role::Fallback;
        match self.tls.clone().filter(|_| !is_fallback) {
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
        let resumes = settings.resume.decide(self.draw());
        let client = &mut self.clients[index as usize];
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
            connection.progress = Progress::Handshaking;
            connection.early = early;
        }
        if early {
            self.begin_requests(driver, index, now);
            let counts = &mut self.tally.of_event(now).counts.connections;
            counts.early_data.tried += 1;
            self.send_waiting(driver, index);
            self.list_client(index, now);
        }
        self.write_own(driver, index, now);
    }

    /// The next random number: of those that decide on resumption, all equally likely.
    pub(super) fn draw(&mut self) -> u64 {
        self.draws = self.draws.wrapping_add(1);
        mix(self.draws)
    }

    /// HTTP/2 begins with octets of its own. Within TLS they travel with the first request.
    fn begin_requests(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let client = &mut self.clients[index as usize];
        let is_primary = client.role == Role::Primary;
        let Some(request) = self.plan.doh.as_ref().filter(|_| is_primary) else {
            return;
        };
        let Some(connection) = client.connection() else {
            return;
        };
        if matches!(connection.channel, Channel::Http2(_)) {
            return;
        }
        self.plain_out.clear();
        let options = Http2Options::default();
        let session = Http2Client::new(request.clone(), &options, &mut self.plain_out);
        connection.channel = Channel::Http2(Box::new(session));
        match &mut connection.tls {
            Some(tls) => tls.write(&self.plain_out),
            None => drop(self.write_plaintext(driver, index, now)),
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

    /// Looks at what a TLS handshake within TCP led to, if the connection has TLS.
    fn check_handshake(&mut self, index: u32, now: Instant) -> Result<(), TlsFailure> {
        let Some(connection) = self.clients[index as usize].connection() else {
            return Ok(());
        };
        let Some(tls) = &connection.tls else {
            return Ok(());
        };
        let (handshake, negotiated) = (tls.handshake(), tls.negotiated());
        if let (Channel::Http2(_), Some(negotiated)) = (&connection.channel, &negotiated) {
            negotiated.require_alpn("h2")?;
        }
        self.tls_negotiated = self.tls_negotiated.or(negotiated);
        if let Some(handshake) = handshake {
            self.count_handshake(index, &handshake, now);
        }
        Ok(())
    }

    /// Counts a completed TLS handshake, within TCP or QUIC.
    pub(super) fn count_handshake(&mut self, index: u32, handshake: &Handshake, now: Instant) {
        let Some(connection) = self.clients[index as usize].connection() else {
            return;
        };
        let is_quic = matches!(connection.channel, Channel::Quic { .. });
        let since = connection.established_at;
        let interval = self.tally.of_event(now);
        let counts = &mut interval.counts.connections;
        counts.handshake_sent_octets += u64::from(handshake.octets_sent);
        counts.handshake_received_octets += u64::from(handshake.octets_received);
        match handshake.early_data {
            EarlyData::Accepted => counts.early_data.accepted += 1,
            EarlyData::Rejected => counts.early_data.rejected += 1,
            EarlyData::NotSent | EarlyData::Pending => {}
        }
        match handshake.kind {
            HandshakeKind::Full => counts.handshakes.full += 1,
            HandshakeKind::FullWithHelloRetryRequest => counts.handshakes.full_with_retry += 1,
            HandshakeKind::Resumed => counts.handshakes.resumed += 1,
        }
        let times = &mut interval.distributions.connections;
        let times = match (is_quic, handshake.kind) {
            (false, HandshakeKind::Resumed) => &mut times.tls_handshake_resumed,
            (false, _) => &mut times.tls_handshake,
            (true, HandshakeKind::Resumed) => &mut times.quic_handshake_resumed,
            (true, _) => &mut times.quic_handshake,
        };
        times.record(now.nanos_since(since));
    }

    /// Octets on the stream of client `index`.
    pub(super) fn handle_bytes(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        received: &Received,
    ) {
        self.count_fast_open(driver, index, received.at);
        let Some(connection) = self.clients[index as usize].connection() else {
            return;
        };
        let Some(tls) = &mut connection.tls else {
            return self.handle_plaintext(driver, index, received.bytes(), received.at);
        };
        let mut plaintext = std::mem::take(&mut self.plain_in);
        plaintext.clear();
        let was_handshaking = tls.is_handshaking();
        let outcome = tls.handle_bytes(received.bytes(), &mut plaintext);
        let is_usable = was_handshaking && !tls.is_handshaking();
        if is_usable && outcome.is_ok() {
            self.stream_is_usable(driver, index, received.at);
        }
        if !plaintext.is_empty() && self.has_connection(index, received.socket) {
            self.handle_plaintext(driver, index, &plaintext, received.at);
        }
        self.plain_in = plaintext;
        if self.has_connection(index, received.socket) {
            self.write_own(driver, index, received.at);
        }
        // Each of these may have ended the connection; the next one has no part in what follows.
        if !self.has_connection(index, received.socket) {
            return;
        }
        match outcome {
            Ok(progress) if progress.peer_closed => {
                self.handle_end(driver, index, None, received.at);
            }
            // What came may have been the ticket that a connection without queries waits for.
            Ok(_) => self.close_if_used_up(driver, index, received.at),
            Err(failure) => self.end_by_tls(driver, index, &failure, received.at),
        }
    }

    /// Asks once a connection, when there is something to know, whether the target took octets
    /// from its SYN.
    pub(super) fn count_fast_open(&mut self, driver: &impl Driver, index: u32, now: Instant) {
        if !self.plan.connections.tcp_fast_open {
            return;
        }
        let Some(connection) = self.clients[index as usize].connection() else {
            return;
        };
        let is_unknown = std::mem::take(&mut connection.fast_open_unknown);
        if is_unknown && driver.was_fast_opened(connection.socket) {
            self.tally.of_event(now).counts.connections.fast_opened += 1;
        }
    }

    pub(super) fn has_connection(&self, index: u32, socket: SocketId) -> bool {
        match &self.clients[index as usize].link {
            Link::Connected(connection) => connection.socket == socket,
            _ => false,
        }
    }

    fn handle_plaintext(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        octets: &[u8],
        at: Instant,
    ) {
        let client = &mut self.clients[index as usize];
        let in_flight_before = client.pending.in_flight();
        let Some(connection) = client.connection() else {
            return;
        };
        match &mut connection.channel {
            Channel::Framed(deframer) => {
                let mut deframer = std::mem::take(deframer);
                let whose = (index, self.only_counts(index, at));
                deframer.handle_bytes(octets, |message| self.handle_message(whose, message, at));
                if let Some(connection) = self.clients[index as usize].connection() {
                    connection.channel = Channel::Framed(deframer);
                }
                self.connection_has_served(index, at);
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
        self.after_messages(index, in_flight_before, at);
        let is_going_away = match self.clients[index as usize].connection() {
            Some(connection) => connection.retired_for.is_some(),
            None => true,
        };
        self.settle_unprocessed(index, is_going_away, at);
        self.close_if_used_up(driver, index, at);
    }

    /// Notes that something came back on a connection.
    pub(super) fn connection_has_served(&mut self, index: u32, at: Instant) {
        let client = &mut self.clients[index as usize];
        client.failures = 0;
        let Some(connection) = client.connection() else {
            return;
        };
        connection.served = true;
        connection.active_at = at;
        self.standings.review(connection);
        if let Some(timeout) = self.plan.connections.idle_timeout {
            self.arm(index, at + timeout);
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
        let Some(connection) = self.clients[index as usize].connection() else {
            return false;
        };
        // Set aside, because its responses are matched with all of the worker.
        let placeholder = Channel::Framed(proto::framing::Deframer::default());
        let socket = connection.socket;
        let Channel::Http2(mut session) = std::mem::replace(&mut connection.channel, placeholder)
        else {
            return false;
        };
        let mut own = std::mem::take(&mut self.plain_out);
        own.clear();
        let mut has_served = false;
        let outcome = session.handle_bytes(octets, &mut own, |token, end: ExchangeEnd<'_>| {
            has_served = true;
            self.handle_exchange_end(index, token, end, at);
        });
        let is_going_away = session.is_going_away();
        let code = session.goaway_code().map_or(0, |code| code.0.into());
        let streams_max = session.streams_max().map(u64::from);
        self.streams_max = [self.streams_max, streams_max].into_iter().flatten().min();
        if let Some(connection) = self.clients[index as usize].connection() {
            connection.channel = Channel::Http2(session);
        }
        if is_going_away {
            self.retire(index, Reason::GoingAway(code));
        }
        self.plain_out = own;
        if !self.plain_out.is_empty() {
            let now = driver.now();
            self.write_plaintext(driver, index, now);
        }
        if !self.has_connection(index, socket) {
            return false;
        }
        if has_served {
            self.connection_has_served(index, at);
        }
        let Err(broken) = outcome else {
            return true;
        };
        self.count_violation(broken.what, "RFC 9113", at);
        driver.close(socket, driver::Close::Graceful);
        self.lose_connection(driver, index, super::connections::Ended::here(true), at);
        false
    }

    /// Sends what the TLS session wants sent by itself: handshake flights, alerts, close_notify.
    pub(super) fn write_own(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let connection = self.clients[index as usize].connection();
        let Some(tls) = connection.and_then(|connection| connection.tls.as_mut()) else {
            return;
        };
        self.cipher_out.clear();
        tls.poll_transmit(&mut self.cipher_out);
        if !self.cipher_out.is_empty() {
            self.write_cipher_out(driver, index, now);
        }
    }
}

/// Splitmix64: numbers that are close together become numbers that look unrelated.
pub(super) fn mix(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
