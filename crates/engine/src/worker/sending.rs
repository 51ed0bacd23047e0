//! Sending: the waiting queries of each client that has some, in one batch a client.

use std::time::Duration;

use driver::{Driver, SocketError, SocketId};
use proto::Instant;
use proto::pending::State;
use script::End;

use super::Worker;
use super::population::client::Link;
use super::population::connection::Channel;
use super::wire::{BATCH_MAX, signing_time};
use crate::query_end::QueryEnd;

impl Worker {
    /// Sends the waiting queries of all clients that are listed for it.
    pub(super) fn send_listed(&mut self, driver: &mut impl Driver) {
        if self.population.to_send.is_empty() {
            return;
        }
        let mut place = 0;
        while let Some(&index) = self.population.to_send.get(place) {
            place += 1;
            self.population.clients[index as usize].listed.to_send = false;
            self.send_waiting(driver, index);
        }
        self.population.to_send.clear();
    }

    /// Sends one client's waiting queries, as far as its socket or connection accepts them.
    pub(super) fn send_waiting(&mut self, driver: &mut impl Driver, index: u32) {
        loop {
            let client = &self.population.clients[index as usize];
            let waiting = client.pending.waiting();
            if waiting == 0 {
                return;
            }
            let sent = match &client.link {
                Link::Datagram {
                    socket,
                    blocked: false,
                } => self.send_datagrams(driver, index, *socket),
                Link::Datagram { .. } => false,
                Link::Connected(connection) if connection.takes_queries() => {
                    self.send_on_connection(driver, index)
                }
                Link::Connected(_) => false,
                Link::Down { .. } => {
                    let now = driver.now();
                    self.connect_if_needed(driver, index, now);
                    false
                }
            };
            if !sent || self.population.clients[index as usize].pending.waiting() >= waiting {
                break;
            }
        }
        // Queries left waiting may time out before the connection is usable.
        let pending = &mut self.population.clients[index as usize].pending;
        if pending.waiting() > 0
            && let Some(query) = pending.next_waiting()
        {
            self.population
                .arm(index, query.scheduled_at + self.plan.timeout);
        }
    }

    /// Sends one batch of datagrams; true if the socket accepted all of it.
    fn send_datagrams(&mut self, driver: &mut impl Driver, index: u32, socket: SocketId) -> bool {
        let now = driver.now();
        let socket = self.population.choose_socket(index, socket, now);
        let unix_time = signing_time(&self.plan, driver);
        let most = match &self.population.stub {
            Some(stub) if stub.sends_singly() => 1,
            _ => BATCH_MAX,
        };
        let client = &mut self.population.clients[index as usize];
        let (asked, waiting) = (
            (&*self.plan, &self.offer.mode),
            client.pending.waiting_queries(most),
        );
        let is_watched = self.ledger.is_watched;
        self.wire
            .render_datagrams(asked, waiting, is_watched, unix_time);
        let outcome = driver.send_datagrams(socket, &self.wire.outgoing);
        let queries = self.wire.outgoing.datagrams.len();
        self.ledger
            .count_datagrams(&self.wire.outgoing, outcome.accepted, now);
        self.count_sent(index, outcome.accepted, now);
        if self.ledger.stamps.is_some() {
            let pending = &self.population.clients[index as usize].pending;
            let sent = (index, outcome.accepted);
            self.ledger.note_sent(pending, &self.wire.positions, sent);
            self.ledger.read_send_stamps(driver, index, socket);
        }
        self.after_sending(index, outcome.accepted, now);
        if self.population.stub.is_some() {
            self.send_copies(driver, index, outcome.accepted);
        }
        if outcome.accepted == queries {
            return true;
        }
        let Some(error) = outcome.error else {
            if let Link::Datagram { blocked, .. } =
                &mut self.population.clients[index as usize].link
            {
                *blocked = true;
            }
            return false;
        };
        // The kernel refused the next datagram; it may accept the others.
        self.give_up_next(index, error, now);
        true
    }

    /// Sends one batch of queries on a connection; true if it accepted all of them.
    #[inline(never)]
    fn send_on_connection(&mut self, driver: &mut impl Driver, index: u32) -> bool {
        let client = &mut self.population.clients[index as usize];
        let (waiting, in_flight) = (client.pending.waiting(), client.pending.in_flight());
        let Some(connection) = client.connection() else {
            return false;
        };
        let room = connection.room(in_flight, &self.plan.connections);
        if room < waiting {
            self.ledger.count_kept_waiting(client, room);
        }
        if room == 0 {
            return false;
        }
        let now = driver.now();
        let room = (room as usize).min(BATCH_MAX);
        let unix_time = signing_time(&self.plan, driver);
        self.render_on_connection(index, room, (unix_time, now));
        self.population.sends_on_connection(index);
        self.count_batch(index, now);
        match self.population.quic_key(index) {
            Some(_) => self.drive_quic(driver, index, now),
            None => self.write_plaintext(driver, index, now),
        }
    }

