//! Clients that retry: further attempts over UDP, queries that outlive their connection, and the
//! server of the next connection.
//!
//! Such a client has one connection at a time. It switches to the next server when its connection
//! could not be set up, carried no response or was given up, or because of an RCODE. A connection
//! that has carried responses and then ends is first reopened at the same server.

use std::time::Duration;

use driver::{Close, Driver, SocketId};
use load::stub::ServerOrder;
use proto::Instant;
use proto::pending::{Query, Trail};

use super::Worker;
use super::connecting::pause_after;
use super::disconnecting::Ended;
use super::phases::Phase;
use super::population::connection::Reason;
use super::population::stub::{Cause, under_way};
use super::wire::signing_time;

/// Attempts begun in one turn; the rest follows in the next, after the sockets were read.
const DUE_MAX: usize = 256;

impl Worker {
    /// Begins the attempts that are due at `now`.
    pub(super) fn ask_again(&mut self, driver: &mut impl Driver, now: Instant) {
        for _ in 0..DUE_MAX {
            let Some(stub) = self
                .population
                .stub
                .as_mut()
                .filter(|_| self.course.phase != Phase::Finished)
            else {
                return;
            };
            let Some((due, cause)) = stub.take_due(now) else {
                return;
            };
            let pending = &self.population.clients[due.client as usize].pending;
            if let Some(query) = under_way(pending, &due) {
                match self.plan.transport.has_connections() {
                    true => self.ask_on_next_connection(driver, due.client, &query, (cause, now)),
                    false => self.ask_next_server(driver, due.client, &query, (cause, now)),
                }
            }
        }
    }

    /// Sends a query in flight over UDP once more, to the server whose turn it is.
    fn ask_next_server(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        query: &Query,
        (cause, now): (Cause, Instant),
    ) {
        let trail = self.population.clients[index as usize]
            .pending
            .trail(query.position);
        let Some(stub) = &mut self.population.stub else {
            return;
        };
        let server = stub.next_for(index, trail, cause, now);
        let Some(socket) = stub.socket(index, server) else {
            return;
        };
        stub.sending_to = server;
        if server != trail.server {
            self.ledger.count_failover(query.scheduled_at, cause);
        }
        self.wire.outgoing.clear();
        self.wire.positions.clear();
        let asked = (&*self.plan, &self.offer.mode);
        let unix_time = signing_time(&self.plan, driver);
        self.wire.render_datagram(asked, query, unix_time);
        let taken = driver.send_datagrams(socket, &self.wire.outgoing).accepted;
        self.ledger.count_datagrams(&self.wire.outgoing, taken, now);
        let octets = self.wire.outgoing.datagrams[0].length as usize;
        let pending = &mut self.population.clients[index as usize].pending;
        let failed = Trail {
            has_failed: true,
            ..trail
        };
        pending.set_trail(query.position, failed);
        if taken == 1 {
            self.population.count_attempt(
                &mut self.ledger.tally,
                (index, query.position),
                octets,
                now,
            );
            return self.send_copies(driver, index, taken);
        }
        // The schedule goes on as if it had been lost on the way.
        let counts = &mut self.ledger.of_query(query.scheduled_at).stub;
        counts.not_retransmitted += 1;
        if let Some(stub) = &mut self.population.stub {
            stub.note_attempt(
                &mut self.population.clients,
                (index, query.position),
                server,
                now,
            );
        }
    }

    /// Sends the first queries in `outgoing`, which the socket of one server has accepted, to the
    /// other servers too, if the policy queries all at once.
    pub(super) fn send_copies(&mut self, driver: &mut impl Driver, index: u32, accepted: usize) {
        let Some(stub) = &self.population.stub else {
            return;
        };
        if stub.policy.order != ServerOrder::All || accepted == 0 {
            return;
        }
        let first = stub.sending_to;
        let now = driver.now();
        self.wire.outgoing.datagrams.truncate(accepted);
        let octets = self
            .wire
            .outgoing
            .datagrams
            .iter()
            .map(|it| it.length as usize);
        self.wire.outgoing.octets.truncate(octets.sum());
        for server in (0..stub.servers()).filter(|server| *server != first) {
            let Some(socket) = self
                .population
                .stub
                .as_ref()
                .and_then(|stub| stub.socket(index, server))
            else {
                continue;
            };
            let taken = driver.send_datagrams(socket, &self.wire.outgoing).accepted;
            self.ledger.count_datagrams(&self.wire.outgoing, taken, now);
            for place in 0..accepted {
                let position = self.wire.positions[place];
                let pending = &mut self.population.clients[index as usize].pending;
                let counts = &mut self.ledger.of_query(pending.at(position).scheduled_at).stub;
                if place >= taken {
                    counts.not_retransmitted += 1;
                    continue;
                }
                counts.retransmitted += 1;
                counts.retransmitted_octets +=
                    u64::from(self.wire.outgoing.datagrams[place].length);
                counts.send_to(server, 1);
                let mut trail = pending.trail(position);
                trail.asked |= Trail::default().then(server).asked;
                pending.set_trail(position, trail);
            }
        }
    }

