//! A model of the time that a server needs: workers, a queue before them, and a cache.
//!
//! Everything that costs the server something is a *job*: a query, an accepted connection, a
//! handshake. Jobs are served in order of arrival (FIFO) by the first free worker, without
//! preemption, as by threads that share their sockets. With matching arrivals and service times the
//! model is the textbook queue M/M/c, M/D/1 and so on.
//!
//! The model computes the end of a job on its arrival; its methods have to be called in order of
//! time. Datagrams that find the queue full are dropped, as by a full socket buffer; queries over
//! streams wait. A question that is not in the cache is resolved upstream, which takes time but no
//! worker; further queries for the same question join it.
//!
//! Not modelled: bytes on the wire, context switches, answers of different cost, and the cost of
//! parsing and encryption beside the query's own time.

mod cache;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use measure::Histogram;
use proto::tls::HandshakeKind;
use proto::{Instant, name};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
pub use settings::{CacheModel, ServiceModel};

use crate::behaviour::Delay;
use crate::draw::draw;
use crate::zone::NameHasher;
use cache::{Cache, Found};

/// Counts of jobs that arrived between two instants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceCounts {
    /// Queries, those dropped included.
    pub queries: u64,
    /// Datagrams dropped because too many waited.
    pub dropped: u64,
    /// Connections accepted.
    pub accepts: u64,
    /// Full handshakes.
    pub handshakes_full: u64,
    /// Handshakes that resumed a session.
    pub handshakes_resumed: u64,
    /// Maximum number of waiting jobs.
    pub waiting_max: u64,
    /// Time that workers were busy, added up over workers.
    pub busy_ns: u64,
    /// How long queries waited for a worker.
    pub waits: Histogram,
    /// Queries answered from the cache.
    pub cache_hits: u64,
    /// Queries that were resolved upstream.
    pub cache_misses: u64,
    /// Queries that joined an earlier upstream query.
    pub cache_joined: u64,
    /// Unexpired answers evicted for others.
    pub cache_evicted: u64,
}

/// The transport of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    Datagram,
    Stream,
}

/// A running model.
#[derive(Debug)]
pub(crate) struct Service {
    model: ServiceModel,
    /// When each worker will have finished its current jobs.
    free_at: BinaryHeap<Reverse<Instant>>,
    waiting: Waiting,
    waiting_datagrams: Waiting,
    waiting_accepts: Waiting,
    cache: Option<Cache>,
    generator: Xoshiro256PlusPlus,
    counts: ServiceCounts,
    window: (Instant, Instant),
}

/// When waiting jobs will begin, in order.
#[derive(Debug, Default)]
struct Waiting(VecDeque<Instant>);

impl Waiting {
    fn count(&mut self, now: Instant) -> usize {
        while self.0.front().is_some_and(|begins_at| *begins_at <= now) {
            self.0.pop_front();
        }
        self.0.len()
    }
}

