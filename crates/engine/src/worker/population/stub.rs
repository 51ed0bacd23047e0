//! Clients that retry and have several servers: which server a query goes to, and when it is sent
//! again. Their connections are handled in `worker::retries` and `worker::happy_eyeballs`.
//!
//! A worker without such clients has no [`Stub`]; that costs one check of a pointer per batch,
//! response and turn. With one, a query costs an entry in a queue: the queue of first attempts
//! holds when the second ones are due, and so on. All attempts of one number wait equally long, so
//! each queue is ordered by time without sorting. Entries of queries that have ended are dropped
//! from its front by the next ones.
//!
//! As in glibc, a query keeps its message ID in all attempts, and a client has one socket for each
//! server. So a response to an earlier attempt is accepted too.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use driver::SocketId;
use load::StubPolicy;
use load::stub::ServerOrder;
use measure::Interval;
use proto::Instant;
use proto::pending::{Pending, Query, State, Trail};

use super::client::Client;
use super::racer::Racer;

/// State of a worker's clients that retry.
pub(crate) struct Stub {
    pub(crate) policy: Arc<StubPolicy>,
    clients: Vec<StubClient>,
    /// Datagram sockets: of each primary client one for each server. None on streams.
    pub(crate) sockets: Vec<SocketId>,
    /// Which server a datagram socket is connected to, by socket index.
    pub(crate) server_of_socket: Vec<u8>,
    /// Until when each client skips each server; empty if servers are never skipped.
    dead_until: Vec<Instant>,
    /// When attempts expire: first attempts, second ones, and so on.
    due: Vec<VecDeque<Due>>,
    /// Queries that switch to another server at once, because of an RCODE.
    at_once: VecDeque<Due>,
    /// The server that the messages being handled come from.
    pub(crate) answering: u8,
    /// The server that the queries being sent go to.
    pub(crate) sending_to: u8,
    /// Outcomes of queries by the server that answered them or that they were sent to last; empty
    /// if there is only one server.
    pub(crate) ended: Vec<Interval>,
    /// Connection attempts of each client beside that of its link; empty unless they are raced.
    pub(crate) racers: Vec<Vec<Racer>>,
}

/// State of one client.
#[derive(Clone, Copy, Debug, Default)]
struct StubClient {
    /// The server of its connection, or the one that it last sent a query to.
    server: u8,
    /// The server of its next connection, if the client has left the last one's server.
    next: Option<u8>,
    /// The server whose turn is next.
    turn: u8,
    /// Servers tried since the last connection attempt that was no race, a bit each.
    tried: u8,
}

/// An attempt of a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    at: Instant,
    pub(crate) client: u32,
    /// The query's number.
    number: u32,
    /// How many attempts there had been.
    attempts: u8,
}

/// Why a client switches to another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    TimedOut,
    Refused,
    Rcode,
    Connection,
}

