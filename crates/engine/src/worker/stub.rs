//! Clients that ask again and have several servers: which server is asked, and when a query is sent
//! once more over UDP. What becomes of connections is in `failover` and `race`.
//!
//! A worker without such clients has no [`Stub`], and pays for it with one look at a pointer a
//! batch sent, a response and a turn. With one, a query costs an entry in a queue: the queue of the
//! first attempts holds when the second ones are due, and so on. The time of an attempt is the same
//! for all, so each queue is in order of time by itself. Entries of queries that have ended are
//! dropped from its front by the next ones.
//!
//! A query keeps its message ID in all attempts, and a client one socket for each server, as glibc
//! does it. So a response to an attempt before the last one is as good as any.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use driver::{Driver, SocketId, SocketSpec};
use load::StubPolicy;
use load::stub::ServerOrder;
use measure::{Counts, Interval};
use proto::Instant;
use proto::pending::{Pending, Query, State, Trail};
use proto::response::{ResponseKind, extended_rcode};

use super::messages::count_special;
use super::race::Racer;
use super::{Phase, Worker};
use crate::SetupError;
use crate::client::{Client, Role};

/// Attempts begun in one turn; the rest follows in the next, after a look at the sockets.
const DUE_MAX: usize = 256;

/// What a worker keeps for clients that ask again.
pub(super) struct Stub {
    policy: Arc<StubPolicy>,
    clients: Vec<StubClient>,
    /// Datagram sockets: of each primary client one for each server. None on streams.
    sockets: Vec<SocketId>,
    /// Which server a datagram socket is connected to, by socket index.
    server_of_socket: Vec<u8>,
    /// Until when each server is left out by each client; empty if none ever is.
    dead_until: Vec<Instant>,
    /// When the time of an attempt is over: of first attempts, of second ones, and so on.
    due: Vec<VecDeque<Due>>,
    /// Queries that go on to another server at once, because of an RCODE.
    at_once: VecDeque<Due>,
    /// The server that the messages being handled come from.
    pub(super) answering: u8,
    /// The server that the queries being sent go to.
    sending_to: u8,
    /// What became of queries by the server that answered them, or was asked last; empty if there
    /// is only one.
    ended: Vec<Interval>,
    /// Connection attempts of each client beside that of its link; empty unless they are raced.
    pub(super) racers: Vec<Vec<Racer>>,
}

/// What is kept of one client.
#[derive(Clone, Copy, Debug, Default)]
struct StubClient {
    /// The server of its connection, or the one that it asked last.
    server: u8,
    /// The server of its next connection, if the last one's was left.
    next: Option<u8>,
    /// The server whose turn is next.
    turn: u8,
    /// Servers tried since the last connection attempt that was no race, a bit each.
    tried: u8,
}

/// An attempt of a query.
#[derive(Clone, Copy, Debug)]
struct Due {
    at: Instant,
    client: u32,
    /// The query's number.
    number: u32,
    /// How many attempts there had been.
    attempts: u8,
}

/// Why a client asks another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    TimedOut,
    Refused,
    Rcode,
    Connection,
}

impl Stub {
    /// For these clients, fallback clients included.
    pub(super) fn new(policy: &Arc<StubPolicy>, clients: &mut [Client]) -> Box<Self> {
        for client in clients.iter_mut() {
            client.pending.keep_trails();
        }
        let dead_until = match policy.dead_for.is_zero() {
            true => Vec::new(),
            false => vec![Instant::ZERO; clients.len() * policy.servers.len()],
        };
        // The last attempt ends with the query's time-out.
        let followed = policy.waits.len().saturating_sub(1);
        Box::new(Stub {
            policy: Arc::clone(policy),
            clients: vec![StubClient::default(); clients.len()],
            sockets: Vec::new(),
            server_of_socket: Vec::new(),
            dead_until,
            due: vec![VecDeque::new(); followed],
            at_once: VecDeque::new(),
            answering: 0,
            sending_to: 0,
            ended: match policy.servers.len() {
                1 => Vec::new(),
                several => vec![Interval::default(); several],
            },
            racers: match policy.race_delay {
                Some(_) => vec![Vec::new(); clients.len()],
                None => Vec::new(),
            },
        })
    }