impl Service {
    pub(crate) fn new(model: &ServiceModel, seed: u64) -> Self {
        let workers = model.workers.max(1) as usize;
        Service {
            free_at: vec![Reverse(Instant::ZERO); workers].into(),
            waiting: Waiting::default(),
            waiting_datagrams: Waiting::default(),
            waiting_accepts: Waiting::default(),
            cache: model.cache.map(Cache::new),
            // Independent of the responder's own random numbers.
            generator: Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x5e71_1ce5),
            counts: ServiceCounts::default(),
            window: (Instant::ZERO, Instant::FAR_FUTURE),
            model: model.clone(),
        }
    }

    /// Counts only jobs that arrive from `from` until before `until`; `from` has not passed yet.
    pub(crate) fn observe(&mut self, from: Instant, until: Instant) {
        self.window = (from, until);
        // Accepted work is served without a break.
        let left = self.free_at.iter();
        let busy = left.map(|Reverse(free_at)| free_at.min(&until).nanos_since(from));
        self.counts = ServiceCounts {
            busy_ns: busy.sum(),
            ..ServiceCounts::default()
        };
    }

    pub(crate) fn counts(&self) -> &ServiceCounts {
        &self.counts
    }

    fn is_observed(&self, at: Instant) -> bool {
        self.window.0 <= at && at < self.window.1
    }

    /// When the answer to `query`, which arrived at `now`, is ready; `None` if it is dropped.
    pub(crate) fn query(
        &mut self,
        now: Instant,
        carrier: Carrier,
        query: &[u8],
    ) -> Option<Instant> {
        let observed = self.is_observed(now);
        self.counts.queries += u64::from(observed);
        let datagrams_max = self
            .model
            .datagrams_max
            .map_or(usize::MAX, |max| max as usize);
        let is_datagram = carrier == Carrier::Datagram;
        if is_datagram
            && self.begins_at(now) > now
            && self.waiting_datagrams.count(now) >= datagrams_max
        {
            self.counts.dropped += u64::from(observed);
            return None;
        }
        let time = self.draw(self.model.query);
        let begins_at = self.begins_at(now);
        let found = match &mut self.cache {
            Some(cache) => cache.find(question(query), begins_at),
            None => Found::Known,
        };
        let time = match found {
            Found::Missing { .. } => time + self.miss_service(),
            Found::Known | Found::Hit | Found::Awaited(_) => time,
        };
        let done_at = self.occupy(now, time);
        if begins_at > now && is_datagram {
            self.waiting_datagrams.0.push_back(begins_at);
        }
        if observed {
            self.counts.waits.record(begins_at.nanos_since(now));
            self.counts.cache_hits += u64::from(matches!(found, Found::Hit));
            self.counts.cache_joined += u64::from(matches!(found, Found::Awaited(_)));
            self.counts.cache_misses += u64::from(matches!(found, Found::Missing { .. }));
        }
        Some(match found {
            Found::Known | Found::Hit => done_at,
            Found::Awaited(answered_at) => answered_at.max(done_at),
            Found::Missing { key } => self.ask_upstream(key, done_at, observed),
        })
    }

    fn miss_service(&self) -> Duration {
        let cache = self.model.cache.as_ref();
        cache.map_or(Duration::ZERO, |cache| cache.miss_service)
    }

    /// When the answer to an upstream query sent at `at` arrives; it is cached if it has a `key`.
    fn ask_upstream(&mut self, key: Option<u64>, at: Instant, observed: bool) -> Instant {
        let miss = self.model.cache.map_or(Delay::None, |cache| cache.miss);
        let answered_at = at + self.draw(miss);
        if let (Some(cache), Some(key)) = (&mut self.cache, key) {
            let evicted = cache.keep(key, answered_at);
            self.counts.cache_evicted += u64::from(evicted && observed);
        }
        answered_at
    }

    /// When a connection that arrived at `now` is accepted.
    pub(crate) fn accept(&mut self, now: Instant) -> Instant {
        if self.model.accept.is_zero() {
            return now;
        }
        self.counts.accepts += u64::from(self.is_observed(now));
        let begins_at = self.begins_at(now);
        if begins_at > now {
            self.waiting_accepts.0.push_back(begins_at);
        }
        self.occupy(now, self.model.accept)
    }

    /// When the server's part of a handshake that began at `now` is done.
    pub(crate) fn handshake(&mut self, now: Instant, kind: HandshakeKind) -> Instant {
        let is_resumed = kind == HandshakeKind::Resumed;
        let observed = u64::from(self.is_observed(now));
        let time = match is_resumed {
            true => self.model.handshake_resumed,
            false => self.model.handshake_full,
        };
        self.counts.handshakes_resumed += observed * u64::from(is_resumed);
        self.counts.handshakes_full += observed * u64::from(!is_resumed);
        match time.is_zero() {
            true => now,
            false => self.occupy(now, time),
        }
    }

    /// How many more connections may wait to be accepted, and when there may be more; `None` if
    /// there is no limit.
    pub(crate) fn backlog(&mut self, now: Instant) -> Option<(u32, Instant)> {
        let max = self.model.backlog_max? as usize;
        let waiting = self.waiting_accepts.count(now);
        let next = self.waiting_accepts.0.front();
        let next = next.copied().unwrap_or(Instant::FAR_FUTURE);
        Some((max.saturating_sub(waiting) as u32, next))
    }

    /// When a job that arrives at `now` begins.
    fn begins_at(&self, now: Instant) -> Instant {
        let first_free = self.free_at.peek();
        first_free.map_or(now, |Reverse(free_at)| now.max(*free_at))
    }

    /// Gives a job of this length to the first free worker; returns its end.
    fn occupy(&mut self, now: Instant, time: Duration) -> Instant {
        let begins_at = self.begins_at(now);
        let done_at = begins_at + time;
        if let Some(mut first_free) = self.free_at.peek_mut() {
            *first_free = Reverse(done_at);
        }
        let (from, until) = self.window;
        self.counts.busy_ns += done_at.min(until).nanos_since(begins_at.max(from));
        let mut waiting = self.waiting.count(now);
        if begins_at > now {
            self.waiting.0.push_back(begins_at);
            waiting += 1;
        }
        if self.is_observed(now) {
            self.counts.waiting_max = self.counts.waiting_max.max(waiting as u64);
        }
        done_at
    }

    fn draw(&mut self, delay: Delay) -> Duration {
        match delay {
            Delay::None => Duration::ZERO,
            Delay::Constant(delay) => delay,
            random => random.at(draw(&mut self.generator)),
        }
    }
}

/// A hash of a query's question: equal for equal QNAME (in any case), QTYPE and QCLASS. Among a
/// million questions, the probability of a collision is 1 in 30 million.
fn question(query: &[u8]) -> Option<u64> {
    let qname = query.get(12..)?;
    let octets = name::wire_length(qname)?;
    let fixed = qname.get(octets..octets + 4)?;
    let mut lower = [0; 256 + 4];
    lower[..octets].copy_from_slice(&qname[..octets]);
    // Label lengths are at most 63, below `A`: lowering the whole name changes letters only.
    lower[..octets].make_ascii_lowercase();
    lower[octets..octets + 4].copy_from_slice(fixed);
    Some(NameHasher::hash(&lower[..octets + 4]))
}
