//! Messages received: each is matched to its query by socket, ID and question, or counted as what
//! it is instead.

use driver::{Driver, Received, SocketError, SocketId};
use proto::Instant;
use proto::pending::{Query, State};
use proto::response::{self, Header};

use super::scripted::{Told, is_answered_by};
use super::{EndedBy, Worker};
use crate::client::{Link, Role};

impl Worker {
    /// Datagrams on the socket of client `owner`.
    pub(super) fn handle_datagrams(&mut self, owner: u32, received: &Received) {
        let in_flight_before = self.clients[owner as usize].pending.in_flight();
        let peer = match &mut self.stub {
            None => self.plan.target,
            Some(stub) => {
                stub.answering = stub.server_of_socket(received.socket);
                stub.address(stub.answering)
            }
        };
        for datagram in &received.datagrams {
            if datagram.from != peer {
                self.tally
                    .of_event(received.at)
                    .counts
                    .unexpected
                    .wrong_source += 1;
                continue;
            }
            self.handle_message(owner, received.datagram(*datagram), received.at);
        }
        self.after_messages(owner, in_flight_before, received.at);
    }

    /// Accounts for the responses that a batch brought to client `owner`.
    pub(super) fn after_messages(&mut self, owner: u32, in_flight_before: u32, at: Instant) {
        let client = &self.clients[owner as usize];
        let ended = in_flight_before - client.pending.in_flight();
        if ended == 0 {
            return;
        }
        let role = client.role;
        self.change_in_flight(owner, at, -i64::from(ended));
        if role == Role::Primary {
            self.offer.release(ended);
        }
        self.has_room_again(owner, at);
    }

    /// Uses the room that a client's connection may have again: for the queries that wait for it,
    /// and for further ones.
    pub(super) fn has_room_again(&mut self, owner: u32, at: Instant) {
        let client = &mut self.clients[owner as usize];
        if client.pending.waiting() > 0 && !client.dirty {
            client.dirty = true;
            self.dirty.push(owner);
        }
        self.list_client(owner, at);
    }

    /// Notes that the queries in flight at client `owner` have become more or fewer. Those of
    /// fallback clients are counted apart, here too.
    pub(super) fn change_in_flight(&mut self, owner: u32, at: Instant, change: i64) {
        if self.clients[owner as usize].role == Role::Primary {
            self.tally.change_in_flight(at, change);
            if change != 0 {
                self.statistics.touch(owner, at);
            }
        }
    }

    /// One message for client `owner`.
    pub(super) fn handle_message(&mut self, owner: u32, message: &[u8], at: Instant) {
        let Some(header) = Header::parse(message).filter(|header| header.is_response) else {
            self.tally.of_event(at).counts.unexpected.malformed += 1;
            return;
        };
        let pending = &self.clients[owner as usize].pending;
        let known = pending
            .find(header.id)
            .filter(|query| query.state != State::Waiting);
        let Some(query) = known else {
            self.tally.of_event(at).counts.unexpected.wrong_id += 1;
            return;
        };
        let scratch = &mut self.message;
        if !is_answered_by((&self.plan, &self.offer), query.question, message, scratch) {
            self.tally.of_event(at).counts.unexpected.wrong_question += 1;
            return;
        }
        if self.stub.is_some() && self.is_of_stranger(owner, &query) {
            self.tally.of_event(at).counts.unexpected.wrong_source += 1;
            return;
        }
        match query.state {
            State::InFlight => self.complete(owner, query, &header, message, at),
            State::Answered => self.tally.of_query(query.scheduled_at).counts.duplicate += 1,
            _ => self.tally.of_query(query.scheduled_at).counts.late += 1,
        }
    }

    /// A response to a query in flight.
    pub(super) fn complete(
        &mut self,
        owner: u32,
        query: Query,
        header: &Header,
        message: &[u8],
        at: Instant,
    ) {
        if self.stub.is_some() && self.goes_on(owner, &query, message) {
            return;
        }
        let client = &mut self.clients[owner as usize];
        client.pending.end(query.position, State::Answered);
        let latency_ns = at.nanos_since(query.scheduled_at);
        if let Link::Connected(connection) = &mut client.link {
            self.tally
                .connection_is_active(at, &mut connection.active_in);
        }
        let interval = self.tally.of_query(query.scheduled_at);
        if let Link::Connected(connection) = &mut client.link
            && !connection.served
            && client.role == Role::Primary
        {
            self.connections_silent -= u64::from(connection.is_silent());
            connection.served = true;
            let times = &mut interval.distributions.connections;
            times.first_query.record(at.nanos_since(query.sent_at));
            // A connection that was there before its first query did not make it wait.
            let idle_ns = query.sent_at.nanos_since(connection.usable_at);
            let waited = query.scheduled_at <= connection.usable_at;
            let idle_ns = if waited { 0 } else { idle_ns };
            times
                .set_up_and_first_query
                .record(at.nanos_since(connection.attempted_at) - idle_ns);
        }
        if client.role == Role::Fallback {
            interval.counts.tcp_fallback.responses += 1;
            interval.distributions.tcp_fallback.record(latency_ns);
            let whose = (Role::Fallback, owner);
            self.tell(whose, &query, Told::Response(message), at);
            return;
        }
        interval.counts.responses += 1;
        interval.counts.received_octets += message.len() as u64;
        let rcode = response::extended_rcode(message);
        interval.counts.rcodes.record(rcode);
        interval.distributions.latency.record(latency_ns);
        interval
            .distributions
            .service
            .record(at.nanos_since(query.sent_at));
        if query.scheduled_at >= self.timeline.run_started_at {
            self.statistics
                .count_response(owner, query.number, latency_ns, rcode);
        }
        // The window of a run by queries reaches to its last response.
        let is_before_end = at < self.run_end || self.ended_by == EndedBy::Queries;
        if at >= self.timeline.run_started_at && is_before_end {
            self.tally.responses_in_window += 1;
        }
        self.tally.last_response_at = at;
        if header.truncated {
            self.tally.of_query(query.scheduled_at).counts.truncated += 1;
            if self.plan.tcp_fallback {
                self.fall_back(owner, query);
            }
        }
        let whose = (Role::Primary, owner);
        self.tell(whose, &query, Told::Response(message), at);
    }

    /// Asks the truncated question again over TCP.
    fn fall_back(&mut self, owner: u32, query: Query) {
        let index = owner + self.primaries;
        let client = &mut self.clients[index as usize];
        let submitted = client.pending.submit(query.scheduled_at, query.question);
        let counts = &mut self.tally.of_query(query.scheduled_at).counts.tcp_fallback;
        counts.sent += 1;
        if !submitted {
            counts.connection_losses += 1;
            return;
        }
        self.offer.ask_again(&query);
        if !client.dirty {
            client.dirty = true;
            self.dirty.push(index);
        }
    }

    /// An ICMP error for a datagram sent earlier. A query over UDP times out; a QUIC connection
    /// that is being opened has failed.
    pub(super) fn handle_datagram_error(
        &mut self,
        driver: &mut impl Driver,
        owner: u32,
        (socket, error): (SocketId, SocketError),
        at: Instant,
    ) {
        if error == SocketError::Refused {
            self.tally.of_event(at).counts.port_unreachable += 1;
            self.handle_refusal(driver, owner, (socket, at));
        }
        let connection = self.clients[owner as usize].connection();
        if connection.is_some_and(|connection| !connection.is_open()) {
            self.handle_end(driver, owner, Some(error), at);
        }
    }
}