    /// What became of queries at each server, if there are several.
    pub(super) fn ended(&self) -> &[Interval] {
        &self.ended
    }

    fn servers(&self) -> u8 {
        self.policy.servers.len() as u8
    }

    /// How many servers each client has.
    pub(super) fn server_count(&self) -> u32 {
        self.policy.servers.len() as u32
    }

    pub(super) fn address(&self, server: u8) -> SocketAddr {
        self.policy.servers[usize::from(server)]
    }

    /// The delay between connection attempts that are raced.
    pub(super) fn race_delay(&self) -> Option<Duration> {
        self.policy.race_delay
    }

    /// The server of the client's connection.
    pub(super) fn server_of(&self, client: u32) -> u8 {
        self.clients[client as usize].server
    }

    pub(super) fn set_server(&mut self, client: u32, server: u8) {
        self.clients[client as usize].server = server;
    }

    /// How long a connection has to become usable.
    pub(super) fn connect_timeout(&self) -> Duration {
        self.policy.waits[0]
    }

    /// True if queries are sent one by one, because each goes to another server.
    pub(super) fn sends_singly(&self) -> bool {
        self.policy.order == ServerOrder::Rotate
    }

    /// The server for a client's next query over UDP, or its next connection.
    pub(super) fn choose(&mut self, client: u32, now: Instant) -> u8 {
        let servers = self.servers();
        let own = &mut self.clients[client as usize];
        let start = match (own.next.take(), self.policy.order) {
            (Some(server), _) => server,
            (None, ServerOrder::First | ServerOrder::All) => 0,
            (None, ServerOrder::Stay) => own.server,
            (None, ServerOrder::Rotate) => {
                let turn = own.turn;
                own.turn = (turn + 1) % servers;
                turn
            }
        };
        let server = self.living_from(client, start, now);
        let own = &mut self.clients[client as usize];
        own.server = server;
        own.tried = 1 << server;
        server
    }

    /// The next server to try beside those tried already; none if that were all.
    pub(super) fn choose_racer(&mut self, client: u32) -> Option<u8> {
        let servers = self.servers();
        let own = &mut self.clients[client as usize];
        let mut others = (1..servers).map(|step| (own.server + step) % servers);
        let server = others.find(|server| own.tried & (1 << server) == 0)?;
        own.tried |= 1 << server;
        Some(server)
    }

    /// True if a race could have another participant.
    pub(super) fn has_untried(&self, client: u32) -> bool {
        let tried = self.clients[client as usize].tried;
        tried.count_ones() < u32::from(self.servers())
    }

    /// The server after `server`, those left out passed over.
    fn after(&self, client: u32, server: u8, now: Instant) -> u8 {
        self.living_from(client, (server + 1) % self.servers(), now)
    }

    /// The first server from `start` on that is not left out; `start` if all are.
    fn living_from(&self, client: u32, start: u8, now: Instant) -> u8 {
        let servers = self.servers();
        let mut all = (0..servers).map(|step| (start + step) % servers);
        all.find(|server| !self.is_dead(client, *server, now))
            .unwrap_or(start)
    }

    fn is_dead(&self, client: u32, server: u8, now: Instant) -> bool {
        let place = client as usize * usize::from(self.servers()) + usize::from(server);
        self.dead_until.get(place).is_some_and(|until| *until > now)
    }

    /// Notes that `server` did not answer the client.
    pub(super) fn mark_dead(&mut self, client: u32, server: u8, now: Instant) {
        let place = client as usize * usize::from(self.servers()) + usize::from(server);
        if let Some(until) = self.dead_until.get_mut(place) {
            *until = now + self.policy.dead_for;
        }
    }

