//! The offer of a population: each client sends queries at its own instants.
//!
//! A heap holds the next query of every client. 24,000 clients are 15 levels of 16 octets: some 100
//! ns a query, of the 3 us that a query over UDP costs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use load::client_arrival::ClientPace;
use load::profile::{ProfilePace, ProfiledClients};
use load::{Arrival, ClientArrival, ConnectionPolicy, Plan, Shape};
use proto::Instant;

use super::unoffered::{COUNTED_MAX, Unoffered};
use crate::worker::population::Population;

/// When the clients of one worker send queries.
pub(crate) struct ByClient {
    paces: Paces,
    shape: Option<Shape>,
    /// The next query of each client; in the closed loop all queries for which a client's think
    /// time runs.
    due: BinaryHeap<Reverse<(Instant, u32)>>,
    /// Number of each client's entries in `due`; closed loop only.
    thinking: Vec<u16>,
    /// No query is due from this instant on.
    until: Instant,
    has_started: bool,
}

/// Arrivals and current state of each client.
enum Paces {
    /// The same arrivals for all clients.
    Alike(ClientArrival, Vec<ClientPace>),
    /// Rate and arrivals of each client drawn from a profile.
    Drawn(Arc<ProfiledClients>, Vec<ProfilePace>),
}

impl Paces {
    fn len(&self) -> usize {
        match self {
            Paces::Alike(_, paces) => paces.len(),
            Paces::Drawn(_, paces) => paces.len(),
        }
    }

    /// Queries that a client of the closed loop has open at once; none if time makes them due.
    fn outstanding(&self) -> Option<u32> {
        match self {
            Paces::Alike(ClientArrival::Closed { outstanding, .. }, _) => {
                Some((*outstanding).min(u16::MAX.into()))
            }
            _ => None,
        }
    }

    /// Mean rate of a client, in queries a second.
    fn rate_qps(&self) -> f64 {
        match self {
            Paces::Alike(arrival, _) => arrival.rate_qps().unwrap_or(0.0),
            Paces::Drawn(clients, _) => clients.rate_qps_mean(),
        }
    }

    fn first_due(&mut self, client: u32, shape: Option<&Shape>, start: Instant) -> Instant {
        match self {
            Paces::Alike(arrival, paces) => paces[client as usize].first_due(arrival, shape, start),
            Paces::Drawn(all, paces) => paces[client as usize].first_due(all, shape, start),
        }
    }

    #[inline]
    fn next_due(&mut self, client: u32, shape: Option<&Shape>, due: Instant) -> Instant {
        match self {
            Paces::Alike(arrival, paces) => paces[client as usize].next_due(arrival, shape, due),
            Paces::Drawn(all, paces) => paces[client as usize].next_due(all, shape, due),
        }
    }
}

impl ByClient {
    /// The clients of a worker, by their numbers in the population.
    pub(crate) fn new(plan: &Plan, clients: Range<u32>) -> Self {
        let number = clients.len();
        let paces = match &plan.arrival {
            Arrival::Clients(arrival) => {
                let pace = |client| ClientPace::new(plan.seed, client);
                Paces::Alike(*arrival, clients.map(pace).collect())
            }
            Arrival::Profile(profile) => {
                let paces = profile.paces(plan.seed, plan.clients, clients);
                Paces::Drawn(Arc::clone(profile), paces)
            }
            _ => unreachable!("the plan was validated"),
        };
        let is_closed = paces.outstanding().is_some();
        ByClient {
            paces,
            shape: None,
            due: BinaryHeap::with_capacity(number),
            thinking: if is_closed {
                vec![0; number]
            } else {
                Vec::new()
            },
            until: Instant::FAR_FUTURE,
            has_started: false,
        }
    }

    /// The run starts at `start`; the clients are present from `joins_at` to `until`.
    pub(crate) fn start(
        &mut self,
        plan: &Plan,
        (start, joins_at): (Instant, Instant),
        until: Instant,
    ) {
        self.has_started = true;
        self.until = until;
        self.shape = plan.shape.as_ref().map(|shape| shape.starting_at(start));
        let at_once = self.paces.outstanding().unwrap_or(1);
        for client in 0..self.paces.len() as u32 {
            for _ in 0..at_once {
                let due = self.paces.first_due(client, self.shape.as_ref(), joins_at);
                self.push(due, client);
            }
        }
    }

