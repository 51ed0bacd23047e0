//! How many octets of requests in parts a server keeps, on a connection and on all together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Octets that all connections of a server share; clones share them too.
#[derive(Clone, Debug)]
pub struct SharedOctets {
    used: Arc<AtomicUsize>,
    max: usize,
}

impl SharedOctets {
    /// None of `max` is used.
    pub fn new(max: usize) -> Self {
        SharedOctets {
            used: Arc::default(),
            max,
        }
    }

    /// How many are used.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self, octets: usize) -> bool {
        let more = |used: usize| Some(used + octets).filter(|used| *used <= self.max);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }
}

/// The share of one connection, returned when it ends.
#[derive(Debug)]
pub(super) struct Collected {
    octets: usize,
    max: usize,
    all: SharedOctets,
}

impl Collected {
    pub(super) fn new(max: usize, all: SharedOctets) -> Self {
        Collected {
            octets: 0,
            max,
            all,
        }
    }

    /// How many octets the connection has taken.
    pub(super) fn octets(&self) -> usize {
        self.octets
    }

    /// Reserves more octets; false if there is no room for them.
    pub(super) fn take(&mut self, octets: usize) -> bool {
        let fits = self.octets + octets <= self.max && self.all.take(octets);
        if fits {
            self.octets += octets;
        }
        fits
    }

    /// Gives octets back that were taken.
    pub(super) fn give_back(&mut self, octets: usize) {
        self.octets -= octets;
        self.all.used.fetch_sub(octets, Ordering::Relaxed);
    }
}

impl Drop for Collected {
    fn drop(&mut self) {
        self.give_back(self.octets);
    }
}
