//! The one histogram layout: fixed, log-linear, mergeable by addition.
//!
//! Values are nanoseconds. Below 128 ns every value has its own bucket; above, each power of two
//! is cut into 128 buckets, so a bucket is at most 1/128 = 0.78 % of its value wide and its middle
//! at most 0.39 % off. Values from 2^36 ns (68.7 s) up are counted in an overflow bucket and still
//! enter `max` and `sum`. Percentiles of merged histograms equal those of one histogram.
//!
//! A histogram made by [`Histogram::new`] holds all buckets and never allocates again; one made by
//! [`Histogram::on_demand`] allocates them with its first value. One that was
//! [shrunk](Histogram::shrink_to_fit), a clone, and one read from JSON hold the used range only and
//! grow when they must. They all compare equal.

use std::ops::Range;

mod json;
#[cfg(test)]
mod tests;

pub use json::LAYOUT;

/// Bits of mantissa in a bucket index.
pub const PRECISION_BITS: u32 = 7;
/// Values at or above `1 << RANGE_BITS` ns overflow.
pub const RANGE_BITS: u32 = 36;
/// Number of buckets without the overflow bucket.
pub const BUCKETS: usize = ((RANGE_BITS - PRECISION_BITS + 1) as usize) << PRECISION_BITS;

/// A latency distribution in nanoseconds.
#[derive(Debug)]
pub struct Histogram {
    /// Index of the bucket that `buckets[0]` is; 0 where all buckets are held.
    first: usize,
    buckets: Vec<u64>,
    overflow: u64,
    count: u64,
    sum_ns: u128,
    /// Saturates (which keeps merging associative) only for sums no run can reach.
    sum_squares_ns2: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Histogram {
    /// An empty histogram; allocates its 30 KB once.
    pub fn new() -> Self {
        Histogram {
            buckets: vec![0; BUCKETS],
            ..Histogram::unallocated()
        }
    }

    /// An empty histogram that allocates its buckets, all at once, with its first value: for what
    /// most runs never measure.
    pub fn on_demand() -> Self {
        Histogram::unallocated()
    }

    /// An empty histogram without buckets; they are allocated as values need them.
    fn unallocated() -> Self {
        Histogram {
            first: 0,
            buckets: Vec::new(),
            overflow: 0,
            count: 0,
            sum_ns: 0,
            sum_squares_ns2: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }

    /// Counts one value. O(1), does not allocate unless the histogram was shrunk.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.record_many(value_ns, 1);
    }

    /// Counts one value `times` times. O(1), does not allocate unless the histogram was shrunk.
    #[inline]
    pub fn record_many(&mut self, value_ns: u64, times: u64) {
        if times == 0 {
            return;
        }
        let value = u128::from(value_ns);
        self.count += times;
        self.sum_ns += value * u128::from(times);
        let squares = (value * value).saturating_mul(u128::from(times));
        self.sum_squares_ns2 = self.sum_squares_ns2.saturating_add(squares);
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
        let index = bucket_index(value_ns);
        match self.buckets.get_mut(index.wrapping_sub(self.first)) {
            Some(bucket) => *bucket += times,
            None => self.record_outside(index, times),
        }
    }

    /// A value whose bucket is not held: it overflows, or the histogram was shrunk.
    #[cold]
    fn record_outside(&mut self, index: usize, times: u64) {
        if index >= BUCKETS {
            self.overflow += times;
        } else {
            if self.buckets.is_empty() {
                self.cover(0..BUCKETS);
            }
            self.cover(index..index + 1);
            self.buckets[index - self.first] += times;
        }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// True if no value was recorded.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Values of 2^36 ns (68.7 s) and more; they are in `count`, `sum`, `min` and `max` too.
    pub fn overflow(&self) -> u64 {
        self.overflow
    }

    /// The smallest value, exact; `None` without values.
    pub fn min_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min_ns)
    }

    /// The largest value, exact; `None` without values.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// The sum of all values, exact, in nanoseconds.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// The sum of the squares of all values, exact unless it is beyond 2^128.
    pub(crate) fn sum_squares(&self) -> u128 {
        self.sum_squares_ns2
    }

    /// The arithmetic mean in nanoseconds, from the exact sum; `None` without values.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }

    /// The population standard deviation in nanoseconds, from exact sums; `None` without values.
    pub fn stddev_ns(&self) -> Option<f64> {
        let mean = self.mean_ns()?;
        let count = self.count as f64;
        let variance = match self.squares_around_floor() {
            Some((squares, rest)) => squares as f64 / count - rest * rest,
            None => self.sum_squares_ns2 as f64 / count - mean * mean,
        };
        Some(variance.max(0.0).sqrt())
    }

