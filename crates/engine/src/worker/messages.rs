//! Messages received: each is matched to its query by socket, ID and question, or counted as what
//! it is instead.

use driver::{Driver, Received, SocketError, SocketId};
use measure::Counts;
use proto::Instant;
use proto::pending::{Query, State};
use proto::response::{self, Header, ResponseKind};

use super::scripted::{Told, is_answered_by};
use super::{EndedBy, Worker};
use crate::client::{Link, Role};

/// What makes responses of a delivery count alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kind {
    response: ResponseKind,
    scheduled_at: Instant,
    sent_at: Instant,
}

/// Responses that count alike, as those of a burst do: one entry in each distribution will do for
/// all of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alike {
    /// To whom they came, and when.
    owner: u32,
    at: Instant,
    kind: Kind,
    responses: u64,
    octets: u64,
}

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
        let only_counts = self.only_counts(owner, received.at);
        for (place, datagram) in received.datagrams.iter().enumerate() {
            // Whoever reads stamps is told of more than counts.
            if !only_counts && let Some(stamps) = &mut self.stamps {
                stamps.arrived(received.arrived.get(place).copied().unwrap_or_default());
            }
            if !received.is_from_peer && datagram.from != peer {
                let counts = &mut self.tally.of_event(received.at).counts;
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
    #[inline]
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
    #[inline]
    pub(super) fn change_in_flight(&mut self, owner: u32, at: Instant, change: i64) {
        if self.clients[owner as usize].role == Role::Primary {
            self.tally.change_in_flight(at, change);
            if change != 0 {
                self.statistics.touch(owner, at);
            }
        }
    }

    /// True if a response to client `owner` has to be matched and counted and nothing else: nobody
    /// is told of it, and it is not the first of its connection, within an interval, or after
    /// idleness. Holds for all of a delivery, for nothing is asked while it is handled.
    #[inline]
    pub(super) fn only_counts(&self, owner: u32, at: Instant) -> bool {
        let is_known = match &self.clients[owner as usize].link {
            Link::Connected(connection) => {
                connection.served && connection.active_in == self.tally.number_of_interval(at)
            }
            _ => true,
        };
        is_known
            && !self.is_watched
            && owner < self.primaries
            && !self.statistics.is_after_idleness(owner)
    }

    /// One message for client `owner`, with what [`Worker::only_counts`] says of it.
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

    /// Takes a message if it is what nearly all are: a whole response to a query in flight, whose
    /// question, that of a template, it repeats. False if it is anything else; nothing has happened
    /// then.
    #[inline(always)]
    fn is_plain_response(&mut self, owner: u32, message: &[u8]) -> bool {
        let header = Header::parse(message);
        let Some(header) = header.filter(|header| header.is_response && !header.truncated) else {
            return false;
        };
        let pending = &mut self.clients[owner as usize].pending;
        let Some(found) = pending.find_in_flight(header.id) else {
            return false;
        };
        let (asked, questions) = (found.question(), &self.plan.questions);
        if !asked.is_plain() || !questions.is_repeated_by(asked.template as usize, message) {
            return false;
        }
        let instants = found.answer();
        self.count_response(instants, ResponseKind::of(message), message);
        true
    }

    /// Any message for client `owner`.
    fn handle_any_message(&mut self, owner: u32, message: &[u8], at: Instant) {
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
            State::InFlight => self.complete(owner, &query, message, at),
            State::Answered => self.tally.of_query(query.scheduled_at).counts.duplicate += 1,
            _ => self.tally.of_query(query.scheduled_at).counts.late += 1,
        }
    }

    /// A response to a query in flight.
    pub(super) fn complete(&mut self, owner: u32, query: &Query, message: &[u8], at: Instant) {
        if self.stub.is_some() && self.goes_on(owner, query, message) {
            return;
        }
        let client = &mut self.clients[owner as usize];
        client.pending.end(query.position, State::Answered);
        let is_fallback = client.role == Role::Fallback;
        if let Link::Connected(connection) = &mut client.link {
            self.tally
                .connection_is_active(at, &mut connection.active_in);
            if !connection.served && !is_fallback {
                self.count_first_response(owner, query, at);
            }
        }
        if is_fallback {
            return self.complete_fallback(owner, query, message, at);
        }
        if (self.alike.owner, self.alike.at) != (owner, at) {
            self.begin_delivery(owner, at);
        }
        let is_truncated = response::is_truncated(message);
        let kind = ResponseKind::of(message).with_truncated(is_truncated);
        self.count_response((query.scheduled_at, query.sent_at), kind, message);
        if self.stub.is_some() {
            self.answer_at_server(owner, query, (kind, at));
        }
        let latency_ns = at.nanos_since(query.scheduled_at);
        self.statistics
            .count_end_of_idleness(owner, query.number, latency_ns);
        if self.stamps.is_some() {
            self.record_path(owner, query, at);
        }
        if is_truncated {
            self.count_truncated(owner, query);
        }
        let whose = (Role::Primary, owner);
        self.tell(whose, query, Told::Response(message), at);
    }

    /// Has the responses that follow counted as client `owner`'s, and as received at `at`.
    #[inline]
    pub(super) fn begin_delivery(&mut self, owner: u32, at: Instant) {
        self.settle_responses();
        (self.alike.owner, self.alike.at) = (owner, at);
    }

    /// Counts and times a response of the delivery; those that are alike together.
    #[inline(always)]
    fn count_response(
        &mut self,
        (scheduled_at, sent_at): (Instant, Instant),
        response: ResponseKind,
        message: &[u8],
    ) {
        let kind = Kind {
            response,
            scheduled_at,
            sent_at,
        };
        if kind != self.alike.kind {
            self.settle_responses();
            self.alike.kind = kind;
        }
        self.alike.responses += 1;
        self.alike.octets += message.len() as u64;
    }

    /// Brings the responses that were kept apart because they are alike into the tally.
    pub(super) fn settle_responses(&mut self) {
        let Alike {
            owner,
            at,
            kind,
            responses,
            octets,
        } = self.alike;
        if responses == 0 {
            return;
        }
        (self.alike.responses, self.alike.octets) = (0, 0);
        let latency_ns = at.nanos_since(kind.scheduled_at);
        let service_ns = at.nanos_since(kind.sent_at);
        // The window of a run by queries reaches to its last response.
        let is_before_end = at < self.run_end || self.ended_by == EndedBy::Queries;
        if self.tally.is_measured(at) && is_before_end {
            self.tally.responses_in_window += responses;
        }
        self.tally.last_response_at = at;
        let is_measured = self.tally.is_measured(kind.scheduled_at);
        let interval = self.tally.of_query(kind.scheduled_at);
        interval.counts.responses += responses;
        interval.counts.received_octets += octets;
        let rcode = kind.response.rcode();
        interval.counts.rcodes.record_many(rcode, responses);
        if kind.response.is_special() {
            count_special(&mut interval.counts, kind.response, responses);
            if is_measured && kind.response.is_truncated() && !self.plan.tcp_fallback {
                self.statistics.count_useless(owner, rcode, responses);
            }
        }
        let times = &mut interval.distributions;
        times.latency.record_many(latency_ns, responses);
        times.service.record_many(service_ns, responses);
        if is_measured {
            self.statistics
                .count_responses(owner, (latency_ns, rcode), responses);
        }
    }

    /// Times the first response on a connection.
    #[cold]
    fn count_first_response(&mut self, owner: u32, query: &Query, at: Instant) {
        let Some(connection) = self.clients[owner as usize].connection() else {
            return;
        };
        connection.served = true;
        self.standings.review(connection);
        let interval = self.tally.of_query(query.scheduled_at);
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

    /// The response to a question that was asked again over TCP.
    #[cold]
    fn complete_fallback(&mut self, owner: u32, query: &Query, message: &[u8], at: Instant) {
        let interval = self.tally.of_query(query.scheduled_at);
        let counts = &mut interval.counts.tcp_fallback;
        counts.responses += 1;
        if !response::is_truncated(message) {
            counts.rcodes.record(response::extended_rcode(message));
        }
        let latency_ns = at.nanos_since(query.scheduled_at);
        interval.distributions.tcp_fallback.record(latency_ns);
        let whose = (Role::Fallback, owner);
        self.tell(whose, query, Told::Response(message), at);
    }

    #[cold]
    fn count_truncated(&mut self, owner: u32, query: &Query) {
        self.tally.of_query(query.scheduled_at).counts.truncated += 1;
        if self.plan.tcp_fallback {
            self.fall_back(owner, *query);
        }
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

/// Counts responses of which there is more to say than their RCODE.
#[cold]
pub(super) fn count_special(counts: &mut Counts, kind: ResponseKind, responses: u64) {
    if kind.is_nodata() {
        counts.nodata += responses;
    }
    if kind.is_truncated() {
        counts.truncated_rcodes.record_many(kind.rcode(), responses);
    }
}
