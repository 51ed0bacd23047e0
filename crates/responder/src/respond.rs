//! Decides a query's fate: its response, its faults, and when it is due.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use proto::{Instant, Transport};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::answer::{Answered, Instead, Limit, answer};
use crate::behaviour::{Delay, Fault, after_stalls, table};
use crate::config::ResponderConfig;
use crate::counters::Counters;
use crate::delayed::{Delayed, Destination, Reply};
use crate::draw::draw;
use crate::place::WorkerPlace;
use crate::service::{Carrier, Service};
use crate::source_limit::SourceLimit;

/// The longest UDP payload over IPv4, in octets.
const DATAGRAM_OCTETS_MAX: u16 = 65_507;

/// The QR bit in the third octet of the header (RFC 1035, section 4.1.1).
const QR: u8 = 0x80;

/// The fate of one query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// No response, and nothing was appended.
    Dropped,
    /// The response was appended; send it this number of times now.
    Now(u32),
    /// Send this instead of a plain response, now; its message, if it has one, was appended.
    Instead(Reply),
    /// This number of copies of the response wait in [`Respondent::delayed`]; nothing was appended.
    Later(u32),
}

/// Decides the fates of queries, in the order in which they arrive.
pub(crate) struct Respondent {
    pub(crate) config: Arc<ResponderConfig>,
    pub(crate) counters: Counters,
    pub(crate) delayed: Delayed,
    /// Instant from which stalls are counted.
    pub(crate) start: Instant,
    /// Faults with their cumulative shares, inclusive.
    faults: Vec<(f64, Fault)>,
    ceiling: Option<Ceiling>,
    source_limit: Option<SourceLimit>,
    pub(crate) service: Option<Service>,
    generator: Xoshiro256PlusPlus,
}

/// At most one answer in each interval, and a bounded queue before it.
#[derive(Debug)]
struct Ceiling {
    interval_ps: u128,
    next_free_ps: u128,
    /// The turns of the queries that wait.
    waiting: VecDeque<Instant>,
    waiting_max: usize,
    /// With no queue: how long before its turn a query may arrive.
    burst_ps: Option<u128>,
}

impl Respondent {
    pub(crate) fn new(config: Arc<ResponderConfig>, place: WorkerPlace) -> Self {
        let behaviour = &config.behaviour;
        let mut cumulative = 0.0;
        let faults = table(&behaviour.faults).into_iter().map(|(fault, share)| {
            cumulative += share;
            (cumulative, fault)
        });
        let faults = faults.collect();
        let ceiling = behaviour.rate_qps_max.map(|rate| Ceiling {
            interval_ps: (1e12 * f64::from(place.count) / rate) as u128,
            next_free_ps: 0,
            waiting: VecDeque::new(),
            waiting_max: behaviour.rate_queue_max.div_ceil(place.count as usize),
            burst_ps: behaviour.rate_burst.map(|burst| burst.as_nanos() * 1000),
        });
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(config.seed);
        for _ in 0..place.index {
            generator.jump();
        }
        let seed = config.seed ^ u64::from(place.index) << 32;
        let service = config.service.as_ref();
        let limits = &config.limits;
        Respondent {
            counters: Counters::default(),
            delayed: Delayed::new(limits.delayed_responses_max, limits.delayed_octets_max),
            start: Instant::ZERO,
            faults,
            ceiling,
            source_limit: config
                .source_rate_max
                .map(|rate| SourceLimit::new(rate, place.count)),
            service: service.map(|model| Service::new(model, seed)),
            generator,
            config,
        }
    }

