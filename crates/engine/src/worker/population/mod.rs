//! The clients of one worker: their sockets, connections, timers and scheduled events.
//!
//! * `client`, `connection`: one client, and its connection to the target.
//! * `set_up`: connections that are opened before the run, and the pace of all attempts.
//! * `events`: clients that join late, leave early, or lose their connections.
//! * `stub`: clients that retry and have several servers; `servers`: which server a query or a
//!   connection goes to, and the counts of each server.

pub(crate) mod client;
pub(crate) mod connection;
pub(crate) mod events;
pub(crate) mod racer;
mod servers;
pub(crate) mod set_up;
pub(crate) mod stub;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::SocketAddr;
use std::time::Duration;

use driver::{Driver, SocketId};
use load::{ConnectionPolicy, Plan};
use proto::Instant;
use proto::quic::ConnectionKey;

use super::summary::Timeline;
use super::wire::mix;
use client::{Client, Link, Role};
use connection::{Channel, Connection, Reason, Stage};
use events::Events;
use set_up::SetUp;
use stub::Stub;

/// The clients of one worker.
pub(crate) struct Population {
    /// The primary clients, then, with TCP fallback, one fallback client for each of them.
    pub(crate) clients: Vec<Client>,
    pub(crate) primaries: u32,
    /// Number of the first of them in the whole population.
    pub(crate) first_client: u32,
    /// Client of each socket, by socket index.
    pub(crate) owners: Vec<u32>,
    /// Due timers of clients; the valid entry of each client is the one in its `timer_at`.
    pub(crate) timers: BinaryHeap<Reverse<(Instant, u32)>>,
    /// Clients whose waiting queries are to be sent.
    pub(crate) to_send: Vec<u32>,
    pub(crate) set_up: SetUp,
    /// Their pending events.
    pub(crate) events: Events,
    /// When they join, and when they leave.
    pub(crate) joins_at: Instant,
    pub(crate) leaves_at: Instant,
    /// State of clients that retry; none if each query is sent once, to one server.
    pub(crate) stub: Option<Box<Stub>>,
    /// Connections that take no further query and await responses, by client and index of their
    /// socket: the client's link is its next connection.
    pub(crate) retiring: BTreeMap<(u32, u32), Box<Connection>>,
    /// The link of the client being served is one of its retiring connections.
    pub(crate) serves_retiring: bool,
    /// A client that had an open query when the drain last looked.
    drain_waits_for: usize,
}

impl Population {
    /// The clients of a worker: `primaries` of them, from number `first` on.
    pub(crate) fn new(plan: &Plan, (first, primaries): (u32, u32)) -> Self {
        let mut clients = make_clients(plan, first, primaries);
        Population {
            stub: (plan.stub.as_ref()).map(|policy| Stub::new(policy, &mut clients)),
            clients,
            primaries,
            first_client: first,
            owners: Vec::new(),
            timers: BinaryHeap::with_capacity(2 * primaries as usize),
            to_send: Vec::with_capacity(primaries as usize),
            set_up: SetUp::default(),
            events: Events::default(),
            joins_at: Instant::ZERO,
            leaves_at: Instant::FAR_FUTURE,
            retiring: BTreeMap::new(),
            serves_retiring: false,
            drain_waits_for: 0,
        }
    }

    /// The run starts at `start`.
    pub(crate) fn begin_run(&mut self, plan: &Plan, start: Instant) {
        let presence = &plan.presence;
        self.joins_at = start + presence.joins_after;
        self.leaves_at = (presence.leaves_after).map_or(Instant::FAR_FUTURE, |after| start + after);
        self.events = Events::of(presence, start);
    }

    /// How long the clients were present in the measured run.
    pub(crate) fn present_ns(&self, timeline: &Timeline) -> u64 {
        let from = self.joins_at.max(timeline.run_started_at);
        let until = self.leaves_at.min(timeline.run_ended_at);
        until.nanos_since(from)
    }

    /// Makes message IDs unpredictable (RFC 5452, section 9.2).
    pub(crate) fn choose_message_ids(&mut self, driver: &impl Driver) {
        let seed = driver.seed();
        let mut state = (seed.iter()).fold(0, |state, octet| mix(state ^ u64::from(*octet)));
        for client in &mut self.clients {
            state = mix(state);
            client.pending.start_ids((state >> 48) as u16);
        }
    }

    /// What a client is for, and which it is.
    #[inline]
    pub(crate) fn whose(&self, index: u32) -> (Role, u32) {
        (self.clients[index as usize].role, index)
    }

    /// The connection of a client, if it has one.
    #[inline]
    pub(crate) fn connection(&mut self, index: u32) -> Option<&mut Connection> {
        self.clients[index as usize].connection()
    }

    pub(crate) fn has_connection(&self, index: u32, socket: SocketId) -> bool {
        match &self.clients[index as usize].link {
            Link::Connected(connection) => connection.socket == socket,
            _ => false,
        }
    }

    /// True if `socket` is that of a retiring connection of the client.
    #[inline]
    pub(crate) fn is_retiring(&self, index: u32, socket: SocketId) -> bool {
        let connection = self.retiring.get(&(index, socket.index));
        connection.is_some_and(|connection| connection.socket == socket)
    }

    /// The sockets of the retiring connections of a client.
    pub(crate) fn retiring_of(&self, index: u32) -> impl Iterator<Item = SocketId> {
        let of_client = self.retiring.range((index, 0)..=(index, u32::MAX));
        of_client.map(|(_, connection)| connection.socket)
    }

