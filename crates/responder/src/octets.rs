//! The account of connections' memory.

use std::ops::{Add, AddAssign, SubAssign};

use proto::quic::QuicServer;

/// Memory of connections, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Octets {
    /// Memory of connections without pending data.
    pub(crate) idle: usize,
    /// Incomplete queries, and waiting responses.
    pub(crate) pending: usize,
}

impl Octets {
    pub(crate) fn all(self) -> usize {
        self.idle + self.pending
    }

    /// The account of QUIC connections that hold `all` bytes together.
    pub(crate) fn of_quic(connections: usize, all: usize) -> Octets {
        let idle = all.min(connections * QuicServer::CONNECTION_OCTETS);
        Octets {
            idle,
            pending: all - idle,
        }
    }
}

impl Add for Octets {
    type Output = Octets;

    fn add(mut self, other: Octets) -> Octets {
        self += other;
        self
    }
}

impl AddAssign for Octets {
    fn add_assign(&mut self, other: Octets) {
        self.idle += other.idle;
        self.pending += other.pending;
    }
}

impl SubAssign for Octets {
    fn sub_assign(&mut self, other: Octets) {
        self.idle -= other.idle;
        self.pending -= other.pending;
    }
}