    /// The server for the next attempt of a query.
    fn next_for(&mut self, client: u32, trail: Trail, cause: Cause, now: Instant) -> u8 {
        let servers = self.servers();
        let mut others = (1..servers).map(|step| (trail.server + step) % servers);
        let next = match (self.policy.order, cause) {
            (ServerOrder::All, _) => return trail.server,
            (_, Cause::Rcode) => {
                let new = others.find(|server| !trail.has_asked(*server));
                new.unwrap_or_else(|| self.after(client, trail.server, now))
            }
            _ => {
                self.mark_dead(client, trail.server, now);
                self.after(client, trail.server, now)
            }
        };
        // Queries that were asked before it had moved on do not move it again.
        if self.server_of(client) == trail.server {
            self.set_server(client, next);
        }
        next
    }

    /// Has the client's next connection go to another server than the last one's; true unless that
    /// was decided before, or there is no other.
    pub(super) fn leave_connection(&mut self, client: u32, now: Instant) -> bool {
        let server = self.server_of(client);
        let next = self.after(client, server, now);
        let own = &mut self.clients[client as usize];
        let was_decided = own.next.replace(own.next.unwrap_or(next)).is_some();
        !was_decided && next != server
    }

    /// The server of a datagram socket.
    pub(super) fn server_of_socket(&self, socket: SocketId) -> u8 {
        let server = self.server_of_socket.get(socket.index as usize);
        server.copied().unwrap_or(0)
    }

    fn socket(&self, client: u32, server: u8) -> Option<SocketId> {
        let place = client as usize * usize::from(self.servers()) + usize::from(server);
        self.sockets.get(place).copied()
    }

    /// The sockets of a client; none on streams.
    pub(super) fn sockets_of(&self, client: u32) -> &[SocketId] {
        let servers = usize::from(self.servers());
        let first = client as usize * servers;
        self.sockets.get(first..first + servers).unwrap_or(&[])
    }

    /// True if the query can be asked once more.
    pub(super) fn has_attempts_left(&self, trail: Trail) -> bool {
        usize::from(trail.attempts) < self.policy.waits.len()
    }

    /// True if another server is to be asked instead of taking this response.
    fn passes_over(&self, trail: Trail, rcode: u16) -> bool {
        let all_asked = (0..self.servers()).all(|server| trail.has_asked(server));
        self.policy.failover_rcodes.contains(&rcode) && !all_asked && self.has_attempts_left(trail)
    }

    /// When the next attempt is due.
    pub(super) fn next_due(&self) -> Instant {
        let first = |queue: &VecDeque<Due>| queue.front().map(|due| due.at);
        let queues = self.due.iter().chain([&self.at_once]);
        queues
            .filter_map(first)
            .min()
            .unwrap_or(Instant::FAR_FUTURE)
    }

    /// True if a query goes on to another server without waiting.
    pub(super) fn has_urgent(&self) -> bool {
        !self.at_once.is_empty()
    }

    /// Takes the attempt that was over first, if one is at `now`.
    fn take_due(&mut self, now: Instant) -> Option<(Due, Cause)> {
        if let Some(due) = self.at_once.pop_front() {
            return Some((due, Cause::Rcode));
        }
        let is_over = |queue: &&mut VecDeque<Due>| queue.front().is_some_and(|due| due.at <= now);
        let over = self.due.iter_mut().filter(is_over);
        let first = over.min_by_key(|queue| queue.front().map(|due| due.at))?;
        Some((first.pop_front()?, Cause::TimedOut))
    }

