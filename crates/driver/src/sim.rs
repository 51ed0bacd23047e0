//! A network that exists only in memory and in virtual time.
//!
//! A [`World`] holds the time, what is in flight, and the sockets of every [`SimDriver`] made by
//! [`World::endpoint`]; endpoints of one world reach each other by address. Nothing here reads a
//! clock, and every random choice comes from one seeded generator, so that the same seed and the
//! same workers give the same events at the same instants. Work takes no virtual time: a latency
//! seen here is exactly what the network and the waiting added.
//!
//! [`World::run`] drives workers: [`Driver::wait`](crate::Driver::wait) returns at once and only
//! records when its worker's next turn is due; the turn comes then, or when something arrives.
//! Without it, alternate calls of the driver with [`World::advance_to`].
//!
//! [`Link`] defines delay, loss, duplication and reordering of datagrams. A stream keeps its order;
//! a lost segment arrives a retransmission timeout later (RFC 6298) and delays all later ones. A
//! connected datagram socket receives from every source, as over AF_XDP, so its owner has to check
//! the source.
//!
//! Not modelled: bandwidth and queues, receive buffers of datagram sockets (no
//! [`receive_drops`](crate::DriverStats::receive_drops)), offload, congestion control, and
//! TIME_WAIT. [`SimDriver::set_backlog_room`] sets the backlog of a listener.

#![forbid(unsafe_code)]

mod config;
mod driver;
mod network;
mod ports;
mod run;
mod socket;
mod state;
mod stream;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use proto::Instant;

pub use config::{Jitter, Link, Outage, Stall, WorldConfig};
pub use driver::SimDriver;
pub use network::NetworkStats;
pub use run::{Bounds, RunError, RunStats, Stepper, Turn};

use state::State;

/// Names one endpoint of a world, for [`Stepper`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointId(usize);

/// A simulated network and its virtual time. Clones are handles to the same world.
#[derive(Clone, Debug)]
pub struct World {
    state: Rc<RefCell<State>>,
}

impl World {
    /// A world at [`Instant::ZERO`] without endpoints.
    ///
    /// # Panics
    /// If a share in `config` is not within 0 to 1, or the stream window is 0.
    pub fn new(config: WorldConfig) -> Self {
        config.check();
        World {
            state: Rc::new(RefCell::new(State::new(config))),
        }
    }

    /// The driver of one more worker, whose sockets are bound to `address` unless they name
    /// another. Several endpoints may have the same address. Dropping the driver closes its
    /// sockets, as the kernel does for a process that dies.
    pub fn endpoint(&self, address: IpAddr) -> SimDriver {
        let id = self.state.borrow_mut().add_endpoint(address);
        SimDriver::new(Rc::clone(&self.state), EndpointId(id))
    }

    /// The virtual time.
    pub fn now(&self) -> Instant {
        self.state.borrow().now()
    }

    /// Moves the time to `at` and delivers all that arrives until then to the endpoints, where
    /// [`Driver::receive`](crate::Driver::receive) finds it. Does nothing if `at` has passed.
    pub fn advance_to(&self, at: Instant) {
        self.state.borrow_mut().advance_to(at);
    }

    /// Lets a datagram arrive at `to` at the instant `at` (or now, if that has passed) that claims
    /// to come from `from`. That address need not exist, and no [`Link`] delays or loses the
    /// datagram; a [`Stall`] of the receiver holds it.
    pub fn inject_datagram(&self, from: SocketAddr, to: SocketAddr, octets: &[u8], at: Instant) {
        self.state
            .borrow_mut()
            .inject_datagram(from, to, octets, at);
    }

    /// The network's counters so far.
    pub fn network_stats(&self) -> NetworkStats {
        self.state.borrow().network_stats()
    }
}
