//! Connections of clients that ask again: queries that outlive their connection, connections that
//! are given up because a query on them has no response, and the server of the next one.
//!
//! A client has one connection at a time. It goes to the next server when its connection could not
//! be set up or has carried no response, when it was given up, or when an RCODE says so. One that
//! has carried responses and then ends is opened again at the same server first.

use std::time::Duration;

use driver::{Close, Driver};
use proto::Instant;
use proto::pending::{Query, Trail};

use super::connections::Ended;
use super::stub::Cause;
use super::{Phase, Worker};
use crate::client::{Channel, Reason, Role};

impl Worker {
    /// The time of a query's attempt on a connection is over, or its response was not taken.
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
        let Some(connection) = self.clients[index as usize].connection() else {
            return;
        };
        // Its set-up has a time of its own.
        if !connection.is_open() {
            return;
        }
        let socket = connection.socket;
        if matches!(connection.channel, Channel::Quic { .. }) {
            self.close_quic(driver, index, now);
        }
        driver.close(socket, Close::Reset);
        let counts = &mut self.tally.of_event(now).counts;
        counts.connections.closed_by_client += 1;
        counts.stub.connections_given_up += 1;
        self.leave_server(index, cause, now);
        self.lose_connection(driver, index, Ended::here(true), now);
    }

    /// Has a query wait for a connection to another server. The one there is carries no further
    /// query, and is closed when it has the responses to the others.
    fn leave_for_rcode(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        query: &Query,
        now: Instant,
    ) {
        if !self.requeue_failed(index, query) {
            return;
        }
        self.change_in_flight(index, now, -1);
        if let Some(stub) = &mut self.stub
            && stub.leave_connection(index, now)
        {
            self.count_failover(now, Cause::Rcode);
        }
        self.retire(index, Reason::Done);
        self.close_if_used_up(driver, index, now);
    }

    /// Has the next connection of a client go to another server, if it has another.
    fn leave_server(&mut self, index: u32, cause: Cause, now: Instant) {
        let Some(stub) = &mut self.stub else { return };
        stub.mark_dead(index, stub.server_of(index), now);
        if stub.leave_connection(index, now) {
            self.count_failover(now, cause);
        }
    }

    /// Takes back a query whose attempt has failed, if it has another; it waits for the next
    /// connection then.
    pub(super) fn requeue_failed(&mut self, index: u32, query: &Query) -> bool {
        let Some(stub) = &self.stub else {
            return false;
        };
        let client = &mut self.clients[index as usize];
        let trail = client.pending.trail(query.position);
        let is_over = self.phase == Phase::Finished || client.role == Role::Fallback;
        if is_over || !stub.has_attempts_left(trail) {
            return false;
        }
        client.pending.requeue(query.position);
        let failed = Trail {
            has_failed: true,
            ..trail
        };
        client.pending.set_trail(query.position, failed);
        true
    }

    /// A connection of a client with several servers did not come to be, or carried nothing.
    /// Returns how long to pause before the next attempt, if that is another than for one server:
    /// not at all until every server has had its turn.
    pub(super) fn pause_between_servers(&mut self, index: u32, now: Instant) -> Option<Duration> {
        let stub = self.stub.as_ref()?;
        let servers = stub.server_count();
        if servers == 1 {
            return None;
        }
        self.leave_server(index, Cause::Connection, now);
        let failures = u32::from(self.clients[index as usize].failures);
        let has_begun = failures % servers != 0 && failures < u32::from(u8::MAX);
        Some(match has_begun {
            true => Duration::ZERO,
            false => super::connections::pause_after(failures / servers),
        })
    }
}