    /// Notes that the query at `position` was sent to `server`; returns how often it was by now.
    fn note_attempt(
        &mut self,
        clients: &mut [Client],
        (client, position): (u32, u32),
        server: u8,
        now: Instant,
    ) -> u8 {
        let pending = &mut clients[client as usize].pending;
        let before = pending.trail(position);
        let trail = before.then(server);
        pending.set_trail(position, trail);
        let number = pending.at(position).number;
        let place = usize::from(trail.attempts) - 1;
        if let Some(queue) = self.due.get_mut(place) {
            while let Some(first) = queue.front()
                && under_way(&clients[first.client as usize].pending, first).is_none()
            {
                queue.pop_front();
            }
            let at = now + self.policy.waits[place];
            queue.push_back(Due {
                at,
                client,
                number,
                attempts: trail.attempts,
            });
        }
        trail.attempts
    }
}

/// The query of an attempt, if nothing has come of that yet.
fn under_way(pending: &Pending, due: &Due) -> Option<Query> {
    let query = pending.numbered(due.number)?;
    let is_last = pending.trail(query.position).attempts == due.attempts;
    (query.state == State::InFlight && is_last).then_some(query)
}

impl Worker {
    /// The server that client `index` is connected to.
    pub(super) fn peer(&self, index: u32) -> SocketAddr {
        match &self.stub {
            None => self.plan.target,
            Some(stub) => stub.address(stub.server_of(index)),
        }
    }

    /// How long a connection has to become usable.
    pub(super) fn connect_timeout(&self) -> Duration {
        match &self.stub {
            None => self.plan.timeout,
            Some(stub) => stub.connect_timeout(),
        }
    }

