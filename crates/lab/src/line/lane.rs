//! One direction of a line as a state machine: packets and instants go in, packets come out when
//! they are due.
//!
//! What chance does to packet number n follows from the seed and n alone. Call
//! [`Lane::handle_packet`] for each packet in the order in which they come, then
//! [`Lane::poll_transmit`] until there is nothing due, each time with [`Lane::handle_delivered`] or
//! [`Lane::handle_refused`]; [`Lane::poll_timeout`] is when to do so again.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use load::random::Draws;
use measure::line::{Direction, Impairment};
use proto::Instant;

/// Octets of packets under way, at most: 10 s at 200 Mbit/s.
const HELD_OCTETS_MAX: usize = 256 << 20;
/// What a packet under way takes beside its octets.
const OVERHEAD_OCTETS: usize = size_of::<Departure>();

/// One direction: what is under way, and what has become of the rest.
#[derive(Debug)]
pub(super) struct Lane {
    seed: u64,
    /// Since the last account.
    counted: Direction,
    /// Packets before that.
    numbered: u64,
    /// When all that was taken has been sent at the rate.
    sent_until: Instant,
    /// When those that wait for their turn at the rate begin to be sent.
    queue: VecDeque<Instant>,
    /// When the last packet that was not held back is due.
    due_last: Instant,
    held: BinaryHeap<Reverse<Departure>>,
    held_octets: usize,
    held_octets_max: usize,
    /// The highest number that has left.
    last_left: u64,
}

/// A packet on its way out; earlier ones are less.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Departure {
    /// When it is due.
    pub(super) due: Instant,
    /// Which of the packets, from 0.
    pub(super) number: u64,
    /// It occurs twice.
    pub(super) is_copy: bool,
    /// From its IP header on.
    pub(super) packet: Vec<u8>,
}

impl Lane {
    /// One that nothing is on; directions of one line have seeds of their own.
    pub(super) fn new(asked: Impairment, seed: u64) -> Lane {
        Lane {
            seed,
            counted: Direction::new(asked),
            numbered: 0,
            sent_until: Instant::ZERO,
            queue: VecDeque::new(),
            due_last: Instant::ZERO,
            held: BinaryHeap::new(),
            held_octets: 0,
            held_octets_max: HELD_OCTETS_MAX,
            last_left: 0,
        }
    }

    /// Takes a packet that was read at `at`, after it may have waited since `since`.
    pub(super) fn handle_packet(&mut self, since: Instant, at: Instant, packet: &[u8]) {
        if !is_carried(packet) {
            self.counted.not_carried += 1;
            return;
        }
        let number = self.numbered + self.counted.packets;
        self.counted.packets += 1;
        self.counted.octets += packet.len() as u64;
        self.counted.unread.record(at.nanos_since(since));
        let asked = self.counted.asked;
        // Each is drawn for each packet, so that none depends on what else is asked.
        let mut draws = Draws::of(self.seed, number);
        let [loss, jitter, reorder, duplicate] = [(); 4].map(|()| draws.uniform());
        if loss < asked.loss {
            self.counted.lost.asked_for += 1;
            return;
        }
        let Some(sent) = self.send(at, packet.len()) else {
            self.counted.lost.queue_full += 1;
            return;
        };
        let delay_ns = asked.delay_ns + (jitter * asked.jitter_ns as f64) as u64;
        let mut due = (sent + Duration::from_nanos(delay_ns)).max(self.due_last);
        self.due_last = due;
        if reorder < asked.reorder {
            self.counted.held_back += 1;
            due = due + Duration::from_nanos(asked.reorder_by_ns);
        }
        self.hold(due, number, false, packet);
        if duplicate < asked.duplicate {
            self.counted.duplicated += 1;
            self.hold(due, number, true, packet);
        }
    }

    /// When its last octet is on the line, at the rate; none if too many wait for that already.
    fn send(&mut self, at: Instant, octets: usize) -> Option<Instant> {
        let Some(rate_bps) = self.counted.asked.rate_bps else {
            return Some(at);
        };
        while self.queue.front().is_some_and(|begin| *begin <= at) {
            self.queue.pop_front();
        }
        if self.sent_until > at {
            if self.queue.len() as u64 >= self.counted.asked.queue {
                return None;
            }
            self.queue.push_back(self.sent_until);
        }
        let takes_ns = (octets as u64 * 8 * 1_000_000_000).div_ceil(rate_bps);
        self.sent_until = self.sent_until.max(at) + Duration::from_nanos(takes_ns);
        Some(self.sent_until)
    }

    fn hold(&mut self, due: Instant, number: u64, is_copy: bool, packet: &[u8]) {
        let octets = packet.len() + OVERHEAD_OCTETS;
        if self.held_octets + octets > self.held_octets_max {
            self.counted.lost.too_much_under_way += 1;
            return;
        }
        self.held_octets += octets;
        self.held.push(Reverse(Departure {
            due,
            number,
            is_copy,
            packet: packet.to_vec(),
        }));
    }

    /// When the next packet is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.held.peek().map(|Reverse(next)| next.due)
    }

    /// The next packet that is due at `now`.
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<Departure> {
        if self.poll_timeout().is_none_or(|due| due > now) {
            return None;
        }
        let Reverse(next) = self.held.pop()?;
        self.held_octets -= next.packet.len() + OVERHEAD_OCTETS;
        Some(next)
    }

    /// It has left the line at `at`.
    pub(super) fn handle_delivered(&mut self, departure: &Departure, at: Instant) {
        self.counted.delivered += 1;
        self.counted.late.record(at.nanos_since(departure.due));
        self.counted.overtaken += u64::from(departure.number < self.last_left);
        self.last_left = self.last_left.max(departure.number);
    }

    /// The other end did not take it.
    pub(super) fn handle_refused(&mut self) {
        self.counted.lost.refused += 1;
    }

    /// What became of everything since the last account; `not_read` is what its interface dropped
    /// meanwhile. What is under way is at the beginning of the next one.
    pub(super) fn account(&mut self, not_read: u64) -> Direction {
        let under_way = self.held.len() as u64;
        self.numbered += self.counted.packets;
        let next = Direction {
            under_way_at_start: under_way,
            ..Direction::new(self.counted.asked)
        };
        Direction {
            under_way,
            not_read,
            ..std::mem::replace(&mut self.counted, next)
        }
    }
}

/// True for unicast IP packets. The multicast and broadcast packets of an interface (RFC 3810, RFC
/// 4861) are no load, and the kernel decides on their number and times: if they were counted, they
/// would shift the random draws of all packets after them.
fn is_carried(packet: &[u8]) -> bool {
    match packet.first().map(|first| first >> 4) {
        Some(4) => packet.get(16).is_some_and(|first| *first < 224),
        Some(6) => packet.get(24).is_some_and(|first| *first != 0xff),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
