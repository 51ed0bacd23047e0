//! Timeouts: of queries, of connections that do not become usable, of pauses between attempts.
//!
//! One heap entry a client, not one a query: a client's timer is due when the oldest of its open
//! queries may time out, and is then set again for the one that is oldest by then.

use std::cmp::Reverse;

use driver::Driver;
use proto::Instant;
use proto::pending::{Query, State};
use script::End;

use super::Worker;
use super::population::client::{Link, Role};
use crate::query_end::QueryEnd;

/// Why a query is given up at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GivenUp {
    /// Its timeout is over.
    TimedOut,
    /// The run was interrupted, and ends before that.
    Interrupted,
}

/// Limit of queries that time out in one turn, exceeded only by the last client's; more than a turn
/// offers. The queries of all clients may time out at once, and ending all of them would delay the
/// next turn for long.
const EXPIRED_MAX: u32 = 8_192;
/// Weight of a query whose exchange is cancelled, which has to be sent to the target.
const EXCHANGE: u32 = 16;
/// Queries that are given up in one turn when the drain is over.
const GIVEN_UP_MAX: u32 = 65_536;

impl Worker {
    /// Handles the timers that are due at `now`; when many queries have timed out, only some of the
    /// timers.
    pub(super) fn fire_timers(&mut self, driver: &mut impl Driver, now: Instant) {
        let mut expires = EXPIRED_MAX;
        while let Some(&Reverse((at, index))) = self.population.timers.peek() {
            if at > now || expires == 0 {
                break;
            }
            self.population.timers.pop();
            let client = &mut self.population.clients[index as usize];
            // An entry that an earlier one replaced is stale.
            if client.timer_at == at {
                client.timer_at = Instant::FAR_FUTURE;
                expires = self.fire(driver, (index, expires), now);
            }
        }
    }

    /// Handles a client's timer; `expires` of its queries may time out. Returns how many queries of
    /// other clients still may.
    fn fire(
        &mut self,
        driver: &mut impl Driver,
        (index, expires): (u32, u32),
        now: Instant,
    ) -> u32 {
        let expires = self.expire_queries(driver, (index, expires), now);
        self.fire_quic(driver, index, now);
        self.check_retiring(driver, index, now);
        self.check_connection(driver, index, now);
        let timeout = self.plan.timeout;
        let connect_timeout = self.population.connect_timeout(&self.plan);
        let race = self.population.race_due(index);
        let policy = &self.plan.connections;
        let client = &mut self.population.clients[index as usize];
        let query = client.pending.poll_timeout(timeout);
        let connection = match &client.link {
            Link::Connected(connection) if !connection.is_open() => {
                Some(connection.times.attempted_at + connect_timeout)
            }
            Link::Connected(connection) => {
                let is_blocked = !connection.unsent.octets.is_empty();
                let blocked = is_blocked.then(|| connection.unsent.blocked_at + timeout);
                let deadline = connection.next_deadline(policy, now);
                [blocked, deadline].into_iter().flatten().min()
            }
            Link::Down { retry_at, .. } if *retry_at > now => Some(*retry_at),
            _ => None,
        };
        let quic = self.wire.quic_due(&self.population.clients[index as usize]);
        if let Some(at) = [query, connection, race, quic].into_iter().flatten().min() {
            self.population.arm(index, at);
        }
        // Queries that have timed out made room.
        self.has_room_again(index, now);
        expires
    }

    fn expire_queries(
        &mut self,
        driver: &mut impl Driver,
        (index, mut expires): (u32, u32),
        now: Instant,
    ) -> u32 {
        let timeout = self.plan.timeout;
        let mut in_flight_ended = 0;
        while expires > 0 {
            let client = &mut self.population.clients[index as usize];
            let Some(query) = client.pending.expired(now, timeout) else {
                break;
            };
            // A query that waits to be sent again was sent before.
            let sent = query.sent_at != Instant::ZERO;
            let in_flight = query.state == State::InFlight;
            in_flight_ended += u32::from(in_flight);
            expires -= 1;
            if !in_flight {
                // The queries counted as kept waiting are the oldest ones.
                client.kept_waiting = client.kept_waiting.saturating_sub(1);
            }
            client.pending.end(
                query.position,
                if sent { State::TimedOut } else { State::Lost },
            );
            let role = client.role;
            let queries = u64::from(role == Role::Primary);
            let counts = self.ledger.of_lost(query.scheduled_at, queries);
            match (role, sent) {
                (Role::Fallback, _) => counts.tcp_fallback.timeouts += 1,
                (Role::Primary, true) => {
                    counts.timeouts += 1;
                    self.ledger.count_lost(&query);
                    self.population
                        .lose_at_server(&self.ledger.tally, index, &query, |counts| {
                            counts.timeouts += 1
                        });
                    self.ledger.count_failure(&self.control);
                }
                (Role::Primary, false) => counts.not_sent.timed_out_waiting += 1,
            }
            let end = if sent { End::TimedOut } else { End::NotSent };
            let whose = (role, index);
            if role == Role::Primary {
                self.offer.release_lost(&mut self.population.events, 1, now);
            }
            self.report_end(whose, &query, QueryEnd::End(end), now);
            if in_flight && self.cancel_exchange(driver, index, query.number, now) {
                expires = expires.saturating_sub(EXCHANGE - 1);
            }
        }
        self.ledger.change_in_flight(
            self.population.whose(index),
            now,
            -i64::from(in_flight_ended),
        );
        if in_flight_ended > 0
            && let Some(connection) = self.population.connection(index)
        {
            connection.times.active_at = now;
        }
        expires
    }