    /// Handles one message that arrived at `arrival`; the response is appended to `out` or kept.
    #[inline]
    pub(crate) fn handle(
        &mut self,
        (arrival, transport): (Instant, Transport),
        destination: Destination,
        query: &[u8],
        out: &mut Vec<u8>,
    ) -> Fate {
        if query.len() < 12 || query[2] & QR != 0 {
            self.counters.ignored += 1;
            return Fate::Dropped;
        }
        self.counters.queries.add(transport, 1);
        if let (Some(limit), Transport::Udp) = (&mut self.source_limit, transport)
            && let Destination::Datagram { to, .. } = destination
            && !limit.admits(to.ip(), arrival)
        {
            self.counters.rate_limited += 1;
            return Fate::Dropped;
        }
        let Some(served) = self.serve((arrival, transport), query) else {
            self.counters.queue_dropped += 1;
            return Fate::Dropped;
        };
        let Some(due) = self.due(served) else {
            self.counters.rate_dropped += 1;
            return Fate::Dropped;
        };
        let due = due + self.extra_delay(query);
        let fault = self.draw_fault();
        let fault = match fault.is_possible(transport) {
            true => fault,
            false => Fault::None,
        };
        if fault == Fault::Lost || self.is_for_silent_name(query) {
            self.counters.lost += 1;
            return Fate::Dropped;
        }
        let instead = match fault {
            Fault::Reset => Some(Reply::Reset),
            Fault::HttpStatus(status) => Some(Reply::Status(status)),
            _ => None,
        };
        if let Some(reply) = instead {
            return match due <= arrival {
                true => Fate::Instead(reply),
                false => Fate::Later(self.put_off(due, destination, (reply, &[]), 1)),
            };
        }
        let start = out.len();
        let Some((rcode, octets_max)) = self.respond(transport, query, fault, out) else {
            return Fate::Dropped;
        };
        self.spoil(fault, octets_max, start, out);
        let copies = self.draw_copies(transport);
        self.counters.count_rcode(rcode, u64::from(copies));
        let reply = match fault {
            Fault::WrongMediaType => Reply::Mistyped,
            _ => Reply::Message,
        };
        if due <= arrival {
            return match reply {
                Reply::Message => Fate::Now(copies),
                other => Fate::Instead(other),
            };
        }
        let kept = self.put_off(due, destination, (reply, &out[start..]), copies);
        out.truncate(start);
        Fate::Later(kept)
    }

    /// True if the query, which has a header, is for a name that gets no response.
    #[inline]
    fn is_for_silent_name(&self, query: &[u8]) -> bool {
        let mut silent = self.config.silent_names.iter();
        silent.any(|name| query[12..].starts_with(name))
    }

    /// The extra delay of a query's name; the query has a header.
    #[inline]
    fn extra_delay(&self, query: &[u8]) -> Duration {
        let mut slow = self.config.slow_names.iter();
        let found = slow.find(|(name, _)| query[12..].starts_with(name));
        found.map_or(Duration::ZERO, |(_, delay)| *delay)
    }

    /// Keeps copies of a reply until they are due; returns how many fitted.
    fn put_off(
        &mut self,
        due: Instant,
        destination: Destination,
        (reply, message): (Reply, &[u8]),
        copies: u32,
    ) -> u32 {
        let mut kept = 0;
        for _ in 0..copies {
            match self.delayed.push(due, destination, reply, message) {
                true => kept += 1,
                false => self.counters.delayed_dropped += 1,
            }
        }
        kept
    }

    /// Appends the response; returns its RCODE and its maximum length.
    #[inline]
    fn respond(
        &mut self,
        transport: Transport,
        query: &[u8],
        fault: Fault,
        out: &mut Vec<u8>,
    ) -> Option<(u16, usize)> {
        let limit = match (transport, fault) {
            // Never more than the client accepts: the source address may be forged.
            (Transport::Udp, Fault::Oversized) => Limit::Datagram(DATAGRAM_OCTETS_MAX),
            (Transport::Udp, _) => Limit::Datagram(self.config.udp_payload_octets_max),
            _ => Limit::Stream,
        };
        let instead = match fault {
            Fault::Rcode(rcode) => Instead::Rcode(rcode),
            Fault::Truncated => Instead::Truncated,
            _ => Instead::Nothing,
        };
        match answer(&self.config.zone, query, limit, instead, out) {
            Answered::Ignored => None,
            Answered::Response {
                rcode,
                malformed,
                update,
                octets_max,
            } => {
                self.counters.malformed += u64::from(malformed);
                self.counters.updates += u64::from(update);
                Some((rcode, octets_max))
            }
        }
    }

    /// When the modelled server has completed the query; `None` if its queue is full.
    #[inline]
    fn serve(&mut self, (at, transport): (Instant, Transport), query: &[u8]) -> Option<Instant> {
        let Some(service) = &mut self.service else {
            return Some(at);
        };
        let carrier = match transport {
            Transport::Udp => Carrier::Datagram,
            _ => Carrier::Stream,
        };
        service.query(at, carrier, query)
    }

    /// When the response to a query that is served at `arrival` is due; `None` if the queue is
    /// full.
    #[inline]
    fn due(&mut self, arrival: Instant) -> Option<Instant> {
        let Respondent {
            config,
            ceiling,
            generator,
            ..
        } = self;
        let behaviour = &config.behaviour;
        let turn = match ceiling {
            None => arrival,
            Some(ceiling) => {
                let stalls = &behaviour.stalls;
                ceiling.take_turn(arrival, |turn| after_stalls(stalls, self.start, turn))?
            }
        };
        let delay = match behaviour.delay {
            Delay::None => return Some(after_stalls(&behaviour.stalls, self.start, turn)),
            Delay::Constant(delay) => delay,
            random => random.at(draw(generator)),
        };
        Some(after_stalls(&behaviour.stalls, self.start, turn + delay))
    }

