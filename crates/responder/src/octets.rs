//! The account of what connections hold.

use std::ops::{Add, AddAssign, SubAssign};

use proto::quic::QuicServer;

/// What connections hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Octets {
    /// Taken while they hold nothing.
    pub(crate) idle: usize,
    /// Of queries that are not whole, and of responses that wait.
    pub(crate) pending: usize,
}

impl Octets {
    pub(crate) fn all(self) -> usize {
        self.idle + self.pending
    }

    /// Of QUIC connections, of which `all` was counted.
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
