//! Connections: when they are opened, what they end of, and when the next one is tried.
//!
//! What happens within one is in `streams` (TCP and TLS) and in `quic`.

use std::collections::VecDeque;
use std::time::Duration;

use driver::{Close, Driver, SocketError, SocketSpec};
use load::Plan;
use load::arrival::{Arrival, Process, Schedule};
use measure::counts::ConnectionFailures;
use proto::Instant;
use proto::framing::Deframer;
use proto::pending::State;
use proto::tls::TlsFailure;
use script::End;

use super::race::Losers;
use super::scripted::Told;
use super::{CONNECTING_MAX, Phase, Worker};
use crate::client::{Channel, Client, Connection, Link, Progress, Reason, Role};

/// Pause before the next attempt after a first failure; doubles with each.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// Longest pause between attempts.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Distinct reasons of TLS failures kept for the record.
const TLS_FAILURES_MAX: usize = 8;

/// Progress of connection set-up before the run, and the pace of all attempts.
#[derive(Debug, Default)]
pub(super) struct SetUp {
    next_client: u32,
    connecting: u32,
    settled: u32,
    pub(super) last_progress_at: Instant,
    /// When attempts may be made, if their rate is limited.
    pace: Option<Schedule>,
    /// Clients that wait for their turn.
    queue: VecDeque<u32>,
}

impl SetUp {
    pub(super) fn new(plan: &Plan, worker: u32, now: Instant) -> Self {
        let share = (worker, plan.workers);
        SetUp {
            last_progress_at: now,
            pace: (plan.connections.rate_max)
                .map(|rate| Schedule::new(rate, Process::Constant, share, plan.seed, now)),
            ..SetUp::default()
        }
    }

    /// When the next attempt is due, if a client waits for it.
    pub(super) fn next_due(&self) -> Instant {
        match (&self.pace, self.queue.is_empty()) {
            (Some(pace), false) => pace.next_due(),
            _ => Instant::FAR_FUTURE,
        }
    }
}

impl Worker {
    /// Before the run: connects the clients, a few at a time or at the pace asked for, until each
    /// has had its try.
    pub(super) fn set_up_connections(&mut self, driver: &mut impl Driver, now: Instant) {
        let is_set_up_now = self.plan.transport.has_connections()
            && !self.plan.connections.asks_nothing()
            && self.plan.presence.joins_after.is_zero();
        let all = if is_set_up_now { self.primaries } else { 0 };
        let connecting_max = match self.set_up.pace {
            Some(_) => u32::MAX,
            None => CONNECTING_MAX,
        };
        while self.set_up.connecting < connecting_max && self.set_up.next_client < all {
            let client = self.set_up.next_client;
            self.set_up.next_client += 1;
            self.set_up.connecting += 1;
            self.connect(driver, client, now);
        }
        self.connect_queued(driver, now);
        // Clients that the target keeps waiting must not keep the others waiting too.
        let stuck =
            now >= self.set_up.last_progress_at + self.plan.timeout && self.set_up.queue.is_empty();
        if self.set_up.settled >= all || stuck || self.control.is_stopped() {
            self.control.worker_is_ready(now);
            self.phase = Phase::Ready;
        }
    }

    /// Connections that are opened for their own sake are opened from the start of the run on.
    pub(super) fn begin_connections(&mut self, start: Instant) {
        if !self.plan.connections.asks_nothing() {
            return;
        }
        if let Some(pace) = &mut self.set_up.pace {
            // Queued before they are due, so that no attempt is missed if the worker wakes late.
            pace.skip_until(start, u64::MAX);
            self.set_up.queue.extend(0..self.primaries);
            let all = &mut self.clients[..self.primaries as usize];
            all.iter_mut().for_each(|client| client.queued = true);
        } else {
            (0..self.primaries).for_each(|index| self.arm(index, start));
        }
    }

