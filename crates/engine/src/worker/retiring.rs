//! Connections that retire: the target takes no further request on them (GOAWAY of HTTP/2, RFC
//! 9113, section 6.8) and has yet to answer requests that it took. The client opens its next
//! connection at once, as a browser or a proxy does, and the old one is closed when the last of
//! its requests has been answered, has timed out or is lost.
//!
//! A retiring connection is served by the code for the client's link, whose place it takes for the
//! time of one event.
//!
//! A client waits for its open streams first where it cannot have two connections: while another
//! one retires, from a fixed local port, and with `stub`, which knows one server a client. It also
//! waits over HTTP/3: the worker finds a QUIC connection and its timers by the client.

use driver::{Driver, Event, Received};
use proto::Instant;

use super::Worker;
use super::population::client::{Client, Link};
use super::population::connection::{Channel, Connection, Reason};

impl Worker {
    /// Lets a client's connection retire if the target takes no further request on it and still
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
        let client = &mut self.population.clients[index as usize];
        let has_fixed_port = client.local.is_some_and(|local| local.port() != 0);
        let waits = has_fixed_port
            || self.population.stub.is_some()
            || self.population.retiring.contains_key(&index);
        if waits {
            return;
        }
        let Client { link, session, .. } = client;
        let Link::Connected(mut connection) = std::mem::replace(link, NO_LINK) else {
            return;
        };
        // Tickets that still come on it are older than those of the next connection.
        if let Some(memory) = self.wire.forget(&mut connection) {
            *session = memory;
        }
        let has_served = connection.served;
        self.population.retiring.insert(index, connection);
        self.plan_next_attempt(index, now, (has_served, false));
        self.connect_if_needed(driver, index, now);
        self.list_client(index, now);
    }

    /// Lets `serve` find the retiring connection of a client as its link, if it has one.
    pub(super) fn with_retiring(&mut self, index: u32, serve: impl FnOnce(&mut Self)) {
        let Some(connection) = self.population.retiring.remove(&index) else {
            return;
        };
        let link = &mut self.population.clients[index as usize].link;
        let next = std::mem::replace(link, Link::Connected(connection));
        self.population.serves_retiring = true;
        serve(self);
        self.population.serves_retiring = false;
        let link = &mut self.population.clients[index as usize].link;
        if let Link::Connected(connection) = std::mem::replace(link, next) {
            self.population.retiring.insert(index, connection);
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
        self.with_retiring(index, |worker| match received.event {
            Event::Bytes => worker.handle_bytes(driver, index, received),
            Event::Writable => worker.handle_writable(driver, index, at),
            Event::EndOfStream => worker.handle_end(driver, index, None, at),
            Event::Failed(error) => worker.handle_end(driver, index, Some(error), at),
            _ => {}
        });
        self.has_room_again(index, at);
        self.retire_if_going_away(driver, index, at);
    }

    /// Closes a retiring connection whose last queries have timed out.
    pub(super) fn check_retiring(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        if self.population.retiring.contains_key(&index) {
            self.with_retiring(index, |worker| worker.close_if_used_up(driver, index, now));
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
        let clients: Vec<u32> = self.population.retiring.keys().copied().collect();
        for index in clients {
            self.with_retiring(index, |worker| {
                worker.close_connection(driver, index, Reason::Done, now);
            });
        }
    }
}

/// The link of a client between two of its connections. It begins none by itself.
const NO_LINK: Link = Link::Down {
    retry_at: Instant::FAR_FUTURE,
    on_demand: true,
};

/// True if the target takes no further request on a connection, and has some to answer.
fn is_going_away(connection: &Connection) -> bool {
    matches!(connection.retired_for, Some(Reason::GoingAway(_)))
        && connection.is_open()
        && matches!(&connection.channel, Channel::Http2(session) if session.open_streams() > 0)
}
