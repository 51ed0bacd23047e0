//! A histogram of a run as Prometheus has them: classic, with fixed bounds, and native.
//!
//! Buckets of a run are at most 0.78 % wide; those of a native histogram of schema 5 are 2.2 % wide
//! and have other bounds. The values of a bucket that a bound divides are taken as spread evenly
//! over it. So each bucket only grows as values are added, and their sum is the count, exactly.

use measure::Histogram;
use measure::histogram::RANGE_BITS;

/// Native bucket `i` ends at `2^(i / 2^SCHEMA)` seconds.
pub(crate) const SCHEMA: i32 = 5;
/// Below it lie only values of 0, in seconds: values are whole nanoseconds.
pub(crate) const ZERO_THRESHOLD: f64 = 0.5e-9;

/// Upper bounds of the classic buckets in nanoseconds: from 10 us to 50 s, three a decade.
pub(crate) const BOUNDS_NS: [u64; 21] = [
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    25_000_000_000,
    50_000_000_000,
];

const NS_PER_SECOND: f64 = 1e9;

/// The buckets of one histogram.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Buckets {
    pub(crate) count: u64,
    pub(crate) sum_seconds: f64,
    /// Values up to each of [`BOUNDS_NS`].
    pub(crate) classic: [u64; BOUNDS_NS.len()],
    /// Index and count of the native buckets that are not empty, ascending.
    pub(crate) native: Vec<(i32, u64)>,
    /// Values of 0.
    pub(crate) zeros: u64,
}

impl Buckets {
    pub(crate) fn new(histogram: &Histogram) -> Buckets {
        let mut buckets = Buckets {
            count: histogram.count(),
            sum_seconds: histogram.sum_ns() as f64 / NS_PER_SECOND,
            classic: [0; BOUNDS_NS.len()],
            native: Vec::new(),
            zeros: 0,
        };
        for (low, high, count) in histogram.buckets() {
            for (below, bound) in buckets.classic.iter_mut().zip(BOUNDS_NS) {
                *below += count_up_to(bound, (low, high), count);
            }
            match high {
                0 => buckets.zeros += count,
                _ => buckets.add_native((low, high), count),
            }
        }
        if histogram.overflow() > 0 {
            buckets.add(native_index(1 << RANGE_BITS), histogram.overflow());
        }
        buckets
    }

    fn add_native(&mut self, (low, high): (u64, u64), count: u64) {
        let (mut index, mut added) = (native_index(low), 0);
        while added < count {
            let until = count_up_to(native_bound_ns(index), (low, high), count);
            self.add(index, until - added);
            (index, added) = (index + 1, until);
        }
    }

    fn add(&mut self, index: i32, count: u64) {
        match self.native.last_mut() {
            Some((last, sum)) if *last == index => *sum += count,
            _ if count > 0 => self.native.push((index, count)),
            _ => {}
        }
    }
}

/// How many of the values of a bucket are at most `bound`, if they are spread evenly.
fn count_up_to(bound: u64, (low, high): (u64, u64), count: u64) -> u64 {
    if bound < low {
        return 0;
    }
    let (part, width) = (bound.min(high) - low + 1, high - low + 1);
    let share = u128::from(count) * u128::from(part) / u128::from(width);
    u64::try_from(share).expect("a part is at most the whole")
}

/// The greatest whole number of nanoseconds in this native bucket or below it.
fn native_bound_ns(index: i32) -> u64 {
    let seconds = (f64::from(index) / f64::from(1 << SCHEMA)).exp2();
    // Bounds are at most 2^37 ns.
    (seconds * NS_PER_SECOND).floor() as u64
}

/// The native bucket of a value that is not 0.
fn native_index(value_ns: u64) -> i32 {
    let seconds = value_ns as f64 / NS_PER_SECOND;
    (seconds.log2() * f64::from(1 << SCHEMA)).ceil() as i32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    }

    /// As `histogram_quantile` of Prometheus 2.42 has it: linear within a bucket.
    fn quantile(buckets: &Buckets, q: f64) -> f64 {
        let rank = q * buckets.count as f64;
        let mut below = buckets.zeros as f64;
        for (index, count) in &buckets.native {
            let count = *count as f64;
            if below + count >= rank {
                let bound = |index: i32| (f64::from(index) / 32.0).exp2();
                let (low, high) = (bound(index - 1), bound(*index));
                return low + (high - low) * (rank - below) / count;
            }
            below += count;
        }
        f64::NAN
    }

    #[test]
    fn native_p99_is_within_0_6_percent_of_the_histogram_of_the_run() {
        // A long tail, drawn at the quantiles themselves.
        let values: Vec<u64> = (0..100_000)
            .map(|at| {
                let share = (f64::from(at) + 0.5) / 100_000.0;
                (200_000.0 - 900_000.0 * (1.0 - share).ln()) as u64
            })
            .collect();
        let histogram = histogram(&values);
        let buckets = Buckets::new(&histogram);
        for q in [0.5, 0.9, 0.99, 0.999] {
            let exact = histogram.percentile(q).unwrap() as f64 / 1e9;
            let off = (quantile(&buckets, q) / exact - 1.0).abs();
            assert!(off < 0.006, "{q}: {off}");
        }
    }

    #[test]
    fn classic_bounds_include_values_that_equal_them() {
        let buckets = Buckets::new(&histogram(&[0, 10_000, 10_001, 25_000, 50_000_000_000]));
        // A value that shares a bucket with the bound may count as below it.
        assert_eq!(buckets.classic[BOUNDS_NS.len() - 1] + 1, 5);
        assert_eq!(buckets.zeros, 1);
        assert_eq!(buckets.count, 5);
    }

    #[test]
    fn values_out_of_range_are_counted_above_all_classic_bounds() {
        let buckets = Buckets::new(&histogram(&[1 << RANGE_BITS, u64::MAX]));
        assert_eq!(buckets.classic, [0; BOUNDS_NS.len()]);
        assert_eq!(buckets.native, [(native_index(1 << RANGE_BITS), 2)]);
    }

    #[test]
    fn empty_histogram_has_no_native_buckets() {
        let buckets = Buckets::new(&Histogram::default());
        assert_eq!((buckets.count, buckets.native.len()), (0, 0));
    }

    proptest! {
        #[test]
        fn buckets_add_up_to_the_count_and_only_grow(
            values in proptest::collection::vec(0..80_000_000_000u64, 1..200),
            powers in proptest::collection::vec(0..36u32, 1..50),
        ) {
            let mut all = Histogram::default();
            let mut before = Buckets::new(&all);
            for value in values.into_iter().chain(powers.into_iter().map(|it| 1 << it)) {
                all.record(value);
                let after = Buckets::new(&all);
                let sum: u64 = after.native.iter().map(|(_, count)| count).sum();
                prop_assert_eq!(sum + after.zeros, after.count);
                prop_assert!(after.native.is_sorted_by(|a, b| a.0 < b.0));
                for (index, count) in &before.native {
                    let now = after.native.iter().find(|(it, _)| it == index);
                    prop_assert!(now.is_some_and(|(_, now)| now >= count));
                }
                prop_assert!(after.classic.is_sorted());
                prop_assert!(after.classic.iter().zip(&before.classic).all(|(a, b)| a >= b));
                before = after;
            }
        }
    }
}
