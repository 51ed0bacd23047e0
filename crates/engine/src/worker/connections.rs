//! Connections of stream transports: set-up, TLS, end, and the next attempt.

use std::time::Duration;

use driver::{Close, Driver, Received, SocketError, SocketId, SocketSpec};
use measure::counts::ConnectionFailures;
use proto::Instant;
use proto::pending::State;
use proto::tls::{ClientTls, TlsFailure};

use super::{CONNECTING_MAX, Phase, Worker};
use crate::client::{Connection, Link, Progress, Role};

/// Pause before the next attempt after a first failure; doubles with each.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// Longest pause between attempts.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Distinct reasons of TLS failures kept for the record.
const TLS_FAILURES_MAX: usize = 8;

impl Worker {
    /// Before the run: connects the clients, a few at a time, until each has had its try.
    pub(super) fn set_up_connections(&mut self, driver: &mut impl Driver, now: Instant) {
        let all = match self.plan.transport.has_connections() {
            true => self.primaries,
            false => 0,
        };
        while self.set_up.connecting < CONNECTING_MAX && self.set_up.next_client < all {
            let client = self.set_up.next_client;
            self.set_up.next_client += 1;
            self.set_up.connecting += 1;
            self.connect(driver, client, now);
        }
        // Clients that the target keeps waiting must not keep the others waiting too.
        let stuck = now >= self.set_up.last_progress_at + self.plan.timeout;
        if self.set_up.settled >= all || stuck || self.control.is_stopped() {
            self.control.worker_is_ready(now);
            self.phase = Phase::Ready;
        }
    }

    /// Connects a client that has no connection, if the run still needs it to have one.
    pub(super) fn connect_if_needed(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let client = &self.clients[index as usize];
        let Link::Down { retry_at } = client.link else {
            return;
        };
        let wanted = client.pending.waiting() > 0
            || (client.role == Role::Primary && self.phase != Phase::Draining);
        if !wanted || self.phase == Phase::Finished {
            return;
        }
        if retry_at <= now {
            self.connect(driver, index, now);
        } else {
            self.arm(index, retry_at);
        }
    }

    fn connect(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        self.tally.of_event(now).counts.connections.attempted += 1;
        let local = self.clients[index as usize].local;
        let spec = SocketSpec {
            local,
            peer: Some(self.plan.target),
            shared_port: false,
        };
        match driver.connect_tcp(&spec) {
            Ok(socket) => {
                self.own(socket, index);
                let connection = Box::new(Connection::new(socket, now));
                self.clients[index as usize].link = Link::Stream(connection);
                self.arm(index, now + self.plan.timeout);
            }
            Err(error) => {
                let failed = &mut self.tally.of_event(now).counts.connections.failed;
                *failure_counter(failed, Some(error)) += 1;
                self.connection_is_down(index, now, false);
            }
        }
    }

    /// TCP is established; DoT begins its handshake.
    pub(super) fn handle_connected(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let Link::Stream(connection) = &mut self.clients[index as usize].link else {
            return;
        };
        connection.established_at = now;
        let connect_ns = now.nanos_since(connection.attempted_at);
        let interval = self.tally.of_event(now);
        interval.counts.connections.established += 1;
        interval.distributions.tcp_connect.record(connect_ns);
        let is_fallback = self.clients[index as usize].role == Role::Fallback;
        let Some(settings) = self.tls.as_ref().filter(|_| !is_fallback) else {
            return self.connection_is_usable(driver, index, now);
        };
        match ClientTls::new(settings.config.clone(), settings.name.clone()) {
            Ok(tls) => {
                if let Link::Stream(connection) = &mut self.clients[index as usize].link {
                    connection.tls = Some(Box::new(tls));
                    connection.progress = Progress::Handshaking;
                }
                self.write_handshake(driver, index, now);
            }
            Err(reason) => self.end_by_tls(driver, index, &TlsFailure::Protocol(reason), now),
        }
    }

    fn connection_is_usable(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let client = &mut self.clients[index as usize];
        let Link::Stream(connection) = &mut client.link else {
            return;
        };
        connection.progress = Progress::Usable;
        if let Some(tls) = &connection.tls {
            if self.tls_negotiated.is_none() {
                self.tls_negotiated = tls.negotiated();
            }
            let handshake_ns = now.nanos_since(connection.established_at);
            let interval = self.tally.of_event(now);
            interval.counts.connections.handshakes += 1;
            interval.distributions.tls_handshake.record(handshake_ns);
        }
        self.set_up.last_progress_at = now;
        self.connections_open += 1;
        self.connections_open_max = self.connections_open_max.max(self.connections_open);
        self.settle(index);
        self.send_waiting(driver, index);
        self.list_client(index);
    }

