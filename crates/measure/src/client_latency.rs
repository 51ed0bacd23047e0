//! The latencies of one simulated client, in so little memory that each of many clients can have
//! its own.
//!
//! A [`Histogram`](crate::Histogram) takes 30 KB, this 40 bytes and, typically, 16 to 48 more. Each
//! power of two from 2^10 ns (1.02 us) to 2^36 ns (68.7 s) is cut into five buckets, at the whole
//! 64ths next to the fifth roots of two, so that no bucket is wider than 15.7 % of its lowest value
//! and its representative value is at most [`ERROR_MAX`] off. Shorter latencies are in the first
//! bucket, longer ones in the last. The maximum is exact, the minimum is rounded to 16 ns, and no
//! quantile is outside the two.
//!
//! Buckets are held from the shortest to the longest latency seen, in groups of eight, which is a
//! factor of three: a client that is served alike each time needs few of them.
//!
//! Buckets count in 16 bits. When one is full, all are halved, and of the latencies that follow
//! only every second one (fourth, eighth ...) enters a bucket, so that all parts of a run keep
//! their weight. Quantiles of clients with fewer than 65,535 responses are not touched by that.

/// Buckets of a power of two.
const PARTS: usize = 5;
/// Latencies below `1 << LOWEST_BITS` ns are in the first bucket.
const LOWEST_BITS: u32 = 10;
/// Latencies from `1 << HIGHEST_BITS` ns up are in the last bucket.
const HIGHEST_BITS: u32 = 36;
/// Number of buckets.
pub const BUCKETS: usize = PARTS * (HIGHEST_BITS - LOWEST_BITS) as usize;
/// Lowest values of the buckets of a power of two, in 64ths of it, and the power that follows.
const EDGES: [u64; PARTS + 1] = [64, 74, 85, 97, 111, 128];
/// Buckets that are held or not held together.
const GROUP: usize = 8;
/// The most by which a quantile differs from the latency of its rank, as a share of that latency;
/// from 1.02 us to 68.7 s.
pub const ERROR_MAX: f64 = 0.0725;

/// The shortest latency is kept in units of `1 << MIN_UNIT_BITS` ns, so that it fits beside the two
/// small numbers, where the struct has room anyway: 32 bits reach to the end of the last bucket.
const MIN_UNIT_BITS: u32 = HIGHEST_BITS - u32::BITS;

/// The latencies of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientLatency {
    count: u64,
    max_ns: u64,
    /// Buckets from `first` on.
    buckets: Box<[u16]>,
    /// The shortest latency in units of 16 ns, rounded down; `u32::MAX` without latencies.
    min_units: u32,
    first: u8,
    halvings: u8,
}

impl Default for ClientLatency {
    fn default() -> Self {
        ClientLatency {
            count: 0,
            max_ns: 0,
            buckets: Box::default(),
            min_units: u32::MAX,
            first: 0,
            halvings: 0,
        }
    }
}

impl ClientLatency {
    /// Most allocations in its life: each adds a group of buckets.
    pub const ALLOCATIONS_MAX: u64 = BUCKETS.div_ceil(GROUP) as u64;

    /// No latency yet. Does not allocate.
    pub fn new() -> Self {
        ClientLatency::default()
    }