    /// When the next query of any client is due.
    #[inline]
    pub(crate) fn next_due(&self) -> Instant {
        let first = self.due.peek();
        first.map_or(Instant::FAR_FUTURE, |Reverse((due, _))| *due)
    }

    /// True if time alone makes queries due, independent of earlier responses.
    pub(crate) fn is_open(&self) -> bool {
        self.paces.outstanding().is_none()
    }

    fn push(&mut self, due: Instant, client: u32) {
        if due >= self.until {
            return;
        }
        if let Some(thinking) = self.thinking.get_mut(client as usize) {
            *thinking += 1;
        }
        self.due.push(Reverse((due, client)));
    }

    /// Takes the query that is due first, and schedules the client's next one.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<(Instant, u32)> {
        if !self.is_open() {
            let Reverse((due, client)) = self.due.pop()?;
            self.thinking[client as usize] -= 1;
            return Some((due, client));
        }
        let mut first = self.due.peek_mut()?;
        let Reverse((due, client)) = *first;
        let next = self.paces.next_due(client, self.shape.as_ref(), due);
        if next < self.until {
            // Replacing the top costs half of taking it off and putting the next one on.
            *first = Reverse((next, client));
        } else {
            std::collections::binary_heap::PeekMut::pop(first);
        }
        Some((due, client))
    }

    /// Starts the think time of as many queries as `client`, which has `open` queries, may have at
    /// `now`.
    fn think_of(&mut self, client: u32, open: u32, now: Instant) {
        let Some(outstanding) = self.paces.outstanding() else {
            return;
        };
        if !self.has_started {
            return;
        }
        let busy = open + u32::from(self.thinking[client as usize]);
        for _ in busy..outstanding {
            let due = self.paces.next_due(client, None, now);
            self.push(due, client);
        }
    }

    /// Takes the next query if one is due before `end`, independent of earlier responses.
    fn take_before(&mut self, end: Instant) -> Option<Instant> {
        if !self.is_open() || self.next_due() >= end {
            return None;
        }
        self.take().map(|(due, _)| due)
    }

    /// Starts a closed-loop client's think time for its next query, if it can send one.
    pub(super) fn think(
        &mut self,
        population: &Population,
        policy: &ConnectionPolicy,
        (index, now): (u32, Instant),
    ) {
        let client = &population.clients[index as usize];
        let asks = index < population.primaries && now < self.until;
        if asks && !self.is_open() && client.can_send(policy) {
            self.think_of(index, client.open_queries(), now);
        }
    }

    /// Counts what was due before `end` and was never offered.
    pub(super) fn count_unoffered(&mut self, unoffered: &mut Unoffered<'_>, end: Instant) {
        for _ in 0..COUNTED_MAX {
            let Some(due) = self.take_before(end) else {
                return self.due.clear();
            };
            unoffered.count(due, 1);
        }
        let next_due = self.next_due().min(end);
        unoffered.count_evenly(self.count_before(end), (next_due, end));
        self.due.clear();
    }

    /// Queries that are due before `end`: exact at equal distances, else by the mean rate.
    fn count_before(&mut self, end: Instant) -> u64 {
        let is_constant = matches!(self.paces, Paces::Alike(ClientArrival::Constant { .. }, _));
        if !is_constant || self.shape.is_some() {
            let rate_qps = self.paces.rate_qps() * self.paces.len() as f64;
            let left_s = end.nanos_since(self.next_due().min(end)) as f64 / 1e9;
            return (left_s * rate_qps) as u64;
        }
        let paces = &mut self.paces;
        let before = self.due.iter().filter(|Reverse((due, _))| *due < end);
        let each = before.map(|Reverse((due, client))| {
            let period_ns = paces.next_due(*client, None, *due).nanos_since(*due);
            1 + (end.nanos_since(*due) - 1) / period_ns.max(1)
        });
        each.sum()
    }
}
