//! Why connections end, and how the queries on them are counted.

use driver::{Close, Driver, SocketError};
use proto::Instant;
use proto::pending::{Pending, Query, State};
use proto::tls::TlsFailure;
use script::End;

use super::Worker;
use super::happy_eyeballs::Losers;
use super::ledger::Ledger;
use super::ledger::connections::failure_counter;
use super::population::client::{Client, Link, Role};
use super::population::connection::Reason;
use super::wire::session_tickets::Ticket;
use crate::query_end::QueryEnd;

impl Worker {
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
        let Some(connection) = self.population.connection(index) else {
            return;
        };
        let (socket, usable) = (connection.socket, connection.is_open());
        self.count_end(index, now, |ledger| {
            let counts = ledger.connections(now);
            match (usable, error) {
                (true, None) => counts.closed_by_target += 1,
                (true, Some(SocketError::TimedOut | SocketError::Unreachable)) => {
                    counts.given_up_by_kernel += 1;
                }
                (true, Some(_)) => counts.reset_by_target += 1,
                (false, error) => *failure_counter(&mut counts.failed, error) += 1,
            }
        });
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
        let Some(connection) = self.population.connection(index) else {
            return;
        };
        let (socket, usable) = (connection.socket, connection.is_open());
        self.count_end(index, now, |ledger| {
            ledger.count_tls_failure(failure, usable, now);
        });
        driver.close(socket, Close::Graceful);
        self.lose_connection(driver, index, Ended::here(usable), now);
    }

    /// Closes a connection that has carried all its queries, unless it still waits for a session
    /// ticket.
    pub(super) fn close_with_ticket(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        reason: Reason,
        now: Instant,
    ) {
        let client = &self.population.clients[index as usize];
        match self.wire.ticket(&self.plan, client, now) {
            // The client's next connection has begun without it.
            _ if self.population.serves_retiring => {}
            Ticket::NotWanted => {}
            Ticket::Here => self.wire.tickets_missed = 0,
            Ticket::AwaitedUntil(at) => return self.population.arm(index, at),
            Ticket::DidNotCome => {
                self.wire.tickets_missed += 1;
                self.ledger.connections(now).tickets_missed += 1;
            }
        }
        self.close_connection(driver, index, reason, now);
    }

    /// Closes a usable connection in order.
    pub(super) fn close_connection(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        reason: Reason,
        now: Instant,
    ) {
        let Some(connection) = self.population.connection(index) else {
            return;
        };
        let socket = connection.socket;
        self.say_goodbye(driver, index, now);
        if !self.population.has_connection(index, socket) {
            // It was broken already, and has been counted as that.
            return;
        }
        self.count_end(index, now, |ledger| {
            let counts = ledger.connections(now);
            match reason {
                Reason::GoingAway(code) => return counts.ended_by_goaway.record(code),
                Reason::Idle => counts.closed_by_client_for.idle += 1,
                Reason::Duration => counts.closed_by_client_for.duration += 1,
                Reason::WithoutQuery => counts.closed_by_client_for.without_query += 1,
                Reason::NoStreams => counts.closed_by_client_for.no_streams += 1,
                Reason::Done => {}
            }
            counts.closed_by_client += 1;
        });
        driver.close(socket, Close::Graceful);
        let ended = Ended {
            was_usable: true,
            by_us: true,
            on_demand: reason == Reason::Idle,
        };
        self.lose_connection(driver, index, ended, now);
    }

    /// Sends the closing messages of the protocols above TCP or UDP.
    fn say_goodbye(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let Some(connection) = self.population.connection(index) else {
            return;
        };
        if connection.channel.is_quic() {
            return self.close_quic(driver, index, now);
        }
        if self.wire.close_http2(connection) {
            self.write_plaintext(driver, index, now);
        }
        let connection = self.population.connection(index);
        if let Some(tls) = connection.and_then(|connection| connection.tls.as_mut()) {
            tls.close();
        }
        self.write_own(driver, index, now);
    }

    /// Gives up a usable connection whose socket has accepted no bytes for too long.
    pub(super) fn give_up_blocked(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let Some(connection) = self.population.connection(index) else {
            return;
        };
        driver.close(connection.socket, Close::Reset);
        self.ledger.connections(now).closed_by_client += 1;
        self.lose_connection(driver, index, Ended::here(true), now);
    }

    /// Gives up a connection that did not become usable in time.
    pub(super) fn give_up_connecting(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        now: Instant,
    ) {
        let Some(connection) = self.population.connection(index) else {
            return;
        };
        driver.close(connection.socket, Close::Reset);
        self.ledger.connections(now).failed.timed_out += 1;
        self.end_race(driver, index, Losers::TimedOut, now);
        self.lose_connection(driver, index, Ended::BEFORE_USE, now);
    }

    /// Closes a retired connection, or one that has reached its limit of queries, once it has all
    /// responses.
    pub(super) fn close_if_used_up(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let most = self.plan.connections.queries_max.unwrap_or(u32::MAX);
        let client = &mut self.population.clients[index as usize];
        let (in_flight, is_fallback) = (client.pending.in_flight(), client.role == Role::Fallback);
        let Some(connection) = client.connection() else {
            return;
        };
        if is_fallback || connection.in_flight(in_flight) > 0 || !connection.is_open() {
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

    /// Counts the end of a connection, and where the target ended it the queries that were over on
    /// it.
    pub(super) fn count_end(&mut self, index: u32, now: Instant, count: impl FnOnce(&mut Ledger)) {
        let before = self.ledger.connections(now).ended_by_target();
        count(&mut self.ledger);
        if self.ledger.connections(now).ended_by_target() == before {
            return;
        }
        let in_flight = self.population.clients[index as usize].pending.in_flight();
        if let Some(connection) = self.population.connection(index) {
            let sent = connection.queries_sent;
            let over = sent.saturating_sub(connection.in_flight(in_flight));
            self.ledger.connections(now).ended_after.record(over);
        }
    }

    /// Ends the queries in flight on a lost connection, and prepares the next one unless the client
    /// has it already.
    pub(super) fn lose_connection(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        ended: Ended,
        now: Instant,
    ) {
        let mut of_link = self.population.queries_of_link(index);
        let (mut lost, mut requeued) = (0, 0);
        while let Some(query) = next_in_flight(
            &mut self.population.clients[index as usize].pending,
            &mut of_link,
        ) {
            if self.population.stub.is_some() && self.population.requeue_failed(index, &query) {
                requeued += 1;
                continue;
            }
            let client = &mut self.population.clients[index as usize];
            client.pending.end(query.position, State::Lost);
            let queries = u64::from(client.role == Role::Primary);
            let counts = self.ledger.of_lost(query.scheduled_at, queries);
            match client.role {
                Role::Primary => {
                    counts.connection_losses += 1;
                    self.ledger.count_lost(&query);
                }
                Role::Fallback => counts.tcp_fallback.connection_losses += 1,
            }
            let whose = (client.role, index);
            self.population
                .lose_at_server(&self.ledger.tally, index, &query, |counts| {
                    counts.connection_losses += 1
                });
            self.report_end(whose, &query, QueryEnd::End(End::Lost), now);
            lost += 1;
        }
        if self.population.clients[index as usize].role == Role::Primary {
            self.offer
                .release_lost(&mut self.population.events, lost, now);
        }
        self.ledger.change_in_flight(
            self.population.whose(index),
            now,
            -i64::from(lost + requeued),
        );
        if self.population.serves_retiring {
            return self.forget_retiring(index);
        }
        let Client { link, session, .. } = &mut self.population.clients[index as usize];
        if let Link::Connected(connection) = link
            && let Some(memory) = self.wire.forget(connection)
        {
            *session = memory;
        }
        self.connection_is_down(index, now, ended);
        self.connect_if_needed(driver, index, now);
        self.list_client(index, now);
    }
}

/// The next query in flight, of those with the numbers in `of_link` if there are such.
fn next_in_flight(
    pending: &mut Pending,
    of_link: &mut Option<std::vec::IntoIter<u32>>,
) -> Option<Query> {
    let Some(numbers) = of_link else {
        return pending.oldest_in_flight();
    };
    let mut queries = numbers.filter_map(|number| pending.numbered(number));
    queries.find(|query| query.state == State::InFlight)
}

/// How a connection ended; decides when the next one is opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    /// It could have carried queries.
    pub(super) was_usable: bool,
    /// We closed it in order.
    pub(super) by_us: bool,
    /// The next one is opened when there is a query for it.
    pub(super) on_demand: bool,
}

impl Ended {
    /// It never became usable.
    pub(super) const BEFORE_USE: Ended = Ended::here(false);

    /// Ended by the target or the network.
    pub(super) const fn here(was_usable: bool) -> Ended {
        Ended {
            was_usable,
            by_us: false,
            on_demand: false,
        }
    }
}
