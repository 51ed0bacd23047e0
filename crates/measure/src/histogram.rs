//! The one histogram layout: fixed, log-linear, mergeable by addition.
//!
//! Values are nanoseconds. Below 128 ns every value has its own bucket; above, each power of two
//! is cut into 128 buckets, so a bucket is at most 1/128 = 0.78 % of its value wide and its middle
//! at most 0.39 % off. Values from 2^36 ns (68.7 s) up are counted in an overflow bucket and still
//! enter `max` and `sum`. Percentiles of merged histograms equal those of one histogram.

/// Bits of mantissa in a bucket index.
pub const PRECISION_BITS: u32 = 7;
/// Values at or above `1 << RANGE_BITS` ns overflow.
pub const RANGE_BITS: u32 = 36;
/// Number of buckets without the overflow bucket.
pub const BUCKETS: usize = ((RANGE_BITS - PRECISION_BITS + 1) as usize) << PRECISION_BITS;

/// A latency distribution in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    buckets: Box<[u64]>,
    overflow: u64,
    count: u64,
    sum_ns: u128,
    sum_squares_ns2: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Histogram {
    /// An empty histogram; allocates its 30 KB once.
    pub fn new() -> Self {
        Histogram {
            buckets: vec![0; BUCKETS].into_boxed_slice(),
            overflow: 0,
            count: 0,
            sum_ns: 0,
            sum_squares_ns2: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }

    /// Counts one value. O(1), does not allocate.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.count += 1;
        self.sum_ns += u128::from(value_ns);
        self.sum_squares_ns2 += u128::from(value_ns) * u128::from(value_ns);
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
        match self.buckets.get_mut(bucket_index(value_ns)) {
            Some(bucket) => *bucket += 1,
            None => self.overflow += 1,
        }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new()
    }
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
