//! Loss and delay: when, if ever, something that is sent arrives.

use std::net::IpAddr;
use std::time::Duration;

use proto::Instant;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::config::{Jitter, Link, WorldConfig};

/// Counters of a simulated network, cumulative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkStats {
    /// Datagrams lost at random or in an outage.
    pub datagrams_lost: u64,
    /// Datagrams that arrived twice.
    pub datagrams_duplicated: u64,
    /// Datagrams that took the reorder delay.
    pub datagrams_reordered: u64,
    /// Datagrams that arrived where no socket was bound.
    pub datagrams_unreachable: u64,
    /// Transmissions of stream segments that were lost and repeated.
    pub segments_lost: u64,
    /// SYNs that found the backlog of a listener full.
    pub syns_dropped: u64,
}

/// How often and how soon the sender of a segment repeats it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retransmission {
    first: Duration,
    attempts_max: u32,
}

impl Retransmission {
    /// A SYN: RFC 6298, section 2.1 gives 1 s; Linux repeats it 6 times (tcp_syn_retries).
    pub(super) const SYN: Retransmission = Retransmission {
        first: Duration::from_secs(1),
        attempts_max: 7,
    };
    /// Any other segment: the smallest timeout of Linux, and its tcp_retries2 of 15.
    pub(super) const SEGMENT: Retransmission = Retransmission {
        first: Duration::from_millis(200),
        attempts_max: 16,
    };
    /// The timeout doubles up to this (TCP_RTO_MAX of Linux).
    const TIMEOUT_MAX: Duration = Duration::from_secs(120);
}

/// The sender of a segment gave up at this instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct GaveUp(pub(super) Instant);

/// The links, their generator and their counters.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) config: WorldConfig,
    pub(super) stats: NetworkStats,
    random: Xoshiro256PlusPlus,
}

impl Network {
    pub(super) fn new(config: WorldConfig) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(config.seed);
        Network {
            config,
            stats: NetworkStats::default(),
            random,
        }
    }

    /// When a datagram sent at `now` arrives, and when its duplicate does.
    pub(super) fn datagram(&mut self, now: Instant, to: IpAddr) -> [Option<Instant>; 2] {
        let link = self.link(to);
        if self.loses(&link, now) {
            self.stats.datagrams_lost += 1;
            return [None, None];
        }
        let mut at = now + self.delay(&link);
        if self.chance(link.reorder_share) {
            self.stats.datagrams_reordered += 1;
            at = at + link.reorder_delay;
        }
        if !self.chance(link.duplicate_share) {
            return [Some(at), None];
        }
        self.stats.datagrams_duplicated += 1;
        [Some(at), Some(now + self.delay(&link))]
    }

    /// When a segment of a stream sent at `now` arrives, repeated until it gets through.
    pub(super) fn segment(
        &mut self,
        now: Instant,
        to: IpAddr,
        retransmission: Retransmission,
    ) -> Result<Instant, GaveUp> {
        let link = self.link(to);
        let mut sent_at = now;
        let mut timeout = retransmission.first;
        for _ in 0..retransmission.attempts_max {
            if !self.loses(&link, sent_at) {
                return Ok(sent_at + self.delay(&link));
            }
            self.stats.segments_lost += 1;
            sent_at = sent_at + timeout;
            timeout = (timeout * 2).min(Retransmission::TIMEOUT_MAX);
        }
        Err(GaveUp(sent_at))
    }

    /// When a SYN that was dropped at `now` arrives again, and how often it was repeated by then.
    /// Each transmission takes equally long.
    pub(super) fn repeated_syn(
        &mut self,
        now: Instant,
        to: IpAddr,
        repeats: u32,
    ) -> Result<(Instant, u32), GaveUp> {
        let link = self.link(to);
        let mut at = now;
        for repeats in repeats + 1..Retransmission::SYN.attempts_max {
            let timeout = Retransmission::SYN.first * (1 << (repeats - 1));
            at = at + timeout.min(Retransmission::TIMEOUT_MAX);
            if !self.loses(&link, at) {
                return Ok((at, repeats));
            }
            self.stats.segments_lost += 1;
        }
        Err(GaveUp(at))
    }

    /// When a segment arrives that is not retransmitted, such as the RST of a close.
    pub(super) fn unrepeated_segment(&mut self, now: Instant, to: IpAddr) -> Option<Instant> {
        let link = self.link(to);
        if self.loses(&link, now) {
            self.stats.segments_lost += 1;
            return None;
        }
        Some(now + self.delay(&link))
    }

    /// When an arrival at `arrival` is delivered, given the stalls of the address.
    pub(super) fn held_until(&self, to: IpAddr, arrival: Instant) -> Instant {
        let mut at = arrival;
        // One stall may end within another; each round is strictly later than the one before.
        while let Some(stall) = self.config.stalls.iter().find(|stall| stall.holds(to, at)) {
            at = stall.end();
        }
        at
    }

    fn link(&self, to: IpAddr) -> Link {
        let named = self
            .config
            .links_towards
            .iter()
            .find(|(address, _)| *address == to);
        named.map_or(self.config.link, |(_, link)| *link)
    }

    fn loses(&mut self, link: &Link, sent_at: Instant) -> bool {
        self.config
            .outages
            .iter()
            .any(|outage| outage.covers(sent_at))
            || self.chance(link.loss_share)
    }

    fn delay(&mut self, link: &Link) -> Duration {
        let jitter = match link.jitter {
            Jitter::None => return link.delay,
            Jitter::Uniform { max } => max.mul_f64(self.unit()),
            Jitter::Exponential { mean } => mean.mul_f64(-(1.0 - self.unit()).ln()),
        };
        link.delay + jitter
    }

    /// True with probability `share`. Draws nothing when the share is zero.
    fn chance(&mut self, share: f64) -> bool {
        share > 0.0 && self.unit() < share
    }

    /// Evenly from 0 (included) to 1 (excluded).
    fn unit(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1u64 << 53) as f64;
        (self.random.next_u64() >> 11) as f64 * STEP
    }
}
