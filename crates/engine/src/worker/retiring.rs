//! Connections that retire: the target accepts no further request on them (GOAWAY of HTTP/2, RFC
//! 9113, section 6.8) and has yet to answer requests that it accepted. The client opens its next
//! connection at once, as a browser or a proxy does, and the old one is closed when the last of its
//! requests has been answered, has timed out or is lost.
//!
//! The code for the client's link serves retiring connections too: each replaces the link for the
//! duration of one event.
//!
//! A client waits for its open streams first where it cannot have two connections: from a fixed
//! local port, and with `stub`, which knows one server a client. It also waits over HTTP/3 (the
//! worker finds a QUIC connection and its timers by the client) and while `RETIRING_MAX` others
//! retire.

use driver::{Driver, Event, Received, SocketId};
use proto::Instant;

use super::Worker;
use super::population::client::{Client, Link};
use super::population::connection::{Channel, Connection, Reason};

/// Connections of a client that may retire at a time. Without a limit, a target that sends GOAWAY
/// on each connection and answers nothing would cost a socket a query.
const RETIRING_MAX: usize = 8;

impl Worker {
    /// Lets a client's connection retire if the target accepts no further request on it and still
    /// has some to answer; begins the next one.
    #[inline]
    pub(super) fn retire_if_going_away(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        now: Instant,
    ) {
        let connection = self.population.connection(index);
        if connection.is_some_and(|connection| is_going_away(connection)) {
            self.retire_connection(driver, index, now);
        }
    }

    #[cold]
    fn retire_connection(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let local = self.population.clients[index as usize].local;
        let has_fixed_port = local.is_some_and(|local| local.port() != 0);
        let waits = has_fixed_port
            || self.population.stub.is_some()
            || self.population.retiring_of(index).count() >= RETIRING_MAX;
        if waits {
            return;
        }
        let Client { link, session, .. } = &mut self.population.clients[index as usize];
        let Link::Connected(mut connection) = std::mem::replace(link, NO_LINK) else {
            return;
        };
        // Tickets that still come on it are older than those of the next connection.
        if let Some(memory) = self.wire.forget(&mut connection) {
            *session = memory;
        }
        let has_served = connection.served;
        let key = (index, connection.socket.index);
        self.population.retiring.insert(key, connection);
        self.plan_next_attempt(index, now, (has_served, false));
        self.connect_if_needed(driver, index, now);
        self.list_client(index, now);
    }

    /// Lets `serve` find each retiring connection of a client as its link, one after the other.
    pub(super) fn with_each_retiring(&mut self, index: u32, mut serve: impl FnMut(&mut Self)) {
        let sockets: Vec<SocketId> = self.population.retiring_of(index).collect();
        for socket in sockets {
            self.with_retiring((index, socket), &mut serve);
        }
    }

    /// The same for one of them.
    fn with_retiring(&mut self, (index, socket): (u32, SocketId), serve: impl FnOnce(&mut Self)) {
        let key = (index, socket.index);
        let Some(connection) = self.population.retiring.remove(&key) else {
            return;
        };
        let link = &mut self.population.clients[index as usize].link;
        let next = std::mem::replace(link, Link::Connected(connection));
        self.population.serves_retiring = true;
        serve(self);
        self.population.serves_retiring = false;
        let link = &mut self.population.clients[index as usize].link;
        if let Link::Connected(connection) = std::mem::replace(link, next) {
            self.population.retiring.insert(key, connection);
        }
    }

    /// Handles a delivery on a retiring connection.
    pub(super) fn handle_retiring(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        received: &Received,
    ) {
        let at = received.at;
        self.with_retiring((index, received.socket), |worker| match received.event {
            Event::Bytes => worker.handle_bytes(driver, index, received),
            Event::Writable => worker.handle_writable(driver, index, at),
            Event::EndOfStream => worker.handle_end(driver, index, None, at),
            Event::Failed(error) => worker.handle_end(driver, index, Some(error), at),
            _ => {}
        });
        self.has_room_again(index, at);
        self.retire_if_going_away(driver, index, at);
    }

    /// Closes retiring connections whose last queries have timed out.
    pub(super) fn check_retiring(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        if self.population.retiring_of(index).next().is_some() {
            self.with_each_retiring(index, |worker| worker.close_if_used_up(driver, index, now));
            self.retire_if_going_away(driver, index, now);
        }
    }

    /// A retiring connection is gone. The client has its next one, or its time is set.
    pub(super) fn forget_retiring(&mut self, index: u32) {
        let link = &mut self.population.clients[index as usize].link;
        if let Link::Connected(connection) = std::mem::replace(link, NO_LINK) {
            let mut connection = connection;
            self.ledger.open_connections.leave(&mut connection);
        }
    }

    /// Closes what still retires when the run is over.
    pub(super) fn close_retiring(&mut self, driver: &mut impl Driver, now: Instant) {
        let keys = self.population.retiring.keys();
        let mut clients: Vec<u32> = keys.map(|(client, _)| *client).collect();
        clients.dedup();
        for index in clients {
            self.with_each_retiring(index, |worker| {
                worker.close_connection(driver, index, Reason::Done, now);
            });
        }
    }
}

/// A placeholder for the link, which never connects.
const NO_LINK: Link = Link::Down {
    retry_at: Instant::FAR_FUTURE,
    on_demand: true,
};

/// True if the target accepts no further request on a connection, and has some to answer.
fn is_going_away(connection: &Connection) -> bool {
    matches!(connection.retired_for, Some(Reason::GoingAway(_)))
        && connection.is_open()
        && matches!(&connection.channel, Channel::Http2(session) if session.open_streams() > 0)
}