    /// Connects a client that has no connection, if the run still needs it to have one.
    pub(super) fn connect_if_needed(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let client = &self.clients[index as usize];
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
                && self.phase != Phase::Draining
                && (self.joins_at..self.offer_end()).contains(&now));
        if !wanted || self.phase == Phase::Finished {
            return;
        }
        if retry_at <= now {
            self.connect(driver, index, now);
        } else {
            self.arm(index, retry_at);
        }
    }

    /// Connects now, or when the pace lets it.
    fn connect(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let Some(pace) = &mut self.set_up.pace else {
            return self.attempt(driver, index, now);
        };
        let client = &mut self.clients[index as usize];
        if client.queued {
            return;
        }
        if self.set_up.queue.is_empty() {
            // Attempts that nobody wanted to make are not made up for.
            pace.skip_until(now, u64::MAX);
        }
        client.queued = true;
        self.set_up.queue.push_back(index);
        self.connect_queued(driver, now);
    }

    /// Makes the attempts that the pace lets be made at `now`; without a query to send, only those
    /// due before the end of the run.
    pub(super) fn connect_queued(&mut self, driver: &mut impl Driver, now: Instant) {
        while self.set_up.next_due() <= now {
            let is_in_time = self.set_up.next_due() < self.run_end;
            let Some(index) = self.set_up.queue.pop_front() else {
                return;
            };
            let client = &mut self.clients[index as usize];
            client.queued = false;
            let is_down = matches!(client.link, Link::Down { .. });
            let is_kept_connected = self.phase != Phase::Draining && is_in_time;
            let wanted = is_kept_connected || client.pending.waiting() > 0;
            if is_down && wanted && self.phase != Phase::Finished {
                if let Some(pace) = &mut self.set_up.pace {
                    pace.advance();
                }
                self.set_up.last_progress_at = now;
                self.attempt(driver, index, now);
            }
        }
    }

    fn attempt(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        self.tally.of_event(now).counts.connections.attempted += 1;
        if let Some(stub) = &mut self.stub {
            stub.choose(index, now);
        }
        let peer = self.peer(index);
        let client = &self.clients[index as usize];
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
                self.own(socket, index);
                // HTTP/2 begins when the stream can carry it.
                let channel = Channel::Framed(Deframer::default());
                let connection = Box::new(Connection::new(socket, channel, now));
                self.clients[index as usize].link = Link::Connected(connection);
                let timeout_at = now + self.connect_timeout();
                let race_at = self.race_due(index);
                self.arm(index, race_at.map_or(timeout_at, |at| at.min(timeout_at)));
            }
            Err(error) => self.attempt_failed(index, error, now),
        }
    }

    /// No socket could be had.
    pub(super) fn attempt_failed(&mut self, index: u32, error: SocketError, now: Instant) {
        let failed = &mut self.tally.of_event(now).counts.connections.failed;
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
        let Some(connection) = self.clients[index as usize].connection() else {
            return;
        };
        connection.progress = Progress::Usable;
        connection.early = false;
        connection.usable_at = now;
        connection.active_at = now;
        self.standings.review(connection);
        self.tally.of_event(now).counts.connections.became_usable += 1;
        let set_up_ns = now.nanos_since(connection.attempted_at);
        self.statistics.count_set_up(index, set_up_ns);
        if let Some(observer) = &self.observer {
            observer.usable(set_up_ns, now);
        }
        self.set_up.last_progress_at = now;
        self.settle(index);
        if asks_nothing {
            return self.close_with_ticket(driver, index, Reason::WithoutQuery, now);
        }
        if let Some(at) = [retired_at, idle_at].into_iter().flatten().min() {
            self.arm(index, at);
        }
        self.send_waiting(driver, index);
        self.list_client(index, now);
    }

    /// The connection is over: the target closed it (`error` is `None`) or it broke.
    pub(super) fn handle_end(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        error: Option<SocketError>,
        now: Instant,
    ) {
        self.count_fast_open(driver, index, now);
        if self.replace_by_racer(driver, index, error, now) {
            return;
        }
        let Some(connection) = self.clients[index as usize].connection() else {
            return;
        };
        let (socket, usable) = (connection.socket, connection.is_open());
        let counts = &mut self.tally.of_event(now).counts.connections;
        match (usable, error) {
            (true, None) => counts.closed_by_target += 1,
            (true, Some(SocketError::TimedOut | SocketError::Unreachable)) => {
                counts.given_up_by_kernel += 1;
            }
            (true, Some(_)) => counts.reset_by_target += 1,
            (false, error) => *failure_counter(&mut counts.failed, error) += 1,
        }
        driver.close(socket, Close::Graceful);
        self.lose_connection(driver, index, Ended::here(usable), now);
    }

    /// TLS, within TCP, ended the connection.
    pub(super) fn end_by_tls(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        failure: &TlsFailure,
        now: Instant,
    ) {
        let Some(connection) = self.clients[index as usize].connection() else {
            return;
        };
        let (socket, usable) = (connection.socket, connection.is_open());
        self.count_tls_failure(failure, usable, now);
        driver.close(socket, Close::Graceful);
        self.lose_connection(driver, index, Ended::here(usable), now);
    }

    pub(super) fn count_tls_failure(&mut self, failure: &TlsFailure, usable: bool, now: Instant) {
        if let (true, TlsFailure::Protocol(_)) = (usable, failure) {
            self.count_violation("TLS protocol error", "RFC 8446, section 6.2", now);
        }
        let counts = &mut self.tally.of_event(now).counts.connections;
        match (usable, failure) {
            (true, TlsFailure::Protocol(_)) => {}
            (true, _) => counts.ended_by_tls += 1,
            (false, TlsFailure::Alert(alert)) => counts.failed.tls_alert.record(alert),
            (false, TlsFailure::Certificate(_)) => counts.failed.tls_certificate += 1,
            (false, TlsFailure::Pin(_)) => counts.failed.tls_pin += 1,
            (false, TlsFailure::Alpn(_)) => counts.failed.tls_alpn += 1,
            (false, TlsFailure::Protocol(_)) => counts.failed.tls_protocol += 1,
        }
        let reason = failure.to_string();
        if self.tls_failures.len() < TLS_FAILURES_MAX && !self.tls_failures.contains(&reason) {
            self.tls_failures.push(reason);
        }
    }

    /// Counts a usable connection that we close because the target broke a rule.
    #[cold]
    pub(super) fn count_violation(&mut self, what: &str, rules: &str, now: Instant) {
        let counts = &mut self.tally.of_event(now).counts.connections;
        let rule = format!("{what} ({rules})");
        counts.closed_for_violation.record(&rule);
    }

    /// Closes a usable connection in order.
    pub(super) fn close_connection(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        reason: Reason,
        now: Instant,
    ) {
        let Some(connection) = self.clients[index as usize].connection() else {
            return;
        };
        let socket = connection.socket;
        self.say_goodbye(driver, index, now);
        if !self.has_connection(index, socket) {
            // It was broken already, and has been counted as that.
            return;
        }
        let counts = &mut self.tally.of_event(now).counts.connections;
        match reason {
            Reason::GoingAway(code) => counts.ended_by_goaway.record(code),
            _ => counts.closed_by_client += 1,
        }
        match reason {
            Reason::Idle => counts.closed_by_client_for.idle += 1,
            Reason::Duration => counts.closed_by_client_for.duration += 1,
            Reason::WithoutQuery => counts.closed_by_client_for.without_query += 1,
            Reason::NoStreams => counts.closed_by_client_for.no_streams += 1,
            Reason::Done | Reason::GoingAway(_) => {}
        }
        driver.close(socket, Close::Graceful);
        let ended = Ended {
            was_usable: true,
            by_us: true,
            on_demand: reason == Reason::Idle,
        };
        self.lose_connection(driver, index, ended, now);
    }

    /// Says the last words of the protocols above TCP or UDP.
    fn say_goodbye(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let Some(connection) = self.clients[index as usize].connection() else {
            return;
        };
        if matches!(connection.channel, Channel::Quic { .. }) {
            return self.close_quic(driver, index, now);
        }
        if let Channel::Http2(session) = &mut connection.channel {
            self.plain_out.clear();
            session.close(&mut self.plain_out);
            self.write_plaintext(driver, index, now);
        }
        let connection = self.clients[index as usize].connection();
        if let Some(tls) = connection.and_then(|connection| connection.tls.as_mut()) {
            tls.close();
        }
        self.write_own(driver, index, now);
    }

    /// Gives up a usable connection that has taken no octets for too long.
    pub(super) fn give_up_blocked(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let Some(connection) = self.clients[index as usize].connection() else {
            return;
        };
        driver.close(connection.socket, Close::Reset);
        self.tally.of_event(now).counts.connections.closed_by_client += 1;
        self.lose_connection(driver, index, Ended::here(true), now);
    }

    /// Gives up a connection that did not become usable in time.
    pub(super) fn give_up_connecting(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        now: Instant,
    ) {
        let Some(connection) = self.clients[index as usize].connection() else {
            return;
        };
        driver.close(connection.socket, Close::Reset);
        self.tally.of_event(now).counts.connections.failed.timed_out += 1;
        self.end_race(driver, index, Losers::TimedOut, now);
        self.lose_connection(driver, index, Ended::BEFORE_USE, now);
    }

    /// Closes a connection that has carried all the queries it may, or is to carry no more, once
    /// it has all their responses.
    pub(super) fn close_if_used_up(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let most = self.plan.connections.queries_max.unwrap_or(u32::MAX);
        let client = &mut self.clients[index as usize];
        let is_busy = client.pending.in_flight() > 0 || client.role == Role::Fallback;
        let Some(connection) = client.connection() else {
            return;
        };
        if is_busy || !connection.is_open() {
            return;
        }
        if most == 0 {
            self.close_with_ticket(driver, index, Reason::WithoutQuery, now);
        } else if connection.queries_sent >= most {
            self.close_with_ticket(driver, index, Reason::Done, now);
        } else if let Some(reason) = connection.retired_for {
            self.close_connection(driver, index, reason, now);
        }
    }

    /// Ends the queries in flight on a connection that is gone, and prepares the next one.
    pub(super) fn lose_connection(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        ended: Ended,
        now: Instant,
    ) {
        let (mut lost, mut requeued) = (0, 0);
        while let Some(query) = self.clients[index as usize].pending.oldest_in_flight() {
            if self.stub.is_some() && self.requeue_failed(index, &query) {
                requeued += 1;
                continue;
            }
            let client = &mut self.clients[index as usize];
            client.pending.end(query.position, State::Lost);
            let queries = u64::from(client.role == Role::Primary);
            let counts = &mut self.tally.of_lost(query.scheduled_at, queries).counts;
            match client.role {
                Role::Primary => counts.connection_losses += 1,
                Role::Fallback => counts.tcp_fallback.connection_losses += 1,
            }
            let whose = (client.role, index);
            self.lose_at_server(index, &query, |counts| counts.connection_losses += 1);
            self.tell(whose, &query, Told::End(End::Lost), now);
            lost += 1;
        }
        if self.clients[index as usize].role == Role::Primary {
            self.release_lost(lost, now);
        }
        self.change_in_flight(index, now, -i64::from(lost + requeued));
        let Client { link, session, .. } = &mut self.clients[index as usize];
        if let Link::Connected(connection) = link {
            if let Some(tls) = &mut connection.tls {
                *session = tls.take_memory();
            }
            if let (Channel::Quic { key, .. }, Some(quic)) = (&connection.channel, &mut self.quic) {
                *session = quic.take_memory(*key);
                quic.forget(*key);
            }
        }
        self.connection_is_down(index, now, ended);
        self.connect_if_needed(driver, index, now);
        self.list_client(index, now);
    }

    /// Notes that a client has no connection, and when it may try again: at once, or after the
    /// delay asked for, if the last one carried a response or was closed by us; else after a pause
    /// that doubles with each failure.
    pub(super) fn connection_is_down(&mut self, index: u32, now: Instant, ended: Ended) {
        let policy = &self.plan.connections;
        let delay = policy.reconnect_delay;
        // A client of a script opens one when it asks.
        let is_scripted = self.plan.arrival == Arrival::Script;
        // Early data is a query that waits when the handshake begins.
        let session = &self.clients[index as usize].session;
        let sends_early = session.has_ticket()
            && (self.tls.as_ref()).is_some_and(|tls| tls.config.enable_early_data);
        // Whose connections end when nobody needs them opens none that nobody needs. In closed loop
        // every connection has queries waiting for it, which are offered when it is there.
        let is_frugal = (policy.idle_timeout.is_some() || sends_early)
            && matches!(
                self.plan.arrival,
                Arrival::Open { .. } | Arrival::Clients(_) | Arrival::Profile | Arrival::Replay
            )
            && !policy.asks_nothing();
        let client = &mut self.clients[index as usize];
        let (mut went_well, mut goes_on) = (false, false);
        if let Link::Connected(connection) = &mut client.link {
            self.standings.leave(connection);
            went_well = connection.served || (ended.by_us && connection.queries_sent == 0);
        }
        let retry_at = if ended.was_usable && went_well {
            client.failures = 0;
            now + delay
        } else {
            let pause = pause_after(client.failures.into());
            client.failures = client.failures.saturating_add(1);
            let of_servers = self.pause_between_servers(index, now);
            goes_on = of_servers.is_some();
            now + of_servers.unwrap_or(pause).max(delay)
        };
        let client = &mut self.clients[index as usize];
        client.link = Link::Down {
            retry_at,
            on_demand: ended.on_demand || is_frugal || is_scripted,
        };
        self.settle(index);
        if retry_at > now || goes_on {
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

/// The pause before the next attempt after so many failures before the last one.
pub(super) fn pause_after(failures: u32) -> Duration {
    (PAUSE_MIN * (1 << failures.min(7))).min(PAUSE_MAX)
}

/// How a connection ended, for what comes after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    /// It could have carried queries.
    pub(super) was_usable: bool,
    /// We closed it in order.
    by_us: bool,
    /// The next one is opened when there is a query for it.
    on_demand: bool,
}

impl Ended {
    /// It never became usable.
    pub(super) const BEFORE_USE: Ended = Ended::here(false);

    /// Not by a decision of ours.
    pub(super) const fn here(was_usable: bool) -> Ended {
        Ended {
            was_usable,
            by_us: false,
            on_demand: false,
        }
    }
}

/// Where a connection that never became usable is counted.
pub(super) fn failure_counter(
    failed: &mut ConnectionFailures,
    error: Option<SocketError>,
) -> &mut u64 {
    match error {
        None => &mut failed.closed,
        Some(SocketError::Refused) => &mut failed.refused,
        Some(SocketError::Reset) => &mut failed.reset,
        Some(SocketError::TimedOut) => &mut failed.timed_out,
        Some(SocketError::Unreachable) => &mut failed.unreachable,
        Some(SocketError::NoLocalPort) => &mut failed.no_local_port,
        Some(SocketError::NoResources) => &mut failed.no_resources,
        Some(SocketError::Forbidden | SocketError::Other(_)) => &mut failed.other,
    }
}
