//! Timestamps of datagrams: which query each belongs to, and where its time went.
//!
//! The latency of a query has three parts: until it left (it waited in the generator), until its
//! response arrived (wire and server), and until the response was read (it waited for the reader).
//! They add up to the latency exactly. A datagram's send timestamp is known only after it was sent,
//! so the numbers of the last datagrams of each socket are kept in rings, allocated at the start.
//! Responses without known timestamps are counted.

use driver::{Driver, SendStamp, SocketId};
use proto::Instant;
use proto::pending::{Pending, Query};

use super::Ledger;

/// Entries over all clients of a worker, 20 bytes each; a client's are rounded up to a power of
/// two.
const ENTRIES: usize = 1 << 18;
/// Minimum and maximum entries of one client: from a few queries in flight to as many as it may
/// have.
const EACH: std::ops::RangeInclusive<usize> = 16..=1 << 15;

/// The stamps of a worker's clients.
pub(crate) struct Stamps {
    clients: Box<[Ring]>,
    mask: u32,
    /// When the datagram that is being handled arrived; zero if that is not known.
    arrived_at: Instant,
    /// Stamps as they are read; empty in between.
    read: Vec<SendStamp>,
}

/// The datagrams that one client sent last.
struct Ring {
    /// Datagrams sent.
    sent: u32,
    /// Number of the query in each, by the number of the datagram.
    queries: Box<[u32]>,
    /// When it left, by the number of the query.
    left: Box<[(u32, Instant)]>,
}

impl Stamps {
    /// For this number of clients.
    pub(crate) fn new(clients: u32) -> Self {
        let each = ENTRIES / (clients.max(1) as usize);
        let each = each.clamp(*EACH.start(), *EACH.end()).next_power_of_two();
        let ring = |_| Ring {
            sent: 0,
            queries: vec![0; each].into_boxed_slice(),
            left: vec![(0, Instant::ZERO); each].into_boxed_slice(),
        };
        Stamps {
            clients: (0..clients).map(ring).collect(),
            mask: (each - 1) as u32,
            arrived_at: Instant::ZERO,
            read: Vec::new(),
        }
    }

    /// Query `number` of a client was given to the kernel.
    pub(crate) fn sent(&mut self, client: u32, number: u32) {
        let mask = self.mask;
        let Some(ring) = self.clients.get_mut(client as usize) else {
            return;
        };
        ring.queries[(ring.sent & mask) as usize] = number;
        ring.left[(number & mask) as usize] = (number, Instant::ZERO);
        ring.sent = ring.sent.wrapping_add(1);
    }

    /// A datagram of a client has left.
    pub(crate) fn left(&mut self, client: u32, stamp: SendStamp) {
        let mask = self.mask;
        let Some(ring) = self.clients.get_mut(client as usize) else {
            return;
        };
        let age = ring.sent.wrapping_sub(stamp.number);
        if age == 0 || age > mask {
            return;
        }
        let number = ring.queries[(stamp.number & mask) as usize];
        let (kept, at) = &mut ring.left[(number & mask) as usize];
        if *kept == number {
            *at = stamp.at;
        }
    }

    /// The next response is in a datagram that arrived then.
    pub(crate) fn arrived(&mut self, at: Instant) {
        self.arrived_at = at;
    }

    /// When a query left and its response arrived, if both are known.
    fn of(&self, client: u32, number: u32) -> Option<(Instant, Instant)> {
        let ring = self.clients.get(client as usize)?;
        let (kept, left_at) = ring.left[(number & self.mask) as usize];
        let is_known =
            kept == number && left_at != Instant::ZERO && self.arrived_at != Instant::ZERO;
        is_known.then_some((left_at, self.arrived_at))
    }
}

impl Ledger {
    /// Records which queries the kernel has accepted: the first `accepted` of those rendered.
    pub(crate) fn note_sent(
        &mut self,
        pending: &Pending,
        positions: &[u32],
        (client, accepted): (u32, usize),
    ) {
        let Some(stamps) = &mut self.stamps else {
            return;
        };
        for position in positions.iter().take(accepted) {
            stamps.sent(client, pending.at(*position).number);
        }
    }

    /// Records when datagrams of a client left, as far as their timestamps are available.
    #[inline]
    pub(crate) fn read_send_stamps(
        &mut self,
        driver: &mut impl Driver,
        client: u32,
        socket: SocketId,
    ) {
        let Some(stamps) = &mut self.stamps else {
            return;
        };
        let mut read = std::mem::take(&mut stamps.read);
        driver.read_send_stamps(socket, &mut read);
        for stamp in read.drain(..) {
            stamps.left(client, stamp);
        }
        stamps.read = read;
    }

    /// Records the three parts of a query's latency; its response was read at `at`.
    #[cold]
    pub(crate) fn record_path(&mut self, owner: u32, query: &Query, at: Instant) {
        let Some(stamps) = &self.stamps else {
            return;
        };
        let interval = self.tally.of_query(query.scheduled_at);
        match stamps.of(owner, query.number) {
            None => interval.counts.stamps.missing += 1,
            // A clock was adjusted in between.
            Some((left_at, arrived_at))
                if left_at < query.sent_at || arrived_at < left_at || at < arrived_at =>
            {
                interval.counts.stamps.implausible += 1;
            }
            Some((left_at, arrived_at)) => {
                let path = &mut interval.distributions.path;
                path.generator
                    .record(left_at.nanos_since(query.scheduled_at));
                path.network.record(arrived_at.nanos_since(left_at));
                path.reader.record(at.nanos_since(arrived_at));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    fn stamp(number: u32, us: u64) -> SendStamp {
        SendStamp { number, at: at(us) }
    }

    #[test]
    fn a_stamp_belongs_to_the_query_that_its_datagram_carried() {
        let mut stamps = Stamps::new(2);
        // Numbers of queries may leave some out.
        for number in [5, 7, 8] {
            stamps.sent(1, number);
        }
        stamps.left(1, stamp(1, 20));
        // The same number, but a client that has sent nothing.
        stamps.left(0, stamp(0, 99));
        stamps.arrived(at(50));
        assert_eq!(stamps.of(1, 7), Some((at(20), at(50))));
        assert_eq!(stamps.of(1, 5), None);
        stamps.arrived(Instant::ZERO);
        assert_eq!(stamps.of(1, 7), None);
    }

    #[test]
    fn stamps_that_are_too_old_or_of_no_datagram_are_passed_over() {
        let mut stamps = Stamps::new(1 << 20);
        let room = stamps.mask + 1;
        assert_eq!(room, 16);
        for number in 0..=room {
            stamps.sent(0, number);
        }
        stamps.arrived(at(50));
        stamps.left(0, stamp(0, 1));
        stamps.left(0, stamp(room + 1, 2));
        assert!((0..=room).all(|number| stamps.of(0, number).is_none()));
        stamps.left(0, stamp(room, 3));
        assert_eq!(stamps.of(0, room), Some((at(3), at(50))));
    }
}