impl Stub {
    /// For these clients, fallback clients included.
    pub(crate) fn new(policy: &Arc<StubPolicy>, clients: &mut [Client]) -> Box<Self> {
        for client in clients.iter_mut() {
            client.pending.keep_trails();
        }
        let dead_until = match policy.dead_for.is_zero() {
            true => Vec::new(),
            false => vec![Instant::ZERO; clients.len() * policy.servers.len()],
        };
        // The last attempt ends with the query's timeout.
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

    /// Outcomes of queries at each server, if there are several.
    pub(crate) fn ended(&self) -> &[Interval] {
        &self.ended
    }

    pub(crate) fn servers(&self) -> u8 {
        self.policy.servers.len() as u8
    }

    /// How many servers each client has.
    pub(crate) fn server_count(&self) -> u32 {
        self.policy.servers.len() as u32
    }

    pub(crate) fn address(&self, server: u8) -> SocketAddr {
        self.policy.servers[usize::from(server)]
    }

    /// The delay between connection attempts that are raced.
    pub(crate) fn race_delay(&self) -> Option<Duration> {
        self.policy.race_delay
    }

    /// The server of the client's connection.
    pub(crate) fn server_of(&self, client: u32) -> u8 {
        self.clients[client as usize].server
    }

    pub(crate) fn set_server(&mut self, client: u32, server: u8) {
        self.clients[client as usize].server = server;
    }

    /// Lets a query in flight switch to another server once the delivery that brought its response
    /// is handled.
    pub(crate) fn pass_over(&mut self, client: u32, query: &Query, trail: Trail) {
        self.at_once.push_back(Due {
            at: Instant::ZERO,
            client,
            number: query.number,
            attempts: trail.attempts,
        });
    }

    /// How long a connection has to become usable.
    pub(crate) fn connect_timeout(&self) -> Duration {
        self.policy.waits[0]
    }

    /// True if queries are sent one by one, because each goes to another server.
    pub(crate) fn sends_singly(&self) -> bool {
        self.policy.order == ServerOrder::Rotate
    }

    /// The server for a client's next query over UDP, or its next connection.
    pub(crate) fn choose(&mut self, client: u32, now: Instant) -> u8 {
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

    /// The next server that was not tried yet; none if all were.
    pub(crate) fn choose_racer(&mut self, client: u32) -> Option<u8> {
        let servers = self.servers();
        let own = &mut self.clients[client as usize];
        let mut others = (1..servers).map(|step| (own.server + step) % servers);
        let server = others.find(|server| own.tried & (1 << server) == 0)?;
        own.tried |= 1 << server;
        Some(server)
    }

    /// True if a race could have another participant.
    pub(crate) fn has_untried(&self, client: u32) -> bool {
        let tried = self.clients[client as usize].tried;
        tried.count_ones() < u32::from(self.servers())
    }

    /// The server after `server`, without dead ones.
    pub(crate) fn after(&self, client: u32, server: u8, now: Instant) -> u8 {
        self.living_from(client, (server + 1) % self.servers(), now)
    }

    /// The first server from `start` on that is not marked dead; `start` if all are.
    pub(crate) fn living_from(&self, client: u32, start: u8, now: Instant) -> u8 {
        let servers = self.servers();
        let mut all = (0..servers).map(|step| (start + step) % servers);
        all.find(|server| !self.is_dead(client, *server, now))
            .unwrap_or(start)
    }

    pub(crate) fn is_dead(&self, client: u32, server: u8, now: Instant) -> bool {
        let place = client as usize * usize::from(self.servers()) + usize::from(server);
        self.dead_until.get(place).is_some_and(|until| *until > now)
    }

    /// Notes that `server` did not answer the client.
    pub(crate) fn mark_dead(&mut self, client: u32, server: u8, now: Instant) {
        let place = client as usize * usize::from(self.servers()) + usize::from(server);
        if let Some(until) = self.dead_until.get_mut(place) {
            *until = now + self.policy.dead_for;
        }
    }

    /// The server for the next attempt of a query.
    pub(crate) fn next_for(&mut self, client: u32, trail: Trail, cause: Cause, now: Instant) -> u8 {
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
        // Queries sent before the client switched do not make it switch again.
        if self.server_of(client) == trail.server {
            self.set_server(client, next);
        }
        next
    }

    /// Makes the client's next connection go to another server; false if that was decided before,
    /// or there is no other server.
    pub(crate) fn leave_connection(&mut self, client: u32, now: Instant) -> bool {
        let server = self.server_of(client);
        let next = self.after(client, server, now);
        let own = &mut self.clients[client as usize];
        let was_decided = own.next.replace(own.next.unwrap_or(next)).is_some();
        !was_decided && next != server
    }

    /// The server of a datagram socket.
    pub(crate) fn server_of_socket(&self, socket: SocketId) -> u8 {
        let server = self.server_of_socket.get(socket.index as usize);
        server.copied().unwrap_or(0)
    }

    pub(crate) fn socket(&self, client: u32, server: u8) -> Option<SocketId> {
        let place = client as usize * usize::from(self.servers()) + usize::from(server);
        self.sockets.get(place).copied()
    }

    /// The sockets of a client; none on streams.
    pub(crate) fn sockets_of(&self, client: u32) -> &[SocketId] {
        let servers = usize::from(self.servers());
        let first = client as usize * servers;
        self.sockets.get(first..first + servers).unwrap_or(&[])
    }

    /// True if the query can be sent once more.
    pub(crate) fn has_attempts_left(&self, trail: Trail) -> bool {
        usize::from(trail.attempts) < self.policy.waits.len()
    }

    /// True if the query goes to another server instead of accepting this response.
    pub(crate) fn passes_over(&self, trail: Trail, rcode: u16) -> bool {
        let all_asked = (0..self.servers()).all(|server| trail.has_asked(server));
        self.policy.failover_rcodes.contains(&rcode) && !all_asked && self.has_attempts_left(trail)
    }

    /// When the next attempt is due.
    pub(crate) fn next_due(&self) -> Instant {
        let first = |queue: &VecDeque<Due>| queue.front().map(|due| due.at);
        let queues = self.due.iter().chain([&self.at_once]);
        queues
            .filter_map(first)
            .min()
            .unwrap_or(Instant::FAR_FUTURE)
    }

    /// True if a query switches to another server without waiting.
    pub(crate) fn has_urgent(&self) -> bool {
        !self.at_once.is_empty()
    }

    /// Takes the attempt that was over first, if one is at `now`.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<(Due, Cause)> {
        if let Some(due) = self.at_once.pop_front() {
            return Some((due, Cause::Rcode));
        }
        let is_over = |queue: &&mut VecDeque<Due>| queue.front().is_some_and(|due| due.at <= now);
        let over = self.due.iter_mut().filter(is_over);
        let first = over.min_by_key(|queue| queue.front().map(|due| due.at))?;
        Some((first.pop_front()?, Cause::TimedOut))
    }

    /// Notes that the query at `position` was sent to `server`; returns how often it was by now.
    pub(crate) fn note_attempt(
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

/// The query of an attempt, if that has not ended yet.
pub(crate) fn under_way(pending: &Pending, due: &Due) -> Option<Query> {
    let query = pending.numbered(due.number)?;
    let is_last = pending.trail(query.position).attempts == due.attempts;
    (query.state == State::InFlight && is_last).then_some(query)
}
