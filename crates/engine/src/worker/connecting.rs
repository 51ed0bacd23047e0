//! Connections: when they are opened, and when the next one is tried.
//!
//! Established connections are handled in `streams` (TCP and TLS) and `quic`, their ends in
//! `disconnecting`.

use std::time::Duration;

use driver::{Driver, SocketError, SocketSpec};
use load::arrival::Arrival;
use proto::Instant;
use proto::framing::Deframer;

use super::Worker;
use super::disconnecting::Ended;
use super::ledger::connections::failure_counter;
use super::phases::Phase;
use super::population::client::{Link, Role};
use super::population::connection::{Channel, Connection, Reason, Stage};

/// Pause before the next attempt after a first failure; doubles with each.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// Longest pause between attempts.
const PAUSE_MAX: Duration = Duration::from_secs(1);

impl Worker {
    /// Makes the first attempts of clients, a few at a time or at the configured pace: before the
    /// run, and during it if set-up ended before every client had its attempt.
    pub(super) fn connect_next_clients(&mut self, driver: &mut impl Driver, now: Instant) {
        let is_over = self.course.phase > Phase::Offering || now >= self.offer_end();
        if is_over || self.control.is_stopped() {
            return;
        }
        while let Some(index) = self.population.set_up.take_next_client(now) {
            let client = &self.population.clients[index as usize];
            // In the run, a query may have made the attempt already.
            if !client.settled && !client.has_left && matches!(client.link, Link::Down { .. }) {
                self.population.set_up.begin(index, now);
                self.connect(driver, index, now);
            }
        }
    }

    /// Before the run: waits until each client has had its attempt, or no more of them can be
    /// connected.
    pub(super) fn end_set_up(&mut self, now: Instant) {
        let usable = self.ledger.open_connections.usable();
        let set_up = &mut self.population.set_up;
        match set_up.change_usable(usable, now) {
            0 => {}
            more => self.control.change_usable(more),
        }
        if set_up.is_over(self.plan.timeout, now) || self.control.is_stopped() {
            self.control.worker_is_ready(now);
            self.course.phase = Phase::Ready;
        }
    }

    /// Connects a client that has no connection, if the run still needs it to have one.
    pub(super) fn connect_if_needed(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let client = &self.population.clients[index as usize];
        let Link::Down {
            retry_at,
            on_demand,
        } = client.link
        else {
            return;
        };
        let is_kept_connected = client.role == Role::Primary && !on_demand;
        let wanted = client.pending.waiting() > 0
            || (is_kept_connected
                && self.course.phase != Phase::Draining
                && (self.population.joins_at..self.offer_end()).contains(&now));
        if !wanted || self.course.phase == Phase::Finished {
            return;
        }
        if retry_at <= now {
            self.connect(driver, index, now);
        } else {
            self.population.arm(index, retry_at);
        }
    }

    /// Connects now, or when the pace allows.
    fn connect(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let Some(pace) = &mut self.population.set_up.pace else {
            return self.attempt(driver, index, now);
        };
        let client = &mut self.population.clients[index as usize];
        if client.listed.to_connect {
            return;
        }
        if self.population.set_up.queue.is_empty() {
            // Unused attempts do not accumulate.
            pace.skip_until(now, u64::MAX);
        }
        client.listed.to_connect = true;
        self.population.set_up.queue.push_back(index);
        self.connect_queued(driver, now);
    }

    /// Makes the attempts that the pace allows at `now`; those without a query to send only before
    /// the end of the run.
    pub(super) fn connect_queued(&mut self, driver: &mut impl Driver, now: Instant) {
        while self.population.set_up.next_due() <= now {
            let is_in_time = self.population.set_up.next_due() < self.course.run_end;
            let Some(index) = self.population.set_up.queue.pop_front() else {
                return;
            };
            let client = &mut self.population.clients[index as usize];
            client.listed.to_connect = false;
            let is_down = matches!(client.link, Link::Down { .. });
            let is_kept_connected = self.course.phase != Phase::Draining && is_in_time;
            let wanted = is_kept_connected || client.pending.waiting() > 0;
            if is_down && wanted && self.course.phase != Phase::Finished {
                if let Some(pace) = &mut self.population.set_up.pace {
                    pace.advance();
                }
                self.attempt(driver, index, now);
            }
        }
    }

    fn attempt(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        self.ledger.connections(now).attempted += 1;
        if let Some(stub) = &mut self.population.stub {
            stub.choose(index, now);
        }
        let peer = self.population.peer(&self.plan, index);
        let client = &self.population.clients[index as usize];
        // Truncated questions are repeated over TCP alone.
        if self.plan.transport.is_quic() && client.role == Role::Primary {
            return self.attempt_quic(driver, index, now);
        }
        let spec = SocketSpec {
            local: client.local.filter(|it| it.is_ipv4() == peer.is_ipv4()),
            peer: Some(peer),
            fast_open: self.plan.connections.tcp_fast_open,
            ..SocketSpec::default()
        };
        match driver.connect_tcp(&spec) {
            Ok(socket) => {
                self.population.own(socket, index);
                // HTTP/2 begins when the stream can carry it.
                let channel = Channel::Framed(Deframer::default());
                let connection = Box::new(Connection::new(socket, channel, now));
                self.population.clients[index as usize].link = Link::Connected(connection);
                let timeout_at = now + self.population.connect_timeout(&self.plan);
                let race_at = self.population.race_due(index);
                self.population
                    .arm(index, race_at.map_or(timeout_at, |at| at.min(timeout_at)));
            }
            Err(error) => self.attempt_failed(index, error, now),
        }
    }

