//! Which server a client's query or connection goes to, and the counts of each server.

use std::net::SocketAddr;
use std::time::Duration;

use driver::{Driver, SocketId, SocketSpec};
use load::Plan;
use measure::{Counts, Interval};
use proto::Instant;
use proto::pending::{Query, Trail};
use proto::response::{ResponseKind, extended_rcode};

use super::Population;
use super::client::Role;
use crate::SetupError;
use crate::worker::ledger::responses::count_special;
use crate::worker::ledger::tally::Tally;

impl Population {
    /// The server that client `index` is connected to.
    pub(crate) fn peer(&self, plan: &Plan, index: u32) -> SocketAddr {
        match &self.stub {
            None => plan.target,
            Some(stub) => stub.address(stub.server_of(index)),
        }
    }

    /// How long a connection has to become usable.
    pub(crate) fn connect_timeout(&self, plan: &Plan) -> Duration {
        match &self.stub {
            None => plan.timeout,
            Some(stub) => stub.connect_timeout(),
        }
    }

    /// Opens the sockets of a client to its servers; returns the first.
    pub(crate) fn open_servers(
        &mut self,
        driver: &mut impl Driver,
        (client, target): (u32, SocketAddr),
    ) -> Result<SocketId, SetupError> {
        let servers = match &self.stub {
            None => vec![target],
            Some(stub) => stub.policy.servers.clone(),
        };
        let own = self.clients[client as usize].local;
        let mut first = None;
        for (server, target) in (0..).zip(servers) {
            let local = own.filter(|local| local.is_ipv4() == target.is_ipv4());
            let spec = SocketSpec {
                local,
                peer: Some(target),
                ..SocketSpec::default()
            };
            let socket = driver.open_udp(&spec).map_err(|error| SetupError::Socket {
                local,
                target,
                error,
            })?;
            self.own(socket, client);
            first.get_or_insert(socket);
            if let Some(stub) = &mut self.stub {
                let index = socket.index as usize;
                if stub.server_of_socket.len() <= index {
                    stub.server_of_socket.resize(index + 1, 0);
                }
                stub.server_of_socket[index] = server;
                stub.sockets.push(socket);
            }
        }
        Ok(first.expect("a plan has a target"))
    }

    /// The socket for a client's waiting queries over UDP: that of the server whose turn it is.
    pub(crate) fn choose_socket(&mut self, index: u32, only: SocketId, now: Instant) -> SocketId {
        let Some(stub) = &mut self.stub else {
            return only;
        };
        let server = stub.choose(index, now);
        stub.sending_to = server;
        stub.socket(index, server).unwrap_or(only)
    }

    /// Queries over a connection go to its server.
    pub(crate) fn sends_on_connection(&mut self, index: u32) {
        if let Some(stub) = &mut self.stub {
            stub.sending_to = stub.server_of(index);
        }
    }

    /// Notes that the query at `position` was handed to the network, for the first time or again.
    pub(crate) fn count_attempt(
        &mut self,
        tally: &mut Tally,
        (index, position): (u32, u32),
        octets: usize,
        now: Instant,
    ) {
        let client = &self.clients[index as usize];
        let (query, trail) = (client.pending.at(position), client.pending.trail(position));
        let Some(stub) = &mut self.stub else { return };
        if client.role == Role::Fallback {
            return;
        }
        let counts = &mut tally.of_query(query.scheduled_at).counts;
        if trail.attempts > 0 && !trail.has_failed {
            // The target did not process it: this repeats the same attempt.
            counts.retried_unprocessed += 1;
            return;
        }
        let server = stub.sending_to;
        counts.stub.send_to(server, 1);
        if stub.note_attempt(&mut self.clients, (index, position), server, now) > 1 {
            counts.stub.retransmitted += 1;
            counts.stub.retransmitted_octets += octets as u64;
        }
    }

    /// True if the query in flight is to switch to another server instead of accepting this
    /// response; it does so once the rest of the delivery is handled. Else counts the response.
    pub(crate) fn goes_on(
        &mut self,
        (plan, tally): (&Plan, &mut Tally),
        index: u32,
        query: &Query,
        message: &[u8],
    ) -> bool {
        let goes_on = self.passes_over(&mut *tally, index, query, extended_rcode(message));
        if !goes_on {
            self.count_answer((plan, tally), index, query);
        }
        goes_on
    }