    /// Octets on the stream of client `index`.
    pub(super) fn handle_bytes(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        received: &Received,
    ) {
        let Link::Stream(connection) = &mut self.clients[index as usize].link else {
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
        if !plaintext.is_empty() {
            self.handle_plaintext(driver, index, &plaintext, received.at);
        }
        self.plain_in = plaintext;
        if self.has_connection(index, received.socket) {
            self.write_handshake(driver, index, received.at);
        }
        // Either may have ended the connection; the next one has no part in what follows.
        if !self.has_connection(index, received.socket) {
            return;
        }
        match outcome {
            Ok(progress) if progress.peer_closed => {
                self.handle_end(driver, index, None, received.at);
            }
            Ok(_) if is_usable => self.connection_is_usable(driver, index, received.at),
            Ok(_) => {}
            Err(failure) => self.end_by_tls(driver, index, &failure, received.at),
        }
    }

    fn has_connection(&self, index: u32, socket: SocketId) -> bool {
        match &self.clients[index as usize].link {
            Link::Stream(connection) => connection.socket == socket,
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
        let Link::Stream(connection) = &mut client.link else {
            return;
        };
        let mut deframer = std::mem::take(&mut connection.deframer);
        deframer.handle_bytes(octets, |message| self.handle_message(index, message, at));
        if let Link::Stream(connection) = &mut self.clients[index as usize].link {
            connection.deframer = deframer;
            self.connections_silent -= u64::from(connection.is_silent());
            connection.served = true;
        }
        self.clients[index as usize].failures = 0;
        self.after_messages(index, in_flight_before, at);
        self.close_if_used_up(driver, index, at);
    }

    /// Sends what the TLS session wants sent by itself: handshake flights, alerts.
    fn write_handshake(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let Link::Stream(connection) = &mut self.clients[index as usize].link else {
            return;
        };
        let Some(tls) = &mut connection.tls else {
            return;
        };
        self.cipher_out.clear();
        tls.poll_transmit(&mut self.cipher_out);
        if self.cipher_out.is_empty() {
            return;
        }
        if !connection.unsent.is_empty() {
            connection.keep_unsent(&self.cipher_out, now);
            return;
        }
        match driver.send_bytes(connection.socket, &self.cipher_out) {
            Ok(taken) if taken < self.cipher_out.len() => {
                connection.keep_unsent(&self.cipher_out[taken..], now);
                self.arm(index, now + self.plan.timeout);
            }
            Ok(_) => {}
            Err(error) => self.handle_end(driver, index, Some(error), now),
        }
    }

    /// The connection is over: the target closed it (`error` is `None`) or it broke.
    pub(super) fn handle_end(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        error: Option<SocketError>,
        now: Instant,
    ) {
        let Link::Stream(connection) = &self.clients[index as usize].link else {
            return;
        };
        let (socket, usable) = (connection.socket, connection.progress == Progress::Usable);
        let counts = &mut self.tally.of_event(now).counts.connections;
        match (usable, error) {
            (true, None) => counts.closed_by_target += 1,
            (true, Some(_)) => counts.reset_by_target += 1,
            (false, error) => *failure_counter(&mut counts.failed, error) += 1,
        }
        driver.close(socket, Close::Graceful);
        self.lose_connection(driver, index, usable, now);
    }

    fn end_by_tls(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        failure: &TlsFailure,
        now: Instant,
    ) {
        let Link::Stream(connection) = &self.clients[index as usize].link else {
            return;
        };
        let (socket, usable) = (connection.socket, connection.progress == Progress::Usable);
        let counts = &mut self.tally.of_event(now).counts.connections;
        match (usable, failure) {
            (true, _) => counts.ended_by_tls += 1,
            (false, TlsFailure::Alert(_)) => counts.failed.tls_alert += 1,
            (false, TlsFailure::Certificate(_) | TlsFailure::Pin(_)) => {
                counts.failed.tls_certificate += 1;
            }
            (false, TlsFailure::Protocol(_) | TlsFailure::Alpn(_)) => {
                counts.failed.tls_protocol += 1;
            }
        }
        self.note_tls_failure(failure);
        driver.close(socket, Close::Graceful);
        self.lose_connection(driver, index, usable, now);
    }

    fn note_tls_failure(&mut self, failure: &TlsFailure) {
        let reason = failure.to_string();
        if self.tls_failures.len() < TLS_FAILURES_MAX && !self.tls_failures.contains(&reason) {
            self.tls_failures.push(reason);
        }
    }

    /// Closes a usable connection in order.
    pub(super) fn close_connection(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let Link::Stream(connection) = &mut self.clients[index as usize].link else {
            return;
        };
        let socket = connection.socket;
        if let Some(tls) = &mut connection.tls {
            tls.close();
        }
        self.write_handshake(driver, index, now);
        if !self.has_connection(index, socket) {
            // It was broken already, and has been counted as that.
            return;
        }
        self.tally.of_event(now).counts.connections.closed_by_client += 1;
        driver.close(socket, Close::Graceful);
        self.lose_connection(driver, index, true, now);
    }

    /// Gives up a usable connection that has taken no octets for too long.
    pub(super) fn give_up_blocked(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let Link::Stream(connection) = &self.clients[index as usize].link else {
            return;
        };
        driver.close(connection.socket, Close::Reset);
        self.tally.of_event(now).counts.connections.closed_by_client += 1;
        self.lose_connection(driver, index, true, now);
    }

    /// Closes a connection that has carried all the queries it may and has all their responses.
    pub(super) fn close_if_used_up(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let Some(most) = self.plan.queries_per_connection else {
            return;
        };
        let client = &self.clients[index as usize];
        let Link::Stream(connection) = &client.link else {
            return;
        };
        let all_sent = connection.queries_sent >= most;
        if all_sent && client.pending.in_flight() == 0 && client.role == Role::Primary {
            self.close_connection(driver, index, now);
        }
    }

    /// Ends the queries in flight on a connection that is gone, and prepares the next one.
    fn lose_connection(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        was_usable: bool,
        now: Instant,
    ) {
        let client = &mut self.clients[index as usize];
        let mut lost = 0;
        while let Some(query) = client.pending.oldest_in_flight() {
            client.pending.end(query.position, State::Lost);
            let counts = &mut self.tally.of_query(query.scheduled_at).counts;
            match client.role {
                Role::Primary => counts.connection_losses += 1,
                Role::Fallback => counts.tcp_fallback.connection_losses += 1,
            }
            lost += 1;
        }
        if client.role == Role::Primary {
            self.offer.release(lost);
        }
        self.change_in_flight(index, now, -i64::from(lost));
        if let Link::Stream(connection) = &self.clients[index as usize].link {
            self.connections_silent -= u64::from(connection.is_silent());
        }
        self.connections_open -= u64::from(was_usable);
        self.connection_is_down(index, now, was_usable);
        self.connect_if_needed(driver, index, now);
    }

    /// Notes that a client has no connection, and when it may try again: at once if the last one
    /// carried a response, else after a pause that doubles with each failure.
    pub(super) fn connection_is_down(&mut self, index: u32, now: Instant, was_usable: bool) {
        let client = &mut self.clients[index as usize];
        let went_well = match &client.link {
            Link::Stream(connection) => connection.served,
            _ => false,
        };
        let retry_at = if was_usable && went_well {
            now
        } else {
            let pause = PAUSE_MIN * (1 << client.failures.min(7));
            client.failures = client.failures.saturating_add(1);
            now + pause.min(PAUSE_MAX)
        };
        client.link = Link::Down { retry_at };
        self.settle(index);
        if retry_at > now {
            self.arm(index, retry_at);
        }
    }

    /// Counts a client's first attempt as done, for the set-up phase.
    fn settle(&mut self, index: u32) {
        let client = &mut self.clients[index as usize];
        if client.role == Role::Primary && !client.settled {
            client.settled = true;
            self.set_up.settled += 1;
            self.set_up.connecting = self.set_up.connecting.saturating_sub(1);
        }
    }
}

/// Where a connection that never became usable is counted.
fn failure_counter(failed: &mut ConnectionFailures, error: Option<SocketError>) -> &mut u64 {
    match error {
        None => &mut failed.closed,
        Some(SocketError::Refused) => &mut failed.refused,
        Some(SocketError::Reset) => &mut failed.reset,
        Some(SocketError::TimedOut) => &mut failed.timed_out,
        Some(SocketError::Unreachable) => &mut failed.unreachable,
        Some(SocketError::NoLocalPort) => &mut failed.no_local_port,
        Some(SocketError::NoResources) => &mut failed.no_resources,
        Some(SocketError::Other(_)) => &mut failed.other,
    }
}