    /// The sum of squared distances from the mean rounded down, and what the rounding took away.
    /// In integers, so that a small deviation of a large mean is not cancelled out; `None` if the
    /// numbers are too large for that.
    fn squares_around_floor(&self) -> Option<(u128, f64)> {
        let count = u128::from(self.count);
        let floor = self.sum_ns / count;
        let twice = floor.checked_mul(self.sum_ns)?.checked_mul(2)?;
        let square = floor.checked_mul(floor)?.checked_mul(count)?;
        let squares = self
            .sum_squares_ns2
            .checked_add(square)?
            .checked_sub(twice)?;
        let rest = (self.sum_ns - floor * count) as f64 / self.count as f64;
        Some((squares, rest))
    }

    /// The `p`-th quantile in nanoseconds, `p` from 0 to 1 (0.99 for the 99th percentile).
    ///
    /// Defined as the smallest value `v` such that at least `ceil(p * count)` values (and at least
    /// one) are not above `v`. The first and the last rank are exact; every other is the middle of
    /// its bucket, at most 0.39 % off, kept within `min` and `max`; a rank among the overflowed
    /// values gives `max`. `None` without values.
    ///
    /// # Panics
    /// If `p` is not within 0 to 1: a caller that means 99 % must not silently get the maximum.
    pub fn percentile(&self, p: f64) -> Option<u64> {
        let rank = rank_of(p, self.count)?;
        if rank == 1 {
            return Some(self.min_ns);
        }
        if rank == self.count {
            return Some(self.max_ns);
        }
        let mut below = 0;
        for (low, high, count) in self.buckets() {
            below += count;
            if below >= rank {
                let middle = low + (high - low) / 2;
                return Some(middle.clamp(self.min_ns, self.max_ns));
            }
        }
        Some(self.max_ns)
    }

    /// The non-empty buckets from low to high: lowest value, highest value (both included, in
    /// nanoseconds) and count. Overflowed values are in none of them.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.occupied().map(|(index, count)| {
            let (low, high) = bucket_bounds(index);
            (low, high, count)
        })
    }

    /// How many values are `value_ns` or more, to the width of a bucket.
    pub fn count_from(&self, value_ns: u64) -> u64 {
        let above = self.buckets().filter(|(low, ..)| *low >= value_ns);
        above.map(|(_, _, number)| number).sum::<u64>() + self.overflow()
    }

    /// Index and count of the non-empty buckets, ascending.
    fn occupied(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let held = &self.buckets[self.used()];
        let start = self.first + self.used().start;
        let indexed = held.iter().enumerate();
        indexed.filter_map(move |(offset, &count)| (count > 0).then_some((start + offset, count)))
    }

    /// All values of these; of none, a histogram without a value.
    pub(crate) fn merged(parts: &[&Histogram]) -> Histogram {
        let mut all = Histogram::new();
        parts.iter().for_each(|part| all.merge(part));
        all
    }

    /// Adds all values of `other`. Allocates only if this histogram was shrunk.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        let used = other.used();
        let start = other.first + used.start;
        if !used.is_empty() {
            self.cover(start..start + used.len());
            let target = &mut self.buckets[start - self.first..][..used.len()];
            for (sum, count) in target.iter_mut().zip(&other.buckets[used]) {
                *sum += count;
            }
        }
        self.overflow += other.overflow;
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.sum_squares_ns2 = self.sum_squares_ns2.saturating_add(other.sum_squares_ns2);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The values of this histogram without those of `part`, which are all among them.
    ///
    /// Counts, buckets, sums and with them mean and deviation are exact. So are the least and the
    /// greatest value, except where `part` has a value in their bucket: then they are the bounds of
    /// the outermost buckets that are left. A `part` that is none gives what is left, never less
    /// than nothing.
    pub fn without(&self, part: &Histogram) -> Histogram {
        if part.count == 0 || part.count >= self.count {
            return match part.count {
                0 => self.clone(),
                _ => Histogram::unallocated(),
            };
        }
        let mut rest = self.clone();
        for (index, count) in part.occupied() {
            if let Some(bucket) = rest.buckets.get_mut(index.wrapping_sub(rest.first)) {
                *bucket = bucket.saturating_sub(count);
            }
        }
        rest.overflow = self.overflow.saturating_sub(part.overflow);
        rest.count = rest.buckets.iter().sum::<u64>() + rest.overflow;
        rest.sum_ns = self.sum_ns.saturating_sub(part.sum_ns);
        rest.sum_squares_ns2 = self.sum_squares_ns2.saturating_sub(part.sum_squares_ns2);
        rest.tighten(part);
        rest.shrink_to_fit();
        rest
    }

    /// Corrects least and greatest value after those of `part` were taken out.
    fn tighten(&mut self, part: &Histogram) {
        let first = self.first;
        let mut held = self
            .buckets
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0);
        let lowest = held.next().map(|(offset, _)| first + offset);
        let highest = held
            .next_back()
            .map(|(offset, _)| first + offset)
            .or(lowest);
        let lowest_of_part = bucket_index(part.min_ns);
        if lowest_of_part <= bucket_index(self.min_ns) {
            let bound = lowest.map_or(1 << RANGE_BITS, |index| bucket_bounds(index).0);
            self.min_ns = self.min_ns.max(bound);
        }
        if bucket_index(part.max_ns) >= bucket_index(self.max_ns) && self.overflow == 0 {
            let bound = highest.map_or(self.max_ns, |index| bucket_bounds(index).1);
            self.max_ns = self.max_ns.min(bound);
        }
    }

    /// Forgets all values and keeps the memory.
    pub fn clear(&mut self) {
        let used = self.used();
        self.buckets[used].fill(0);
        let buckets = std::mem::take(&mut self.buckets);
        *self = Histogram {
            first: self.first,
            buckets,
            ..Histogram::unallocated()
        };
    }

    /// Gives back the memory of the buckets below `min` and above `max`, so that the intervals of
    /// a long run stay small. Recording into it afterwards may allocate.
    pub fn shrink_to_fit(&mut self) {
        let used = self.used();
        if used.len() < self.buckets.capacity() {
            self.first += used.start;
            self.buckets = self.buckets[used].to_vec();
        }
    }

    /// Buckets that memory is held for.
    pub(crate) fn buckets_held(&self) -> usize {
        self.buckets.len()
    }

    /// The positions in `buckets` that may be non-empty.
    fn used(&self) -> Range<usize> {
        if self.count == 0 {
            return 0..0;
        }
        let held = |index: usize| index.saturating_sub(self.first).min(self.buckets.len());
        held(bucket_index(self.min_ns))..held(bucket_index(self.max_ns) + 1)
    }

    /// Makes sure that the buckets `wanted` are held.
    fn cover(&mut self, wanted: Range<usize>) {
        if self.buckets.is_empty() {
            self.first = wanted.start;
        }
        if wanted.start < self.first {
            let missing = self.first - wanted.start;
            self.buckets.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = wanted.start;
        }
        let length = wanted.end - self.first;
        if length > self.buckets.len() {
            self.buckets.resize(length, 0);
        }
    }
}