    #[inline]
    fn draw_fault(&mut self) -> Fault {
        if self.faults.is_empty() {
            return Fault::None;
        }
        let chance = draw(&mut self.generator);
        let hit = self
            .faults
            .iter()
            .find(|(cumulative, _)| chance < *cumulative);
        hit.map_or(Fault::None, |&(_, fault)| fault)
    }

    #[inline]
    fn draw_copies(&mut self, transport: Transport) -> u32 {
        let share = self.config.behaviour.duplicate_share;
        // Only one response fits on a query's own stream.
        let is_possible = !transport.is_doh() && transport != Transport::Doq;
        if is_possible && share > 0.0 && draw(&mut self.generator) < share {
            self.counters.duplicated += 1;
            return 2;
        }
        1
    }

    /// Applies a fault to the response at `start`.
    fn spoil(&mut self, fault: Fault, octets_max: usize, start: usize, out: &mut Vec<u8>) {
        let response = &mut out[start..];
        match fault {
            Fault::WrongId => response[1] ^= 0x55,
            Fault::WrongQuestion => spoil_question(response),
            Fault::WrongQr => response[2] &= !QR,
            Fault::WrongMediaType => {}
            Fault::Garbage => self.generator.fill_bytes(response),
            Fault::Oversized => pad(start, octets_max, out),
            Fault::None
            | Fault::Lost
            | Fault::Rcode(_)
            | Fault::Truncated
            | Fault::Reset
            | Fault::HttpStatus(_) => return,
        }
        self.counters.spoilt += 1;
    }
}

/// Changes the first letter of QNAME, or QTYPE if it is the root. A bare header stays as it is.
fn spoil_question(response: &mut [u8]) {
    match response.get(12) {
        None => {}
        Some(0) => response[14] ^= 0x01,
        // Not the bit in which upper and lower case differ.
        Some(_) => response[13] ^= 0x01,
    }
}

/// Adds a NULL record (RFC 1035, section 3.3.10) that makes the message `octets` long.
fn pad(start: usize, octets: usize, out: &mut Vec<u8>) {
    let head = [0, 0, 10, 0, 1, 0, 0, 0, 0];
    let Some(room) = octets.checked_sub(out.len() - start + head.len() + 2) else {
        return;
    };
    out.extend_from_slice(&head);
    out.extend_from_slice(&(room as u16).to_be_bytes());
    out.resize(start + octets, 0);
    let additional = &mut out[start + 10..start + 12];
    let count = u16::from_be_bytes([additional[0], additional[1]]) + 1;
    additional.copy_from_slice(&count.to_be_bytes());
}

impl Ceiling {
    /// The turn of a query that arrived at `arrival`, put off by `put_off`.
    fn take_turn(
        &mut self,
        arrival: Instant,
        put_off: impl Fn(Instant) -> Instant,
    ) -> Option<Instant> {
        if let Some(burst_ps) = self.burst_ps {
            return self.pass(arrival, burst_ps).then_some(arrival);
        }
        while self.waiting.front().is_some_and(|turn| *turn <= arrival) {
            self.waiting.pop_front();
        }
        if self.waiting.len() >= self.waiting_max {
            return None;
        }
        let arrival_ps = u128::from(arrival.as_nanos()) * 1000;
        let free_ps = self.next_free_ps.max(arrival_ps);
        let free_ns = u64::try_from(free_ps.div_ceil(1000)).unwrap_or(u64::MAX);
        let turn = put_off(Instant::from_nanos(free_ns));
        // Picoseconds are kept, so that a rate such as 3/s is met in the long run.
        let turn_ps = match turn.as_nanos() == free_ns {
            true => free_ps,
            false => u128::from(turn.as_nanos()) * 1000,
        };
        self.next_free_ps = turn_ps + self.interval_ps;
        if turn > arrival {
            self.waiting.push_back(turn);
        }
        Some(turn)
    }

    /// True if a query that arrived at `arrival` is answered, without a queue (the generic cell
    /// rate algorithm of ITU-T I.371: a token bucket that holds `burst_ps`).
    fn pass(&mut self, arrival: Instant, burst_ps: u128) -> bool {
        let arrival_ps = u128::from(arrival.as_nanos()) * 1000;
        let turn_ps = self.next_free_ps.max(arrival_ps);
        if turn_ps - arrival_ps > burst_ps {
            return false;
        }
        self.next_free_ps = turn_ps + self.interval_ps;
        true
    }
}