    /// Gives up a connection that takes too long to be opened or to accept bytes, retries one whose
    /// pause is over, and closes one that has reached its limit of queries or its lifetime.
    fn check_connection(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let (timeout, connect_timeout) = (
            self.plan.timeout,
            self.population.connect_timeout(&self.plan),
        );
        let client = &mut self.population.clients[index as usize];
        let (waiting, in_flight) = (client.pending.waiting(), client.pending.in_flight());
        match &mut client.link {
            Link::Connected(connection) if connection.is_open() => {
                if !connection.unsent.octets.is_empty()
                    && connection.unsent.blocked_at + timeout <= now
                {
                    return self.give_up_blocked(driver, index, now);
                }
                let has_open_queries = waiting > 0 || connection.in_flight(in_flight) > 0;
                connection.retire_if_due(&self.plan.connections, has_open_queries, now);
                self.close_if_used_up(driver, index, now);
            }
            Link::Connected(connection)
                if connection.times.attempted_at + connect_timeout <= now =>
            {
                self.give_up_connecting(driver, index, now);
            }
            Link::Connected(_) => self.race_if_due(driver, index, now),
            Link::Down { retry_at, .. } if *retry_at <= now => {
                self.connect_if_needed(driver, index, now);
            }
            _ => {}
        }
    }

    /// Ends what is still open when the drain is over, or a part of it; true if nothing is left.
    pub(super) fn give_up_open_queries(&mut self, now: Instant, how: GivenUp) -> bool {
        let mut most = GIVEN_UP_MAX;
        for index in 0..self.population.clients.len() {
            most = self.give_up_waiting(index as u32, how, most);
            most = self.give_up_in_flight(index as u32, (how, now), most);
            if most == 0 {
                return false;
            }
        }
        true
    }

    /// Ends up to `most` queries of a client that wait; returns how many more may be ended.
    fn give_up_waiting(&mut self, index: u32, how: GivenUp, mut most: u32) -> u32 {
        let role = self.population.clients[index as usize].role;
        while most > 0
            && let Some(query) = self.population.clients[index as usize]
                .pending
                .next_waiting()
        {
            most -= 1;
            self.population.clients[index as usize]
                .pending
                .end(query.position, State::Lost);
            match role {
                // It waits to be sent again.
                Role::Primary if query.sent_at != Instant::ZERO => {
                    self.give_up(index, &query, how);
                }
                Role::Primary => {
                    let counts = self.ledger.of_lost(query.scheduled_at, 1);
                    counts.not_sent.run_ended += 1;
                }
                Role::Fallback => {
                    let counts = self.ledger.of_query(query.scheduled_at);
                    counts.tcp_fallback.connection_losses += 1;
                }
            }
        }
        most
    }

    /// The same for those in flight.
    fn give_up_in_flight(
        &mut self,
        index: u32,
        (how, now): (GivenUp, Instant),
        mut most: u32,
    ) -> u32 {
        let mut ended = 0;
        while most > 0
            && let Some(query) = self.population.clients[index as usize]
                .pending
                .oldest_in_flight()
        {
            most -= 1;
            ended += 1;
            self.population.clients[index as usize]
                .pending
                .end(query.position, State::TimedOut);
            self.give_up(index, &query, how);
        }
        self.ledger
            .change_in_flight(self.population.whose(index), now, -ended);
        most
    }

    /// Counts a query that was sent and has no response.
    fn give_up(&mut self, index: u32, query: &Query, how: GivenUp) {
        let role = self.population.clients[index as usize].role;
        let queries = u64::from(role == Role::Primary);
        match (role, how) {
            (Role::Primary, GivenUp::TimedOut) => {
                let counts = self.ledger.of_lost(query.scheduled_at, queries);
                counts.timeouts += 1;
                self.ledger.count_lost(query);
                self.population
                    .lose_at_server(&self.ledger.tally, index, query, |counts| {
                        counts.timeouts += 1
                    });
            }
            (Role::Primary, GivenUp::Interrupted) => {
                self.ledger.of_query(query.scheduled_at).interrupted += 1;
                self.population
                    .lose_at_server(&self.ledger.tally, index, query, |counts| {
                        counts.interrupted += 1
                    });
            }
            (Role::Fallback, how) => {
                let counts = self.ledger.of_query(query.scheduled_at);
                match how {
                    GivenUp::TimedOut => counts.tcp_fallback.timeouts += 1,
                    GivenUp::Interrupted => counts.tcp_fallback.interrupted += 1,
                }
            }
        }
    }
}