    /// No socket could be opened.
    pub(super) fn attempt_failed(&mut self, index: u32, error: SocketError, now: Instant) {
        let failed = &mut self.ledger.connections(now).failed;
        *failure_counter(failed, Some(error)) += 1;
        self.connection_is_down(index, now, Ended::BEFORE_USE);
    }

    /// A connection can carry queries from now on.
    pub(super) fn connection_is_usable(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        now: Instant,
    ) {
        let policy = &self.plan.connections;
        let asks_nothing = policy.asks_nothing();
        let retired_at = policy.duration.map(|duration| now + duration);
        let idle_at = policy.idle_timeout.map(|timeout| now + timeout);
        let Some(connection) = self.population.connection(index) else {
            return;
        };
        connection.stage = Stage::Usable;
        connection.early.is_open = false;
        connection.times.usable_at = now;
        connection.times.active_at = now;
        self.ledger.open_connections.review(connection);
        self.ledger.connections(now).became_usable += 1;
        let set_up_ns = now.nanos_since(connection.times.attempted_at);
        self.ledger.statistics.count_set_up(index, set_up_ns);
        if let Some(observer) = &self.ledger.observer {
            observer.usable(set_up_ns, now);
        }
        self.population
            .settle(index, Some(Duration::from_nanos(set_up_ns)));
        if asks_nothing {
            return self.close_with_ticket(driver, index, Reason::WithoutQuery, now);
        }
        if let Some(at) = [retired_at, idle_at].into_iter().flatten().min() {
            self.population.arm(index, at);
        }
        self.send_waiting(driver, index);
        self.list_client(index, now);
    }

    /// Notes that a client has no connection, and when it may try again.
    pub(super) fn connection_is_down(&mut self, index: u32, now: Instant, ended: Ended) {
        let mut went_well = false;
        let client = &mut self.population.clients[index as usize];
        if let Link::Connected(connection) = &mut client.link {
            self.ledger.open_connections.leave(connection);
            went_well = connection.served || (ended.by_us && connection.queries_sent == 0);
        }
        let went_well = ended.was_usable && went_well;
        self.plan_next_attempt(index, now, (went_well, ended.on_demand));
        self.population.settle(index, None);
    }

    /// Leaves a client without a connection until it may try again. If the last one carried a
    /// response or was closed by us, that is at once or after the configured delay; else after a
    /// pause that doubles with each failure.
    pub(super) fn plan_next_attempt(
        &mut self,
        index: u32,
        now: Instant,
        (went_well, on_demand): (bool, bool),
    ) {
        let policy = &self.plan.connections;
        let delay = policy.reconnect_delay;
        // A scripted client connects when it sends a query.
        let is_scripted = matches!(self.plan.arrival, Arrival::Script(_));
        // Early data is a query that waits when the handshake begins.
        let session = &self.population.clients[index as usize].session;
        let sends_early = session.has_ticket()
            && (self.wire.tls.as_ref()).is_some_and(|tls| tls.config.enable_early_data);
        // A client that closes idle connections does not open one without a query to send. In the
        // closed loop every connection is needed: its queries are offered once it is usable.
        let is_frugal = (policy.idle_timeout.is_some() || sends_early)
            && matches!(
                self.plan.arrival,
                Arrival::Open { .. }
                    | Arrival::Clients(_)
                    | Arrival::Profile(_)
                    | Arrival::Replay(_)
            )
            && !policy.asks_nothing();
        let client = &mut self.population.clients[index as usize];
        let mut goes_on = false;
        let retry_at = if went_well {
            client.failures = 0;
            now + delay
        } else {
            let pause = pause_after(client.failures.into());
            client.failures = client.failures.saturating_add(1);
            let of_servers = self.pause_between_servers(index, now);
            goes_on = of_servers.is_some();
            now + of_servers.unwrap_or(pause).max(delay)
        };
        let client = &mut self.population.clients[index as usize];
        client.link = Link::Down {
            retry_at,
            on_demand: on_demand || is_frugal || is_scripted,
        };
        if retry_at > now || goes_on {
            self.population.arm(index, retry_at);
        }
    }
}

/// The pause before the next attempt, given the number of failures before the last one.
pub(super) fn pause_after(failures: u32) -> Duration {
    (PAUSE_MIN * (1 << failures.min(7))).min(PAUSE_MAX)
}
