//! Messages received: each is matched to its query by socket, ID and question, or counted by what
//! is wrong with it.

use driver::{Driver, Received, SocketError, SocketId};
use load::question_source::Question;
use proto::Instant;
use proto::pending::{Query, State};
use proto::response::{self, Header, ResponseKind};

use super::Worker;
#[cfg(doc)]
use super::ledger::Ledger;
use super::population::client::{Link, Role};
use super::wire::question::is_answered_by;
use crate::query_end::QueryEnd;

impl Worker {
    /// Datagrams on the socket of client `owner`.
    pub(super) fn handle_datagrams(&mut self, owner: u32, received: &Received) {
        let in_flight_before = self.population.clients[owner as usize].pending.in_flight();
        let peer = match &mut self.population.stub {
            None => self.plan.target,
            Some(stub) => {
                stub.answering = stub.server_of_socket(received.socket);
                stub.address(stub.answering)
            }
        };
        let only_counts = self
            .ledger
            .only_counts(&self.population, owner, received.at);
        for (place, datagram) in received.datagrams.iter().enumerate() {
            // With stamps, `only_counts` is false.
            if !only_counts && let Some(stamps) = &mut self.ledger.stamps {
                stamps.arrived(received.arrived.get(place).copied().unwrap_or_default());
            }
            if !received.is_from_peer && datagram.from != peer {
                let counts = self.ledger.of_event(received.at);
                counts.unexpected.wrong_source += 1;
                continue;
            }
            let message = received.datagram(*datagram);
            self.handle_message((owner, only_counts), message, received.at);
        }
        self.after_messages(owner, in_flight_before, received.at);
    }

    /// Accounts for the responses that a batch brought to client `owner`.
    #[inline]
    pub(super) fn after_messages(&mut self, owner: u32, in_flight_before: u32, at: Instant) {
        let client = &self.population.clients[owner as usize];
        let ended = in_flight_before - client.pending.in_flight();
        if ended == 0 {
            return;
        }
        let role = client.role;
        self.ledger
            .change_in_flight((role, owner), at, -i64::from(ended));
        if role == Role::Primary {
            self.offer.release(ended);
        }
        self.has_room_again(owner, at);
    }

    /// Uses room that a client's connection may have again: for waiting queries, and for new ones.
    #[inline]
    pub(super) fn has_room_again(&mut self, owner: u32, at: Instant) {
        if self.population.clients[owner as usize].pending.waiting() > 0 {
            self.population.send_later(owner);
        }
        self.list_client(owner, at);
    }

    /// One message for client `owner`, with what [`Ledger::only_counts`] says of it.
    #[inline(always)]
    pub(super) fn handle_message(
        &mut self,
        (owner, only_counts): (u32, bool),
        message: &[u8],
        at: Instant,
    ) {
        if !only_counts || !self.is_plain_response(owner, message) {
            self.handle_any_message(owner, message, at);
        }
    }

    /// Handles a message if it is what nearly all are: a whole response to a query in flight that
    /// repeats the question of its template. False if it is anything else; then it has no effect.
    #[inline(always)]
    fn is_plain_response(&mut self, owner: u32, message: &[u8]) -> bool {
        let header = Header::parse(message);
        let Some(header) = header.filter(|header| header.is_response && !header.truncated) else {
            return false;
        };
        let pending = &mut self.population.clients[owner as usize].pending;
        let Some(found) = pending.find_in_flight(header.id) else {
            return false;
        };
        let (asked, questions) = (found.question(), &self.plan.questions);
        if !asked.is_plain() || !questions.is_repeated_by(asked.template as usize, message) {
            return false;
        }
        let instants = found.answer();
        self.ledger
            .count_response(instants, ResponseKind::of(message), message);
        true
    }

    /// Any message for client `owner`.
    fn handle_any_message(&mut self, owner: u32, message: &[u8], at: Instant) {
        let unexpected = &mut self.ledger.of_event(at).unexpected;
        let Some(header) = Header::parse(message) else {
            unexpected.malformed += 1;
            return;
        };
        if !header.is_response && !self.plan.matches_by_id_alone {
            unexpected.queries += 1;
            return;
        }
        let pending = &self.population.clients[owner as usize].pending;
        let known = pending
            .find(header.id)
            .filter(|query| query.state != State::Waiting);
        let Some(query) = known else {
            self.ledger.of_event(at).unexpected.wrong_id += 1;
            return;
        };
        if !self.is_answered(query.question, message) {
            self.ledger.of_event(at).unexpected.wrong_question += 1;
            return;
        }
        if self.population.stub.is_some()
            && self.population.is_of_stranger(&self.plan, owner, &query)
        {
            self.ledger.of_event(at).unexpected.wrong_source += 1;
            return;
        }
        match query.state {
            State::InFlight => self.complete(owner, &query, message, at),
            State::Answered => self.ledger.of_query(query.scheduled_at).duplicate += 1,
            _ => self.ledger.of_query(query.scheduled_at).late += 1,
        }
    }