    /// Renders up to `room` waiting queries for the channel of the client's connection.
    #[inline(always)]
    fn render_on_connection(
        &mut self,
        index: u32,
        room: usize,
        (unix_time, now): (Duration, Instant),
    ) {
        let client = &mut self.population.clients[index as usize];
        let Link::Connected(connection) = &client.link else {
            return;
        };
        let asked = (&*self.plan, &self.offer.mode);
        let is_watched = self.ledger.is_watched;
        let wire = &mut self.wire;
        match connection.channel {
            Channel::Framed(_) => {
                let waiting = client.pending.waiting_queries(room);
                wire.render_frames(asked, waiting, is_watched, unix_time);
            }
            Channel::Http2(_) => {
                wire.render_requests(asked, client, (room, is_watched), unix_time);
            }
            Channel::Quic { .. } => {
                wire.open_streams(asked, client, (room, is_watched), (unix_time, now));
            }
        }
    }

    /// Counts the queries of `outgoing` as sent on the client's connection.
    fn count_batch(&mut self, index: u32, now: Instant) {
        let queries = self.wire.outgoing.datagrams.len() as u32;
        self.count_sent(index, queries as usize, now);
        let client = &mut self.population.clients[index as usize];
        client.kept_waiting = client.kept_waiting.saturating_sub(queries);
        if let Some(connection) = client.connection() {
            connection.queries_sent = connection.queries_sent.saturating_add(queries);
            self.ledger
                .tally
                .connection_is_active(now, &mut connection.counted.active_in);
            let is_early = connection.early.is_open;
            self.ledger.open_connections.review(connection);
            if is_early {
                connection.early.was_used = true;
                let counts = self.ledger.connections(now);
                counts.early_data.queries += u64::from(queries);
            }
        }
        self.after_sending(index, queries as usize, now);
    }

    /// Counts the first `queries` of the batch as sent at `now`, and as attempts where a query may
    /// have several.
    #[inline]
    fn count_sent(&mut self, index: u32, queries: usize, now: Instant) {
        let asks_again = self.population.stub.is_some();
        let client = &mut self.population.clients[index as usize];
        let outgoing = &self.wire.outgoing;
        self.ledger
            .count_sent(client, outgoing, (queries, asks_again), now);
        if asks_again {
            for place in 0..queries {
                let octets = outgoing.datagrams[place].length as usize;
                let which = (index, self.wire.positions[place]);
                self.population
                    .count_attempt(&mut self.ledger.tally, which, octets, now);
            }
        }
    }

    #[inline(always)]
    fn after_sending(&mut self, index: u32, queries: usize, now: Instant) {
        if queries > 0 {
            self.ledger
                .change_in_flight(self.population.whose(index), now, queries as i64);
            self.population.arm(index, now + self.plan.timeout);
        }
    }

    /// Ends the query that has waited longest: the kernel refused to send it.
    fn give_up_next(&mut self, index: u32, error: SocketError, now: Instant) {
        let client = &mut self.population.clients[index as usize];
        let Some(query) = client.pending.next_waiting() else {
            return;
        };
        client.pending.end(query.position, State::Lost);
        let whose = (client.role, index);
        let end = QueryEnd::End(End::NotSent);
        self.report_end(whose, &query, end, query.scheduled_at);
        self.ledger.count_refused(&query, error);
        self.offer.release(1);
        self.list_client(index, now);
    }

    /// A blocked socket or stream accepts bytes again.
    pub(super) fn handle_writable(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        if self.plan.transport.is_quic() {
            return self.handle_quic_writable(driver, index, now);
        }
        let broken = match &mut self.population.clients[index as usize].link {
            Link::Datagram { blocked, .. } => {
                *blocked = false;
                None
            }
            Link::Connected(connection) if !connection.unsent.octets.is_empty() => {
                match driver.send_bytes(connection.socket, &connection.unsent.octets) {
                    Ok(taken) if taken == connection.unsent.octets.len() => {
                        self.ledger.of_event(now).wire.write(taken);
                        connection.unsent.octets = Vec::new();
                        None
                    }
                    Ok(taken) => {
                        self.ledger.of_event(now).wire.write(taken);
                        connection.unsent.octets.drain(..taken);
                        if taken > 0 {
                            connection.unsent.blocked_at = now;
                        }
                        None
                    }
                    Err(error) => Some(error),
                }
            }
            _ => None,
        };
        match broken {
            Some(error) => self.handle_end(driver, index, Some(error), now),
            None => {
                self.send_waiting(driver, index);
                self.list_client(index, now);
            }
        }
    }
}
