//! Limits the rate of responses to each network over UDP, where anyone can forge the source of a
//! query. A burst has one second's responses.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

use proto::Instant;

/// Size of the table that networks are hashed into, which bounds the memory: 512 KiB a worker.
/// Networks in one bucket share its limit.
const PLACES: usize = 1 << 16;
const SECOND_NS: u64 = 1_000_000_000;

/// The generic cell rate algorithm (ITU-T I.371) by network.
pub(crate) struct SourceLimit {
    interval_ns: u64,
    /// Until when the responses of each bucket have used up the rate.
    used_until_ns: Vec<u64>,
    /// A secret key, so that a source cannot choose a bucket to share.
    places: RandomState,
}

impl SourceLimit {
    /// A limit of `rate` responses a second over all workers; this worker has its share.
    pub(crate) fn new(rate: u32, workers: u32) -> Self {
        SourceLimit {
            interval_ns: SECOND_NS * u64::from(workers.max(1)) / u64::from(rate.max(1)),
            used_until_ns: vec![0; PLACES],
            places: RandomState::new(),
        }
    }

    /// True if a response may be sent to this address; counts it then.
    pub(crate) fn admits(&mut self, to: IpAddr, now: Instant) -> bool {
        let place = self.places.hash_one(network(to)) as usize % PLACES;
        let now_ns = now.as_nanos();
        let used_until_ns = self.used_until_ns[place].max(now_ns);
        // At least one, however low the rate.
        let is_admitted = used_until_ns - now_ns <= SECOND_NS.saturating_sub(self.interval_ns);
        if is_admitted {
            self.used_until_ns[place] = used_until_ns + self.interval_ns;
        }
        is_admitted
    }
}

/// The network that an address belongs to, by the prefixes that BIND limits rates by: /24 of IPv4,
/// /56 of IPv6.
fn network(address: IpAddr) -> [u8; 8] {
    let mut network = [0; 8];
    match address.to_canonical() {
        IpAddr::V4(v4) => network[5..].copy_from_slice(&v4.octets()[..3]),
        IpAddr::V6(v6) => network[..7].copy_from_slice(&v6.octets()[..7]),
    }
    network
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(limit: &mut SourceLimit, from: &str, ms: u64) -> usize {
        let (from, now) = (from.parse().unwrap(), Instant::from_nanos(ms * 1_000_000));
        (0..1_000).filter(|_| limit.admits(from, now)).count()
    }

    #[test]
    fn a_source_gets_a_second_of_its_rate_at_once_and_then_the_rate() {
        let mut limit = SourceLimit::new(100, 1);
        assert_eq!(admitted(&mut limit, "192.0.2.1", 0), 100);
        assert_eq!(admitted(&mut limit, "192.0.2.1", 500), 50);
        assert_eq!(admitted(&mut limit, "192.0.2.1", 5_000), 100);
    }

    #[test]
    fn sources_of_one_network_share_a_limit_and_others_do_not() {
        let mut limit = SourceLimit::new(100, 1);
        assert_eq!(admitted(&mut limit, "192.0.2.1", 0), 100);
        assert_eq!(admitted(&mut limit, "192.0.2.200", 0), 0);
        assert_eq!(admitted(&mut limit, "::ffff:192.0.2.9", 0), 0);
        assert_eq!(admitted(&mut limit, "2001:db8::1", 0), 100);
        assert_eq!(admitted(&mut limit, "2001:db8:0:ff::2", 0), 0);
        let others = (0..100).map(|other| format!("198.51.{other}.1"));
        let whole = others.filter(|from| admitted(&mut limit, from, 0) == 100);
        // Some may share a bucket.
        assert!(whole.count() > 90);
    }

    #[test]
    fn workers_have_shares_and_the_lowest_rate_admits_one() {
        assert_eq!(admitted(&mut SourceLimit::new(100, 4), "192.0.2.1", 0), 25);
        assert_eq!(admitted(&mut SourceLimit::new(1, 4), "192.0.2.1", 0), 1);
    }
}