    /// Counts one latency. O(1), about 25 instructions. Allocates only for a latency that is
    /// shorter or longer than all before, at most [`ClientLatency::ALLOCATIONS_MAX`] times.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.count += 1;
        self.keep_extremes(latency_ns);
        if self.halvings > 0 && !self.is_sampled() {
            return;
        }
        let index = bucket_index(latency_ns);
        match self.buckets.get_mut(index.wrapping_sub(self.first.into())) {
            Some(bucket) => {
                *bucket += 1;
                if *bucket == u16::MAX {
                    self.halve();
                }
            }
            None => self.record_outside(index),
        }
    }

    /// Counts one latency `times` times, as [`ClientLatency::record`] would. O(1) while no bucket
    /// has been full.
    #[inline]
    pub fn record_many(&mut self, latency_ns: u64, times: u64) {
        let index = bucket_index(latency_ns).wrapping_sub(self.first.into());
        match self.buckets.get_mut(index) {
            Some(bucket) if self.halvings == 0 && times < u64::from(u16::MAX - *bucket) => {
                *bucket += times as u16;
                self.count += times;
                self.keep_extremes(latency_ns);
            }
            _ => (0..times).for_each(|_| self.record(latency_ns)),
        }
    }

    #[inline]
    fn keep_extremes(&mut self, latency_ns: u64) {
        self.max_ns = self.max_ns.max(latency_ns);
        let units = u32::try_from(latency_ns >> MIN_UNIT_BITS).unwrap_or(u32::MAX);
        self.min_units = self.min_units.min(units);
    }

    /// Counts one in a bucket that is not held.
    #[cold]
    fn record_outside(&mut self, index: usize) {
        let group = index / GROUP * GROUP;
        let held = match self.buckets.len() {
            0 => group..group,
            length => self.first.into()..usize::from(self.first) + length,
        };
        let first = held.start.min(group);
        let end = held.end.max(group + GROUP);
        let mut buckets = vec![0; end - first].into_boxed_slice();
        buckets[held.start - first..][..held.len()].copy_from_slice(&self.buckets);
        buckets[index - first] += 1;
        self.buckets = buckets;
        // A bucket has a number below 256.
        self.first = first as u8;
    }

    /// Number of latencies.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest latency, exact; `None` without latencies.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// How often all buckets were halved because one was full.
    pub fn halvings(&self) -> u64 {
        self.halvings.into()
    }

    /// The `p`-th quantile in nanoseconds, `p` from 0 to 1, with the rank that
    /// [`Histogram::percentile`](crate::Histogram::percentile) has: within [`ERROR_MAX`] of the
    /// latency of that rank, exact if that is the longest, and at most 16 ns below the shortest.
    /// `None` without latencies.
    pub fn percentile(&self, p: f64) -> Option<u64> {
        let held: u64 = self.buckets.iter().map(|&count| u64::from(count)).sum();
        let rank = crate::histogram::rank_of(p, held)?;
        if rank == held {
            return self.max_ns();
        }
        let mut below = 0;
        for (index, &count) in (self.first.into()..).zip(&self.buckets) {
            below += u64::from(count);
            if below >= rank {
                let min_ns = u64::from(self.min_units) << MIN_UNIT_BITS;
                return Some(middle(index).max(min_ns).min(self.max_ns));
            }
        }
        self.max_ns()
    }

    /// One latency in 2^halvings is. Their numbers are spread by the golden ratio, so that no
    /// period in the latencies meets one in the choice.
    fn is_sampled(&self) -> bool {
        let spread = self.count.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        spread.leading_zeros() >= self.halvings.into()
    }

    /// Odd counts are rounded up in every other bucket, so that roundings cancel out.
    #[cold]
    fn halve(&mut self) {
        self.halvings += 1;
        for (index, count) in self.buckets.iter_mut().enumerate() {
            *count = *count / 2 + (*count & index as u16 & 1);
        }
    }
}

/// The bucket of a latency. Without a table, which would cost a cache line a response.
#[inline]
fn bucket_index(latency_ns: u64) -> usize {
    let latency_ns = latency_ns.clamp(1 << LOWEST_BITS, (1 << HIGHEST_BITS) - 1);
    let exponent = 63 - latency_ns.leading_zeros();
    let part = latency_ns >> (exponent - 6);
    let [_, edges @ .., _] = EDGES;
    let above: usize = edges.iter().map(|edge| usize::from(part >= *edge)).sum();
    (exponent - LOWEST_BITS) as usize * PARTS + above
}