    /// One of a client's servers is not listening: its queries in flight there go to the next one.
    pub(super) fn handle_refusal(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        (socket, now): (SocketId, Instant),
    ) {
        let Some(stub) = &self.population.stub else {
            return;
        };
        if self.plan.transport.has_connections()
            || stub.servers() == 1
            || stub.policy.order == ServerOrder::All
        {
            return;
        }
        let server = stub.server_of_socket(socket);
        let mut next = self.population.clients[index as usize]
            .pending
            .oldest_in_flight();
        while let Some(query) = next {
            let pending = &self.population.clients[index as usize].pending;
            let trail = pending.trail(query.position);
            next = pending.next_in_flight_after(query);
            let has_left =
                (self.population.stub.as_ref()).is_some_and(|stub| stub.has_attempts_left(trail));
            if trail.server == server && has_left {
                self.ask_next_server(driver, index, &query, (Cause::Refused, now));
            }
        }
    }

    /// A query's attempt on a connection has expired, or its response was not accepted.
    pub(super) fn ask_on_next_connection(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        query: &Query,
        (cause, now): (Cause, Instant),
    ) {
        if cause == Cause::Rcode {
            return self.leave_for_rcode(driver, index, query, now);
        }
        let Some(connection) = self.population.connection(index) else {
            return;
        };
        // Connection set-up has its own timeout.
        if !connection.is_open() {
            return;
        }
        let socket = connection.socket;
        if connection.channel.is_quic() {
            self.close_quic(driver, index, now);
        }
        driver.close(socket, Close::Reset);
        let counts = self.ledger.of_event(now);
        counts.connections.closed_by_client += 1;
        counts.stub.connections_given_up += 1;
        self.leave_server(index, cause, now);
        self.lose_connection(driver, index, Ended::here(true), now);
    }

    /// Makes a query wait for a connection to another server. The present one carries no further
    /// query, and is closed once the others are answered.
    fn leave_for_rcode(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        query: &Query,
        now: Instant,
    ) {
        if !self.population.requeue_failed(index, query) {
            return;
        }
        self.ledger
            .change_in_flight(self.population.whose(index), now, -1);
        if let Some(stub) = &mut self.population.stub
            && stub.leave_connection(index, now)
        {
            self.ledger.count_failover(now, Cause::Rcode);
        }
        self.population.retire(index, Reason::Done);
        self.close_if_used_up(driver, index, now);
    }

    /// Makes the next connection of a client go to another server, if it has another.
    fn leave_server(&mut self, index: u32, cause: Cause, now: Instant) {
        let Some(stub) = &mut self.population.stub else {
            return;
        };
        stub.mark_dead(index, stub.server_of(index), now);
        if stub.leave_connection(index, now) {
            self.ledger.count_failover(now, cause);
        }
    }

    /// A connection of a client with several servers failed, or carried nothing. Returns the pause
    /// before the next attempt if it differs from that with one server: zero until every server has
    /// had its turn.
    pub(super) fn pause_between_servers(&mut self, index: u32, now: Instant) -> Option<Duration> {
        let stub = self.population.stub.as_ref()?;
        let servers = stub.server_count();
        if servers == 1 {
            return None;
        }
        self.leave_server(index, Cause::Connection, now);
        let failures = u32::from(self.population.clients[index as usize].failures);
        let has_begun = failures % servers != 0 && failures < u32::from(u8::MAX);
        Some(match has_begun {
            true => Duration::ZERO,
            false => pause_after(failures / servers),
        })
    }
}