    /// Numbers of the queries in flight on the connection of a client that has several, oldest
    /// first; none if the client has one, which carries all its queries.
    pub(crate) fn queries_of_link(&mut self, index: u32) -> Option<std::vec::IntoIter<u32>> {
        if !self.serves_retiring && self.retiring_of(index).next().is_none() {
            return None;
        }
        let numbers = match self.connection(index).map(|it| &mut it.channel) {
            Some(Channel::Http2(session)) => session.open_tokens(),
            // HTTP/2 has not begun on it.
            _ => Vec::new(),
        };
        Some(numbers.into_iter())
    }

    /// The endpoint's key of a client's connection, if that is a QUIC connection.
    #[inline]
    pub(crate) fn quic_key(&self, index: u32) -> Option<ConnectionKey> {
        match &self.clients[index as usize].link {
            Link::Connected(connection) => match connection.channel {
                Channel::Quic { key, .. } => Some(key),
                _ => None,
            },
            _ => None,
        }
    }

    /// Records the socket's client.
    pub(crate) fn own(&mut self, socket: SocketId, client: u32) {
        let index = socket.index as usize;
        if self.owners.len() <= index {
            self.owners.resize(index + 1, u32::MAX);
        }
        self.owners[index] = client;
    }

    /// Makes sure that the client's timer is due at `at` or earlier.
    #[inline]
    pub(crate) fn arm(&mut self, index: u32, at: Instant) {
        let client = &mut self.clients[index as usize];
        if at < client.timer_at {
            client.timer_at = at;
            self.timers.push(Reverse((at, index)));
        }
    }

    /// Lists a client so that its waiting queries are sent in the next batch.
    #[inline]
    pub(crate) fn send_later(&mut self, index: u32) {
        self.clients[index as usize].list_to_send(index, &mut self.to_send);
    }

    /// Lets a connection carry no further query.
    pub(crate) fn retire(&mut self, index: u32, reason: Reason) {
        if let Some(connection) = self.connection(index) {
            connection.retired_for.get_or_insert(reason);
        }
    }

    /// Counts a client's first attempt as over, for the set-up phase; `took` is how long, if its
    /// connection is usable.
    pub(crate) fn settle(&mut self, index: u32, took: Option<Duration>) {
        let client = &mut self.clients[index as usize];
        if client.role == Role::Primary && !client.settled {
            client.settled = true;
            self.set_up.settle(index, took);
        }
    }

    /// Connections that are opened for their own sake are opened from the start of the run on.
    pub(crate) fn begin_connections(&mut self, policy: &ConnectionPolicy, start: Instant) {
        if !policy.asks_nothing() {
            return;
        }
        if let Some(pace) = &mut self.set_up.pace {
            // Queued in advance, so that no attempt is missed if the worker wakes late.
            pace.skip_until(start, u64::MAX);
            self.set_up.queue.extend(0..self.primaries);
            let all = &mut self.clients[..self.primaries as usize];
            all.iter_mut()
                .for_each(|client| client.listed.to_connect = true);
        } else {
            (0..self.primaries).for_each(|index| self.arm(index, start));
        }
    }

    /// True if the drain waits for a client. Checks first the client that it waited for last: there
    /// may be many thousands, and every delivery brings a turn.
    pub(crate) fn has_open_client(&mut self, policy: &ConnectionPolicy) -> bool {
        let (last, end) = (self.drain_waits_for, self.clients.len());
        let mut from_last = (last..end).chain(0..last);
        // A run without queries measures the outcome of each connection.
        let connects = policy.asks_nothing();
        let open = from_last.find(|index| self.clients[*index].is_awaited(connects));
        self.drain_waits_for = open.unwrap_or(0);
        open.is_some()
    }

    /// True if a client has no connection because it needs none.
    pub(crate) fn has_idle_client(&self) -> bool {
        let is_idle = |it: &Client| {
            matches!(
                it.link,
                Link::Down {
                    on_demand: true,
                    ..
                }
            )
        };
        self.clients.iter().any(is_idle)
    }

    /// When the next participant of a client's race begins; none without a race.
    pub(crate) fn race_due(&self, index: u32) -> Option<Instant> {
        let stub = self.stub.as_ref()?;
        let delay = stub.race_delay()?;
        let Link::Connected(connection) = &self.clients[index as usize].link else {
            return None;
        };
        if connection.stage != Stage::Connecting || !stub.has_untried(index) {
            return None;
        }
        let last = stub.racers[index as usize].last();
        let started_at = last.map_or(connection.times.attempted_at, |racer| racer.started_at);
        Some(started_at + delay)
    }
}

/// The worker's clients, then, with TCP fallback, one fallback client for each of them.
fn make_clients(plan: &Plan, first: u32, primaries: u32) -> Vec<Client> {
    let local = |number: u32, role: Role| -> Option<SocketAddr> {
        let port = match (plan.local_port, role) {
            (0, _) | (_, Role::Fallback) => 0,
            (port, Role::Primary) => port.saturating_add(number as u16),
        };
        let addresses = &plan.local_addresses;
        if addresses.is_empty() {
            let any: std::net::IpAddr = match plan.target {
                SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
            };
            return (port != 0).then_some(SocketAddr::new(any, port));
        }
        Some(SocketAddr::new(
            addresses[number as usize % addresses.len()],
            port,
        ))
    };
    let roles: &[Role] = match plan.tcp_fallback {
        true => &[Role::Primary, Role::Fallback],
        false => &[Role::Primary],
    };
    let mut clients = Vec::with_capacity(primaries as usize * roles.len());
    for role in roles {
        for number in first..first + primaries {
            clients.push(Client::new(*role, local(number, *role)));
        }
    }
    clients
}