    /// True if a message with the ID of a query is its response.
    pub(super) fn is_answered(&mut self, asked: Question, message: &[u8]) -> bool {
        let scratch = &mut self.wire.message;
        self.plan.matches_by_id_alone
            || is_answered_by((&self.plan, &self.offer.mode), asked, message, scratch)
    }

    /// A response to a query in flight.
    pub(super) fn complete(&mut self, owner: u32, query: &Query, message: &[u8], at: Instant) {
        if self.population.stub.is_some() {
            let parts = (&*self.plan, &mut self.ledger.tally);
            if self.population.goes_on(parts, owner, query, message) {
                return;
            }
        }
        let client = &mut self.population.clients[owner as usize];
        client.pending.end(query.position, State::Answered);
        let is_fallback = client.role == Role::Fallback;
        if let Link::Connected(connection) = &mut client.link {
            self.ledger
                .tally
                .connection_is_active(at, &mut connection.counted.active_in);
            if !connection.served && !is_fallback {
                self.ledger.count_first_response(connection, query, at);
            }
        }
        if is_fallback {
            self.ledger.count_fallback(query, message, at);
            return self.report_end(
                (Role::Fallback, owner),
                query,
                QueryEnd::Response(message),
                at,
            );
        }
        self.ledger.continue_delivery(owner, at);
        let is_truncated = response::is_truncated(message);
        let kind = ResponseKind::of(message).with_truncated(is_truncated);
        self.ledger
            .count_response((query.scheduled_at, query.sent_at), kind, message);
        self.ledger
            .count_instance(query, (message, kind.rcode()), at);
        if self.population.stub.is_some() {
            self.population.answer_at_server(
                (&self.plan, &self.ledger.tally),
                owner,
                query,
                (kind, at),
            );
        }
        let latency_ns = at.nanos_since(query.scheduled_at);
        self.ledger
            .statistics
            .count_end_of_idleness(owner, query.number, latency_ns);
        if self.ledger.stamps.is_some() {
            self.ledger.record_path(owner, query, at);
        }
        if is_truncated {
            self.count_truncated(owner, query);
        }
        if self.plan.question_source.labels.is_some() {
            let recursed = u64::from(response::offers_recursion(message));
            self.ledger.of_query(query.scheduled_at).generated_recursed += recursed;
        }
        let whose = (Role::Primary, owner);
        self.report_end(whose, query, QueryEnd::Response(message), at);
    }

    #[cold]
    fn count_truncated(&mut self, owner: u32, query: &Query) {
        self.ledger.of_query(query.scheduled_at).truncated += 1;
        if self.plan.tcp_fallback {
            self.fall_back(owner, *query);
        }
    }

    /// Repeats the truncated question over TCP.
    fn fall_back(&mut self, owner: u32, query: Query) {
        let index = owner + self.population.primaries;
        let client = &mut self.population.clients[index as usize];
        let submitted = client.pending.submit(query.scheduled_at, query.question);
        let counts = &mut self.ledger.of_query(query.scheduled_at).tcp_fallback;
        counts.sent += 1;
        if !submitted {
            counts.connection_losses += 1;
            return;
        }
        self.offer.ask_again(&query);
        self.population.send_later(index);
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
            self.ledger.of_event(at).port_unreachable += 1;
            self.handle_refusal(driver, owner, (socket, at));
        }
        let connection = self.population.connection(owner);
        if connection.is_some_and(|connection| !connection.is_open()) {
            self.handle_end(driver, owner, Some(error), at);
        }
    }

    /// Reports to the script and the observer, if there are any, how a query of a client has ended.
    #[inline]
    pub(super) fn report_end(
        &mut self,
        whose: (Role, u32),
        query: &Query,
        end: QueryEnd<'_>,
        at: Instant,
    ) {
        self.ledger.observe(whose.0, query, &end, at);
        self.offer.report_end(whose, query, end, at);
    }
}
