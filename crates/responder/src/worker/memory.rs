//! The memory of a worker: one account over all transports, and what is closed beyond its limit.

use driver::{Close, Driver, SocketId};
use proto::Instant;
use proto::quic::ConnectionKey;

use super::ResponderWorker;
use crate::quic::Quic;

/// What one of the connections holds.
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
        self.connection_octets() + self.respondent.delayed.held_octets()
    }

    /// QUIC connections whose clients have not proved their address.
    pub fn unvalidated(&self) -> usize {
        let quic = self.quic_sockets.iter();
        let quic = quic.filter_map(|&socket| self.sockets.quic_ref(socket));
        quic.map(Quic::unvalidated).sum()
    }

    fn connection_octets(&self) -> usize {
        let quic = self.quic_sockets.iter();
        let quic = quic.filter_map(|&socket| self.sockets.quic_ref(socket));
        self.stream_octets + quic.map(Quic::held_octets).sum::<usize>()
    }

    /// Brings the account up to date with what a connection over TCP holds.
    pub(super) fn count_octets(&mut self, socket: SocketId) {
        if let Some(connection) = self.sockets.connection(socket) {
            let octets = connection.held_octets();
            self.stream_octets = self.stream_octets + octets - connection.counted_octets;
            connection.counted_octets = octets;
        }
    }

    /// Closes connections if all together hold too much, and leaves delayed responses what the
    /// connections do not hold.
    pub(super) fn keep_within_memory<D: Driver>(&mut self, driver: &mut D, now: Instant) {
        let max = self.memory_octets_max;
        let mut octets = self.connection_octets();
        if octets + self.respondent.delayed.held_octets() > max {
            self.close_heaviest(driver, now);
            octets = self.connection_octets();
        }
        let own_max = self.respondent.config.limits.delayed_octets_max;
        let room = max.saturating_sub(octets).min(max / 2);
        self.respondent.delayed.set_octets_max(own_max, room);
    }

    /// Closes the connections that hold most for longest until an eighth of the memory is free: one
    /// look at all of them then serves for many queries to come.
    fn close_heaviest<D: Driver>(&mut self, driver: &mut D, now: Instant) {
        let mut holdings = Vec::new();
        for (socket, connection) in self.sockets.connections() {
            let idle_ns = now.nanos_since(connection.progress_at);
            let octets = connection.counted_octets;
            holdings.push(Holding::new(octets, idle_ns, socket, None));
        }
        for &socket in &self.quic_sockets {
            let Some(quic) = self.sockets.quic_ref(socket) else {
                continue;
            };
            for (key, octets, progress_at) in quic.holdings() {
                let idle_ns = now.nanos_since(progress_at);
                holdings.push(Holding::new(octets, idle_ns, socket, Some(key)));
            }
        }
        holdings.sort_unstable_by_key(|holding| std::cmp::Reverse(holding.weight));
        let enough = self.memory_octets_max - self.memory_octets_max / 8;
        let mut held = self.memory_octets();
        for holding in holdings {
            if held <= enough {
                return;
            }
            held -= holding.octets;
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
