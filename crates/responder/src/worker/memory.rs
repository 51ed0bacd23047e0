//! The memory of a worker: one account over all transports; connections are closed beyond its
//! limits.

use std::ops::Add;

use driver::{Close, Driver, SocketId};
use proto::Instant;
use proto::quic::ConnectionKey;

use super::ResponderWorker;
use crate::config::Limits;
use crate::octets::Octets;
use crate::quic::Quic;

/// The limits of one worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct OctetsMax {
    pending: usize,
    all: usize,
}

impl OctetsMax {
    pub(super) fn of_worker(limits: &Limits, workers: u32) -> OctetsMax {
        OctetsMax {
            pending: limits.pending_octets_max / workers as usize,
            all: limits.memory_octets_max / workers as usize,
        }
    }
}

/// The memory of one connection, as far as it counts against the limit.
struct Holding {
    octets: usize,
    /// Octets times nanoseconds since the connection last made progress.
    weight: u128,
    socket: SocketId,
    quic: Option<ConnectionKey>,
}

impl Holding {
    fn new(octets: usize, idle_ns: u64, socket: SocketId, quic: Option<ConnectionKey>) -> Self {
        Holding {
            octets,
            weight: octets as u128 * u128::from(idle_ns.max(1)),
            socket,
            quic,
        }
    }
}

impl ResponderWorker {
    /// Octets that connections and delayed responses hold, by an account that rounds up.
    pub fn memory_octets(&self) -> usize {
        self.held().all() + self.respondent.delayed.held_octets()
    }

    /// Incomplete queries, and waiting responses.
    pub fn pending_octets(&self) -> usize {
        self.held().pending + self.respondent.delayed.held_octets()
    }

    /// QUIC connections whose clients have not proved their address.
    pub fn unvalidated(&self) -> usize {
        self.quic().map(|(_, quic)| quic.unvalidated()).sum()
    }

    fn quic(&self) -> impl Iterator<Item = (SocketId, &Quic)> {
        let quic = self.quic_sockets.iter();
        quic.filter_map(|&socket| Some((socket, self.sockets.quic_ref(socket)?)))
    }

    /// The memory of all connections.
    fn held(&self) -> Octets {
        let quic = self.quic().map(|(_, quic)| quic.held());
        quic.fold(self.stream_octets, Octets::add)
    }

    /// Updates the account with the memory of a connection over TCP.
    pub(super) fn count_octets(&mut self, socket: SocketId) {
        if let Some(connection) = self.sockets.connection(socket) {
            let held = connection.held();
            self.stream_octets += held;
            self.stream_octets -= connection.counted;
            connection.counted = held;
        }
    }

    /// Closes connections if all together hold too much, and gives the remaining memory to delayed
    /// responses.
    pub(super) fn keep_within_memory<D: Driver>(&mut self, driver: &mut D, now: Instant) {
        let max = self.octets_max;
        let delayed_octets = self.respondent.delayed.held_octets();
        let mut held = self.held();
        let all = held.all() + delayed_octets;
        if all > max.all {
            let excess = all - max.all + max.all / 8;
            self.close_heaviest(driver, (now, excess), Octets::all);
            held = self.held();
        }
        let pending = held.pending + delayed_octets;
        if pending > max.pending {
            let excess = pending - max.pending + max.pending / 8;
            self.close_heaviest(driver, (now, excess), |held| held.pending);
            held = self.held();
        }
        let own_max = self.respondent.config.limits.delayed_octets_max;
        let room = max.pending.saturating_sub(held.pending);
        let delayed = &mut self.respondent.delayed;
        delayed.set_octets_max(own_max, room.min(max.pending / 2));
    }

    /// Closes the connections that hold most for longest, until `excess` bytes are freed. That is
    /// at least an eighth of the limit, so that a scan of all connections is rare.
    fn close_heaviest<D: Driver>(
        &mut self,
        driver: &mut D,
        (now, excess): (Instant, usize),
        counts: impl Fn(Octets) -> usize,
    ) {
        let mut holdings = Vec::new();
        for (socket, connection) in self.sockets.connections() {
            let idle_ns = now.nanos_since(connection.progress_at);
            let octets = counts(connection.counted);
            holdings.push(Holding::new(octets, idle_ns, socket, None));
        }
        for (socket, quic) in self.quic() {
            for (key, held, progress_at) in quic.holdings() {
                let idle_ns = now.nanos_since(progress_at);
                holdings.push(Holding::new(counts(held), idle_ns, socket, Some(key)));
            }
        }
        holdings.retain(|holding| holding.octets > 0);
        holdings.sort_unstable_by_key(|holding| std::cmp::Reverse(holding.weight));
        let mut freed = 0;
        for holding in holdings {
            if freed >= excess {
                return;
            }
            freed += holding.octets;
            self.respondent.counters.memory_closed += 1;
            match holding.quic {
                None => self.end(driver, holding.socket, Close::Reset),
                Some(key) => {
                    if let Some(quic) = self.sockets.quic(holding.socket) {
                        quic.reset(key, &mut self.respondent);
                    }
                }
            }
        }
    }
}