/// A clone holds the used range only, as if shrunk: an interval is copied once a second.
impl Clone for Histogram {
    fn clone(&self) -> Self {
        let used = self.used();
        Histogram {
            first: self.first + used.start,
            buckets: self.buckets[used].to_vec(),
            ..*self
        }
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new()
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        let numbers = |histogram: &Histogram| {
            let sums = (histogram.sum_ns, histogram.sum_squares_ns2);
            let bounds = (histogram.min_ns, histogram.max_ns);
            (histogram.count, histogram.overflow, sums, bounds)
        };
        numbers(self) == numbers(other) && self.occupied().eq(other.occupied())
    }
}

impl Eq for Histogram {}

/// The rank of quantile `p` among `count` values, from 1; `None` without values.
///
/// # Panics
/// If `p` is not within 0 to 1: a caller that means 99 % must not silently get the maximum.
pub(crate) fn rank_of(p: f64, count: u64) -> Option<u64> {
    assert!(
        (0.0..=1.0).contains(&p),
        "quantile {p} is not within 0 to 1"
    );
    if count == 0 {
        return None;
    }
    // 0.07 * 100 is 7.000000000000001 in binary; without the correction its rank would be 8.
    let exact = p * count as f64 * (1.0 - 4.0 * f64::EPSILON);
    Some((exact.ceil() as u64).clamp(1, count))
}

/// The bucket of a value; `BUCKETS` or more if it overflows.
#[inline]
pub const fn bucket_index(value_ns: u64) -> usize {
    if value_ns < 1 << PRECISION_BITS {
        return value_ns as usize;
    }
    let exponent = 63 - value_ns.leading_zeros();
    let shift = exponent - PRECISION_BITS;
    let mantissa = (value_ns >> shift) as usize - (1 << PRECISION_BITS);
    (((shift + 1) as usize) << PRECISION_BITS) + mantissa
}

/// The width of the bucket of `value_ns`, in nanoseconds; beyond all buckets that of the last one.
pub fn width_at(value_ns: u64) -> u64 {
    let value_ns = value_ns.min((1 << RANGE_BITS) - 1);
    1 << (value_ns >> PRECISION_BITS).max(1).ilog2()
}

/// The lowest and the highest value of bucket `index`, both included.
///
/// `index` is below [`BUCKETS`].
pub const fn bucket_bounds(index: usize) -> (u64, u64) {
    if index < 1 << PRECISION_BITS {
        return (index as u64, index as u64);
    }
    let shift = (index >> PRECISION_BITS) - 1;
    let mantissa = index & ((1 << PRECISION_BITS) - 1);
    let low = ((1 << PRECISION_BITS) + mantissa as u64) << shift;
    (low, low + ((1 << shift) - 1))
}
