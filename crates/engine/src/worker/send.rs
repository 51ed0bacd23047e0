//! Sending: the waiting queries of each client that has some, in one batch a client.

use driver::{Driver, SocketId};
use proto::Instant;
use proto::framing;
use proto::pending::{Query, State};

use super::Worker;
use crate::client::{Link, Progress, Role};

/// Queries of one client sent in one batch; the next batch follows at once.
const BATCH_MAX: usize = 256;

impl Worker {
    /// Sends the waiting queries of all clients that were marked dirty.
    pub(super) fn send_dirty(&mut self, driver: &mut impl Driver) {
        if self.dirty.is_empty() {
            return;
        }
        let mut dirty = std::mem::take(&mut self.dirty);
        for index in dirty.drain(..) {
            self.clients[index as usize].dirty = false;
            self.send_waiting(driver, index);
        }
        // Sending marks no client dirty, so nothing was added meanwhile.
        self.dirty = dirty;
    }

    /// Sends what waits at one client, as far as its socket or connection takes it.
    pub(super) fn send_waiting(&mut self, driver: &mut impl Driver, index: u32) {
        loop {
            let client = &self.clients[index as usize];
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
                Link::Stream(connection) if connection.progress == Progress::Usable => {
                    self.send_on_stream(driver, index)
                }
                Link::Stream(_) => false,
                Link::Down { .. } => {
                    let now = driver.now();
                    self.connect_if_needed(driver, index, now);
                    false
                }
            };
            if !sent || self.clients[index as usize].pending.waiting() >= waiting {
                break;
            }
        }
        // What still waits may time out before its connection is usable.
        let client = &mut self.clients[index as usize];
        if let Some(query) = client.pending.next_waiting() {
            let at = query.scheduled_at + self.plan.timeout;
            self.arm(index, at);
        }
    }

    /// One batch of datagrams; true if all of it was taken.
    fn send_datagrams(&mut self, driver: &mut impl Driver, index: u32, socket: SocketId) -> bool {
        let now = driver.now();
        self.render_datagrams(index, driver.unix_time());
        let outcome = driver.send_datagrams(socket, &self.outgoing);
        let queries = self.positions.len();
        for place in 0..outcome.accepted {
            let octets = self.outgoing.datagrams[place].length as usize;
            self.count_sent(index, self.positions[place], octets, now);
        }
        self.after_sending(index, outcome.accepted, now);
        if outcome.accepted == queries {
            return true;
        }
        if outcome.error.is_none() {
            if let Link::Datagram { blocked, .. } = &mut self.clients[index as usize].link {
                *blocked = true;
            }
            return false;
        }
        // The kernel refused this one datagram; the others may fare better.
        self.give_up(index, self.positions[outcome.accepted]);
        true
    }

    /// Copies waiting queries into `outgoing`, in order, without marking them as sent.
    fn render_datagrams(&mut self, index: u32, unix_time: std::time::Duration) {
        self.outgoing.clear();
        self.positions.clear();
        let client = &mut self.clients[index as usize];
        let mut next = client.pending.next_waiting();
        while let Some(query) = next {
            let template = self.plan.questions.get(query.question as usize);
            let start = self.outgoing.octets.len();
            self.outgoing.octets.extend_from_slice(template.message);
            self.outgoing.octets[start..start + 2].copy_from_slice(&query.id.to_be_bytes());
            if let Some(key) = &self.plan.tsig {
                key.sign(&mut self.outgoing.octets, start, unix_time);
            }
            self.outgoing.finish(start, None);
            self.positions.push(query.position);
            if self.positions.len() == BATCH_MAX {
                break;
            }
            next = client.pending.next_waiting_after(query);
        }
    }

    /// One batch of messages on a stream; true if all of it was taken.
    fn send_on_stream(&mut self, driver: &mut impl Driver, index: u32) -> bool {
        let client = &mut self.clients[index as usize];
        let Link::Stream(connection) = &mut client.link else {
            return false;
        };
        let most = self.plan.queries_per_connection.unwrap_or(u32::MAX);
        let room = (most - connection.queries_sent.min(most)) as usize;
        if room == 0 || !connection.unsent.is_empty() {
            return false;
        }
        let now = driver.now();
        self.render_frames(index, room.min(BATCH_MAX), driver.unix_time());
        for place in 0..self.positions.len() {
            let octets = self.outgoing.datagrams[place].length as usize;
            self.count_sent(index, self.positions[place], octets, now);
        }
        let queries = self.positions.len();
        if let Link::Stream(connection) = &mut self.clients[index as usize].link {
            let was_silent = connection.is_silent();
            connection.queries_sent = connection.queries_sent.saturating_add(queries as u32);
            self.connections_silent += u64::from(connection.is_silent() && !was_silent);
        }
        self.after_sending(index, queries, now);
        self.write_plaintext(driver, index, now)
    }

    /// Frames up to `room` waiting queries into `plain_out`; their lengths go to `outgoing`.
    fn render_frames(&mut self, index: u32, room: usize, unix_time: std::time::Duration) {
        self.outgoing.clear();
        self.positions.clear();
        self.plain_out.clear();
        let client = &mut self.clients[index as usize];
        let mut next = client.pending.next_waiting();
        while let Some(query) = next {
            let template = self.plan.questions.get(query.question as usize);
            let start = self.plain_out.len();
            framing::write_message(template.message, &mut self.plain_out);
            let message = start + 2;
            self.plain_out[message..message + 2].copy_from_slice(&query.id.to_be_bytes());
            if let Some(key) = &self.plan.tsig {
                key.sign(&mut self.plain_out, message, unix_time);
                let length = (self.plain_out.len() - message) as u16;
                self.plain_out[start..message].copy_from_slice(&length.to_be_bytes());
            }
            let length = (self.plain_out.len() - message) as u32;
            self.outgoing
                .datagrams
                .push(driver::OutgoingDatagram { length, to: None });
            self.positions.push(query.position);
            if self.positions.len() == room {
                break;
            }
            next = client.pending.next_waiting_after(query);
        }
    }

    /// Writes `plain_out` to the client's stream, through TLS if it has it.
    fn write_plaintext(&mut self, driver: &mut impl Driver, index: u32, now: Instant) -> bool {
        let Link::Stream(connection) = &mut self.clients[index as usize].link else {
            return false;
        };
        let socket = connection.socket;
        let octets = match &mut connection.tls {
            None => &self.plain_out,
            Some(tls) => {
                tls.write(&self.plain_out);
                self.cipher_out.clear();
                tls.poll_transmit(&mut self.cipher_out);
                &self.cipher_out
            }
        };
        match driver.send_bytes(socket, octets) {
            Ok(taken) if taken == octets.len() => true,
            Ok(taken) => {
                // The timer of the queries in these octets is due when patience ends.
                connection.keep_unsent(&octets[taken..], now);
                false
            }
            Err(error) => {
                self.handle_end(driver, index, Some(error), now);
                false
            }
        }
    }

    #[inline]
    fn count_sent(&mut self, index: u32, position: u32, octets: usize, now: Instant) {
        let client = &mut self.clients[index as usize];
        let scheduled_at = client.pending.mark_sent(position, now);
        if client.role == Role::Fallback {
            // Counted when it was decided on, for it may never get a connection.
            return;
        }
        let interval = self.tally.of_query(scheduled_at);
        interval.counts.sent += 1;
        interval.counts.sent_octets += octets as u64;
        interval
            .distributions
            .send_lateness
            .record(now.nanos_since(scheduled_at));
    }

    fn after_sending(&mut self, index: u32, queries: usize, now: Instant) {
        if queries > 0 {
            self.change_in_flight(index, now, queries as i64);
            self.arm(index, now + self.plan.timeout);
        }
    }

    /// Ends a waiting query that the kernel refused to send.
    fn give_up(&mut self, index: u32, position: u32) {
        let client = &mut self.clients[index as usize];
        let query: Query = client.pending.at(position);
        client.pending.end(position, State::Lost);
        self.tally
            .of_query(query.scheduled_at)
            .counts
            .not_sent
            .send_failed += 1;
        self.offer.release(1);
        self.list_client(index);
    }

    /// A socket or stream that was blocked takes octets again.
    pub(super) fn handle_writable(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let broken = match &mut self.clients[index as usize].link {
            Link::Datagram { blocked, .. } => {
                *blocked = false;
                None
            }
            Link::Stream(connection) if !connection.unsent.is_empty() => {
                match driver.send_bytes(connection.socket, &connection.unsent) {
                    Ok(taken) if taken == connection.unsent.len() => {
                        connection.unsent = Vec::new();
                        None
                    }
                    Ok(taken) => {
                        connection.unsent.drain(..taken);
                        if taken > 0 {
                            connection.blocked_at = now;
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
                self.list_client(index);
            }
        }
    }
}