/// The representative value of a bucket: the harmonic mean of its bounds, which minimises the
/// relative error.
fn middle(index: usize) -> u64 {
    let (exponent, part) = (index / PARTS, index % PARTS);
    let scale = 1 << (LOWEST_BITS as usize + exponent - 6);
    let (low, high) = (EDGES[part] * scale, EDGES[part + 1] * scale);
    let product = 2 * u128::from(low) * u128::from(high);
    (product / u128::from(low + high)) as u64
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn sketch(latencies: &[u64]) -> ClientLatency {
        let mut sketch = ClientLatency::new();
        latencies.iter().for_each(|&latency| sketch.record(latency));
        sketch
    }

    /// The latency of the rank that quantile `p` has.
    fn exact(sorted: &[u64], p: f64) -> u64 {
        let rank = crate::histogram::rank_of(p, sorted.len() as u64).expect("has values");
        sorted[rank as usize - 1]
    }

    /// Latencies as they spread in networks: alike by their logarithm.
    fn any_latency() -> impl Strategy<Value = u64> {
        (10_u32..36, 0_u64..1 << 20).prop_map(|(exponent, part)| {
            let low = 1_u64 << exponent;
            low + ((u128::from(low) * u128::from(part)) >> 20) as u64
        })
    }

    proptest! {
        #[test]
        fn quantile_is_within_its_error_of_the_latency_of_its_rank(
            mut latencies in vec(any_latency(), 1..400),
            p in 0.0..=1.0,
        ) {
            let sketch = sketch(&latencies);
            latencies.sort_unstable();
            for p in [p, 0.5, 0.9, 0.99, 1.0] {
                let found = sketch.percentile(p).expect("has values");
                let wanted = exact(&latencies, p);
                let error = (found as f64 - wanted as f64).abs() / wanted as f64;
                prop_assert!(error <= ERROR_MAX, "{p}: {found} for {wanted}");
            }
            let shortest = latencies[0] >> MIN_UNIT_BITS << MIN_UNIT_BITS;
            prop_assert!(sketch.percentile(p) >= Some(shortest));
            prop_assert_eq!(sketch.max_ns(), latencies.last().copied());
            prop_assert_eq!(sketch.count(), latencies.len() as u64);
        }
    }

    #[test]
    fn buckets_follow_each_other_without_a_gap_and_none_is_too_wide() {
        let mut before = 0;
        for index in 0..BUCKETS {
            let scale = 1 << (LOWEST_BITS as usize + index / PARTS - 6);
            let low = EDGES[index % PARTS] * scale;
            let high = EDGES[index % PARTS + 1] * scale;
            assert_eq!(bucket_index(low), index);
            assert_eq!(bucket_index(high - 1), index);
            assert!(index == 0 || low == before, "{index}");
            let stands_for_all = middle(index) as f64;
            for bound in [low as f64, (high - 1) as f64] {
                let error = (stands_for_all - bound).abs() / bound;
                assert!(error <= ERROR_MAX, "{index}: {error}");
            }
            before = high;
        }
        assert_eq!(before, 1 << HIGHEST_BITS);
    }

    #[test]
    fn latencies_out_of_range_are_in_the_outermost_buckets() {
        assert_eq!((bucket_index(0), bucket_index(1_000)), (0, 0));
        assert_eq!(bucket_index(u64::MAX), BUCKETS - 1);
        let sketch = sketch(&[0, 90_000_000_000]);
        assert_eq!(sketch.max_ns(), Some(90_000_000_000));
        assert_eq!(sketch.percentile(1.0), Some(90_000_000_000));
        assert!(sketch.percentile(0.5) < Some(1_184));
    }

    #[test]
    fn quantiles_are_never_below_the_shortest_latency() {
        // What stands for the bucket of 2 ms is shorter.
        let stands_for_2_ms = middle(bucket_index(2_000_000));
        assert_eq!(stands_for_2_ms, 1_947_982);
        let alike = sketch(&[2_000_000; 7]);
        let mut many = ClientLatency::new();
        many.record_many(2_000_000, 1_000);
        for p in [0.0, 0.5, 0.9, 1.0] {
            assert_eq!(alike.percentile(p), Some(2_000_000), "{p}");
            assert_eq!(many.percentile(p), Some(2_000_000), "{p}");
        }
        let shortest_last = sketch(&[2_000_000, 2_000_000, 1_900_000]);
        assert_eq!(shortest_last.percentile(0.5), Some(stands_for_2_ms));
        // The shortest may be longer than what can be kept of it.
        let long = sketch(&[100_000_000_000, 100_000_000_001]);
        assert_eq!(long.percentile(0.5), Some((1 << HIGHEST_BITS) - 16));
    }

    #[test]
    fn client_without_latencies_has_no_quantiles() {
        let sketch = ClientLatency::default();
        assert_eq!((sketch.percentile(0.5), sketch.max_ns()), (None, None));
        assert_eq!((sketch.count(), sketch.halvings()), (0, 0));
    }

    #[test]
    fn halved_buckets_keep_the_weight_of_every_part_of_a_run() {
        // Every 64th of the first half is slow and none of the second half, in a period that
        // meets powers of two.
        let mut sketch = ClientLatency::new();
        for number in 0..2_000_000_u64 {
            let is_slow = number < 1_000_000 && number % 64 == 0;
            sketch.record(if is_slow { 50_000_000 } else { 1_000_000 });
        }
        assert_eq!(sketch.count(), 2_000_000);
        assert!(sketch.halvings() >= 4, "{}", sketch.halvings());
        let held = |latency_ns| {
            let place = bucket_index(latency_ns) - usize::from(sketch.first);
            u64::from(sketch.buckets[place])
        };
        let (slow, fast) = (held(50_000_000), held(1_000_000));
        let share = slow as f64 / (slow + fast) as f64;
        assert!((share - 1.0 / 128.0).abs() < 0.001, "{share}");
    }

    #[test]
    fn client_holds_the_buckets_between_its_shortest_and_its_longest_latency() {
        assert_eq!(size_of::<ClientLatency>(), 40);
        let check = |latencies: &[u64], buckets: usize| {
            assert_eq!(sketch(latencies).buckets.len(), buckets, "{latencies:?}");
        };
        check(&[], 0);
        check(&[1_000_000, 1_100_000, 900_000], GROUP);
        check(&[1_000_000, 5_000_000], 2 * GROUP);
        check(&[50_000_000, 100_000], 6 * GROUP);
        check(&[0, u64::MAX], 17 * GROUP);
        check(&[u64::MAX, 1_000_000, 0], 17 * GROUP);
    }
}