    /// Opens the sockets of a client to its servers; returns the first.
    pub(super) fn open_servers(
        &mut self,
        driver: &mut impl Driver,
        client: u32,
    ) -> Result<SocketId, SetupError> {
        let servers = match &self.stub {
            None => vec![self.plan.target],
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
    pub(super) fn choose_socket(&mut self, index: u32, only: SocketId, now: Instant) -> SocketId {
        let Some(stub) = &mut self.stub else {
            return only;
        };
        let server = stub.choose(index, now);
        stub.sending_to = server;
        stub.socket(index, server).unwrap_or(only)
    }

    /// Queries over a connection go to its server.
    pub(super) fn sends_on_connection(&mut self, index: u32) {
        if let Some(stub) = &mut self.stub {
            stub.sending_to = stub.server_of(index);
        }
    }

    /// Sends the first queries in `outgoing`, which the socket of one server has accepted, to the
    /// other servers too, where all are asked at once.
    pub(super) fn send_copies(&mut self, driver: &mut impl Driver, index: u32, accepted: usize) {
        let Some(stub) = &self.stub else {
            return;
        };
        if stub.policy.order != ServerOrder::All || accepted == 0 {
            return;
        }
        let first = stub.sending_to;
        let now = driver.now();
        self.outgoing.datagrams.truncate(accepted);
        let octets = self.outgoing.datagrams.iter().map(|it| it.length as usize);
        self.outgoing.octets.truncate(octets.sum());
        for server in (0..stub.servers()).filter(|server| *server != first) {
            let Some(socket) = self
                .stub
                .as_ref()
                .and_then(|stub| stub.socket(index, server))
            else {
                continue;
            };
            let taken = driver.send_datagrams(socket, &self.outgoing).accepted;
            self.count_datagrams(taken, now);
            for place in 0..accepted {
                let position = self.positions[place];
                let pending = &mut self.clients[index as usize].pending;
                let counts = &mut self
                    .tally
                    .of_query(pending.at(position).scheduled_at)
                    .counts
                    .stub;
                if place >= taken {
                    counts.not_retransmitted += 1;
                    continue;
                }
                counts.retransmitted += 1;
                counts.retransmitted_octets += u64::from(self.outgoing.datagrams[place].length);
                counts.send_to(server, 1);
                let mut trail = pending.trail(position);
                trail.asked |= Trail::default().then(server).asked;
                pending.set_trail(position, trail);
            }
        }
    }

    /// Notes that the query at `position` was handed to the network, for the first time or again.
    pub(super) fn count_attempt(&mut self, index: u32, position: u32, octets: usize, now: Instant) {
        let client = &self.clients[index as usize];
        let (query, trail) = (client.pending.at(position), client.pending.trail(position));
        let Some(stub) = &mut self.stub else { return };
        if client.role == Role::Fallback {
            return;
        }
        let counts = &mut self.tally.of_query(query.scheduled_at).counts;
        if trail.attempts > 0 && !trail.has_failed {
            // It was sent, and the target did not process it: the same attempt once more.
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

    /// True if the query in flight is to go on to another server instead of taking this response:
    /// it does so when all that came with the response is handled. Else counts the response.
    pub(super) fn goes_on(&mut self, index: u32, query: &Query, message: &[u8]) -> bool {
        let goes_on = self.passes_over(index, query, extended_rcode(message));
        if !goes_on {
            self.count_answer(index, query);
        }
        goes_on
    }

    fn passes_over(&mut self, index: u32, query: &Query, rcode: u16) -> bool {
        let client = &self.clients[index as usize];
        let trail = client.pending.trail(query.position);
        let Some(stub) = &mut self.stub else {
            return false;
        };
        if client.role == Role::Fallback || !stub.passes_over(trail, rcode) {
            return false;
        }
        stub.at_once.push_back(Due {
            at: Instant::ZERO,
            client: index,
            number: query.number,
            attempts: trail.attempts,
        });
        let counts = &mut self.tally.of_query(query.scheduled_at).counts;
        counts.stub.responses_not_taken += 1;
        true
    }

    /// Counts and times a response, of this kind, at the server that gave it.
    pub(super) fn answer_at_server(
        &mut self,
        index: u32,
        query: &Query,
        (kind, at): (ResponseKind, Instant),
    ) {
        let server = self.answering_server(index);
        self.end_at(server, query, |interval| {
            interval.counts.responses += 1;
            interval.counts.rcodes.record_many(kind.rcode(), 1);
            count_special(&mut interval.counts, kind, 1);
            interval.counts.truncated += u64::from(kind.is_truncated());
            let times = &mut interval.distributions;
            times.latency.record(at.nanos_since(query.scheduled_at));
            times.service.record(at.nanos_since(query.sent_at));
        });
    }

    /// Counts that a query which was sent has ended without a response, at the server that was
    /// asked last.
    #[cold]
    pub(super) fn lose_at_server(
        &mut self,
        index: u32,
        query: &Query,
        how: impl FnOnce(&mut Counts),
    ) {
        let client = &self.clients[index as usize];
        if self.stub.is_some() && client.role == Role::Primary {
            let server = client.pending.trail(query.position).server;
            self.end_at(server, query, |interval| how(&mut interval.counts));
        }
    }

    /// Counts the end of a query at one of several servers.
    fn end_at(&mut self, server: u8, query: &Query, how: impl FnOnce(&mut Interval)) {
        if let Some(stub) = &mut self.stub
            && self.tally.is_measured(query.scheduled_at)
            && let Some(ended) = stub.ended.get_mut(usize::from(server))
        {
            ended.counts.offered += 1;
            ended.counts.sent += 1;
            how(ended);
        }
    }

    /// The server that a message for client `index` comes from.
    fn answering_server(&self, index: u32) -> u8 {
        self.stub
            .as_ref()
            .map_or(0, |stub| match self.plan.transport.has_connections() {
                true => stub.server_of(index),
                false => stub.answering,
            })
    }

    /// Counts the response to a query by its attempt and by the server that gave it.
    fn count_answer(&mut self, index: u32, query: &Query) {
        let client = &self.clients[index as usize];
        if client.role == Role::Fallback {
            return;
        }
        let trail = client.pending.trail(query.position);
        let server = self.answering_server(index);
        let counts = &mut self.tally.of_query(query.scheduled_at).counts.stub;
        counts.respond(trail.attempts, server);
    }

    /// True if a message over UDP comes from a server that was not asked this query.
    pub(super) fn is_of_stranger(&self, index: u32, query: &Query) -> bool {
        let Some(stub) = &self.stub else {
            return false;
        };
        let client = &self.clients[index as usize];
        let is_datagram = !self.plan.transport.has_connections() && client.role == Role::Primary;
        is_datagram
            && !client
                .pending
                .trail(query.position)
                .has_asked(stub.answering)
    }

    /// Begins the attempts that are due at `now`.
    pub(super) fn ask_again(&mut self, driver: &mut impl Driver, now: Instant) {
        for _ in 0..DUE_MAX {
            let Some(stub) = self.stub.as_mut().filter(|_| self.phase != Phase::Finished) else {
                return;
            };
            let Some((due, cause)) = stub.take_due(now) else {
                return;
            };
            let pending = &self.clients[due.client as usize].pending;
            if let Some(query) = under_way(pending, &due) {
                match self.plan.transport.has_connections() {
                    true => self.ask_on_next_connection(driver, due.client, &query, (cause, now)),
                    false => self.ask_next_server(driver, due.client, &query, (cause, now)),
                }
            }
        }
    }

    /// Counts that a client goes on to another server, with a query or a connection of `phase_at`.
    pub(super) fn count_failover(&mut self, phase_at: Instant, cause: Cause) {
        let failovers = &mut self.tally.of_query(phase_at).counts.stub.failovers;
        *match cause {
            Cause::TimedOut => &mut failovers.timed_out,
            Cause::Refused => &mut failovers.refused,
            Cause::Rcode => &mut failovers.rcode,
            Cause::Connection => &mut failovers.connection,
        } += 1;
    }

    /// Sends a query in flight over UDP once more, to the server whose turn it is.
    fn ask_next_server(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        query: &Query,
        (cause, now): (Cause, Instant),
    ) {
        let trail = self.clients[index as usize].pending.trail(query.position);
        let Some(stub) = &mut self.stub else { return };
        let server = stub.next_for(index, trail, cause, now);
        let Some(socket) = stub.socket(index, server) else {
            return;
        };
        stub.sending_to = server;
        if server != trail.server {
            self.count_failover(query.scheduled_at, cause);
        }
        self.outgoing.clear();
        self.positions.clear();
        self.render_datagram(query, self.signing_time(driver));
        let taken = driver.send_datagrams(socket, &self.outgoing).accepted;
        self.count_datagrams(taken, now);
        let octets = self.outgoing.datagrams[0].length as usize;
        let pending = &mut self.clients[index as usize].pending;
        let failed = Trail {
            has_failed: true,
            ..trail
        };
        pending.set_trail(query.position, failed);
        if taken == 1 {
            self.count_attempt(index, query.position, octets, now);
            return self.send_copies(driver, index, taken);
        }
        // The schedule goes on as if it had been lost on the way.
        let counts = &mut self.tally.of_query(query.scheduled_at).counts.stub;
        counts.not_retransmitted += 1;
        if let Some(stub) = &mut self.stub {
            stub.note_attempt(&mut self.clients, (index, query.position), server, now);
        }
    }

    /// Nobody listens at one of a client's servers: its queries in flight there are asked at the
    /// next one.
    pub(super) fn handle_refusal(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        (socket, now): (SocketId, Instant),
    ) {
        let Some(stub) = &self.stub else { return };
        if self.plan.transport.has_connections()
            || stub.servers() == 1
            || stub.policy.order == ServerOrder::All
        {
            return;
        }
        let server = stub.server_of_socket(socket);
        let mut next = self.clients[index as usize].pending.oldest_in_flight();
        while let Some(query) = next {
            let pending = &self.clients[index as usize].pending;
            let trail = pending.trail(query.position);
            next = pending.next_in_flight_after(query);
            let has_left = (self.stub.as_ref()).is_some_and(|stub| stub.has_attempts_left(trail));
            if trail.server == server && has_left {
                self.ask_next_server(driver, index, &query, (Cause::Refused, now));
            }
        }
    }
}
