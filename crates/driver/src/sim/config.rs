//! Configuration of the simulated network.

use std::net::IpAddr;
use std::time::Duration;

use proto::Instant;

/// The configuration of a world. The same configuration and workers give the same events.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// Seed of every random choice of the network.
    pub seed: u64,
    /// The link to every address that `links_towards` does not name.
    pub link: Link,
    /// Links to particular addresses; the first entry for an address counts.
    pub links_towards: Vec<(IpAddr, Link)>,
    /// Octets of one direction of a stream that may be under way or unread at the receiver.
    pub stream_window_octets: usize,
    /// When the whole network loses all that is sent.
    pub outages: Vec<Outage>,
    /// When single addresses receive nothing for a while.
    pub stalls: Vec<Stall>,
}

impl Default for WorldConfig {
    /// Seed 0, the default [`Link`] everywhere, stream windows of 256 KiB, no impairment.
    fn default() -> Self {
        WorldConfig {
            seed: 0,
            link: Link::default(),
            links_towards: Vec::new(),
            stream_window_octets: 256 * 1024,
            outages: Vec::new(),
            stalls: Vec::new(),
        }
    }
}

impl WorldConfig {
    /// # Panics
    /// If a share is not within 0 to 1, or the stream window is 0.
    pub(super) fn check(&self) {
        assert!(
            self.stream_window_octets > 0,
            "a stream window of 0 bytes never opens"
        );
        let links = self.links_towards.iter().map(|(_, link)| link);
        for link in links.chain([&self.link]) {
            for share in [link.loss_share, link.duplicate_share, link.reorder_share] {
                assert!(
                    (0.0..=1.0).contains(&share),
                    "a share of {share} is not within 0 to 1"
                );
            }
        }
    }
}

/// One direction between two endpoints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// One-way delay of everything.
    pub delay: Duration,
    /// Random addition to it, for each datagram and segment. Datagrams are reordered if it exceeds
    /// the distance between them.
    pub jitter: Jitter,
    /// Share of datagrams and segments that are lost, 0 to 1.
    pub loss_share: f64,
    /// Share of datagrams that arrive twice, 0 to 1; the copy has its own jitter.
    pub duplicate_share: f64,
    /// Share of datagrams that take `reorder_delay` longer, 0 to 1.
    pub reorder_share: f64,
    /// How much longer those take.
    pub reorder_delay: Duration,
}

impl Link {
    /// A link without faults that takes `delay`.
    pub const fn constant(delay: Duration) -> Self {
        Link {
            delay,
            jitter: Jitter::None,
            loss_share: 0.0,
            duplicate_share: 0.0,
            reorder_share: 0.0,
            reorder_delay: Duration::ZERO,
        }
    }
}

impl Default for Link {
    /// A link without faults that takes 1 ms.
    fn default() -> Self {
        Link::constant(Duration::from_millis(1))
    }
}

/// A random addition to a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jitter {
    /// Nothing is added.
    None,
    /// From nothing up to `max`, evenly.
    Uniform {
        /// The largest addition.
        max: Duration,
    },
    /// Exponentially distributed; never more than 37 times the mean.
    Exponential {
        /// The mean addition.
        mean: Duration,
    },
}

/// A span in which the network loses every datagram and segment that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When it begins.
    pub start: Instant,
    /// How long it lasts.
    pub length: Duration,
}

impl Outage {
    /// Whether what is sent at `at` is lost.
    pub(super) fn covers(&self, at: Instant) -> bool {
        (self.start..self.start + self.length).contains(&at)
    }
}

/// A span in which all that arrives at one address is held; it is delivered at the end, in the
/// order in which it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The address that receives nothing.
    pub address: IpAddr,
    /// When it begins.
    pub start: Instant,
    /// How long it lasts.
    pub length: Duration,
}

impl Stall {
    /// When it is over.
    pub(super) fn end(&self) -> Instant {
        self.start + self.length
    }

    /// Whether it holds what arrives at `address` at the instant `at`.
    pub(super) fn holds(&self, address: IpAddr, at: Instant) -> bool {
        self.address == address && (self.start..self.end()).contains(&at)
    }
}