    fn passes_over(&mut self, tally: &mut Tally, index: u32, query: &Query, rcode: u16) -> bool {
        let client = &self.clients[index as usize];
        let trail = client.pending.trail(query.position);
        let Some(stub) = &mut self.stub else {
            return false;
        };
        if client.role == Role::Fallback || !stub.passes_over(trail, rcode) {
            return false;
        }
        stub.pass_over(index, query, trail);
        let counts = &mut tally.of_query(query.scheduled_at).counts;
        counts.stub.responses_not_taken += 1;
        true
    }

    /// Counts the response to a query by its attempt and by the server that gave it.
    fn count_answer(&mut self, (plan, tally): (&Plan, &mut Tally), index: u32, query: &Query) {
        let client = &self.clients[index as usize];
        if client.role == Role::Fallback {
            return;
        }
        let trail = client.pending.trail(query.position);
        let server = self.answering_server(plan, index);
        let counts = &mut tally.of_query(query.scheduled_at).counts.stub;
        counts.respond(trail.attempts, server);
    }

    /// Counts and times a response, of this kind, at the server that gave it.
    pub(crate) fn answer_at_server(
        &mut self,
        (plan, tally): (&Plan, &Tally),
        index: u32,
        query: &Query,
        (kind, at): (ResponseKind, Instant),
    ) {
        let server = self.answering_server(plan, index);
        self.end_at(tally, server, query, |interval| {
            interval.counts.responses += 1;
            interval.counts.rcodes.record_many(kind.rcode(), 1);
            count_special(&mut interval.counts, kind, 1);
            interval.counts.truncated += u64::from(kind.is_truncated());
            let times = &mut interval.distributions;
            times.latency.record(at.nanos_since(query.scheduled_at));
            times.service.record(at.nanos_since(query.sent_at));
        });
    }

    /// Counts a query that was sent and has ended without a response, at the server that it was
    /// sent to last.
    #[cold]
    pub(crate) fn lose_at_server(
        &mut self,
        tally: &Tally,
        index: u32,
        query: &Query,
        how: impl FnOnce(&mut Counts),
    ) {
        let client = &self.clients[index as usize];
        if self.stub.is_some() && client.role == Role::Primary {
            let server = client.pending.trail(query.position).server;
            self.end_at(tally, server, query, |interval| how(&mut interval.counts));
        }
    }

    /// Counts the end of a query at one of several servers.
    fn end_at(
        &mut self,
        tally: &Tally,
        server: u8,
        query: &Query,
        how: impl FnOnce(&mut Interval),
    ) {
        if let Some(stub) = &mut self.stub
            && tally.is_measured(query.scheduled_at)
            && let Some(ended) = stub.ended.get_mut(usize::from(server))
        {
            ended.counts.offered += 1;
            ended.counts.sent += 1;
            how(ended);
        }
    }

    /// The server that a message for client `index` comes from.
    fn answering_server(&self, plan: &Plan, index: u32) -> u8 {
        self.stub
            .as_ref()
            .map_or(0, |stub| match plan.transport.has_connections() {
                true => stub.server_of(index),
                false => stub.answering,
            })
    }

    /// True if a message over UDP comes from a server that this query was not sent to.
    pub(crate) fn is_of_stranger(&self, plan: &Plan, index: u32, query: &Query) -> bool {
        let Some(stub) = &self.stub else {
            return false;
        };
        let client = &self.clients[index as usize];
        let is_datagram = !plan.transport.has_connections() && client.role == Role::Primary;
        is_datagram
            && !client
                .pending
                .trail(query.position)
                .has_asked(stub.answering)
    }

    /// Takes back a query whose attempt has failed, if it has another; it waits for the next
    /// connection then.
    pub(crate) fn requeue_failed(&mut self, index: u32, query: &Query) -> bool {
        let Some(stub) = &self.stub else {
            return false;
        };
        let client = &mut self.clients[index as usize];
        let trail = client.pending.trail(query.position);
        if client.role == Role::Fallback || !stub.has_attempts_left(trail) {
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
}
