//! The two histograms of a profile, written as lists of lower bound and count.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Buckets for each doubling: a bucket is 9 % wide.
const BUCKETS_PER_OCTAVE: f64 = 8.0;

/// Whole numbers up to this have a bucket each.
const COUNTS_EXACT: u64 = 16;

/// A histogram of positive numbers, in buckets of equal width on a logarithmic axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<(f64, u64)>", into = "Vec<(f64, u64)>")]
pub struct LogHistogram {
    /// By index of the bucket: its lower bound is 2 to the power of an eighth of that.
    buckets: BTreeMap<i32, u64>,
}

impl LogHistogram {
    /// Counts `value`; one that is not positive falls into the lowest bucket there is.
    pub fn record(&mut self, value: f64, count: u64) {
        let index = (value.max(f64::MIN_POSITIVE).log2() * BUCKETS_PER_OCTAVE).floor();
        let bucket = self.buckets.entry(index as i32).or_default();
        *bucket = bucket.saturating_add(count);
    }

    /// How many were counted.
    pub fn total(&self) -> u64 {
        self.buckets
            .values()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The buckets that are not empty, ascending: lower bound, upper bound, count.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, f64, u64)> {
        let bound = |index: i32| (f64::from(index) / BUCKETS_PER_OCTAVE).exp2();
        let counted = self.buckets.iter().filter(|(_, count)| **count > 0);
        counted.map(move |(&index, &count)| (bound(index), bound(index.saturating_add(1)), count))
    }

    /// The value below which a share of all is, within the width of a bucket; `None` if there are
    /// none.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let wanted = share.clamp(0.0, 1.0) * self.total() as f64;
        let mut below = 0.0;
        let mut last = None;
        for (low, high, count) in self.buckets() {
            let here = count as f64;
            if below + here >= wanted {
                return Some(low * (high / low).powf((wanted - below) / here));
            }
            below += here;
            last = Some(high);
        }
        last
    }
}

impl From<Vec<(f64, u64)>> for LogHistogram {
    fn from(list: Vec<(f64, u64)>) -> Self {
        let mut histogram = LogHistogram::default();
        for (bound, count) in list {
            let index = (bound.max(f64::MIN_POSITIVE).log2() * BUCKETS_PER_OCTAVE).round();
            let bucket = histogram.buckets.entry(index as i32).or_default();
            *bucket = bucket.saturating_add(count);
        }
        histogram
    }
}

impl From<LogHistogram> for Vec<(f64, u64)> {
    fn from(histogram: LogHistogram) -> Self {
        let listed = histogram.buckets();
        listed
            .map(|(low, _, count)| (four_digits(low), count))
            .collect()
    }
}

/// The number with four significant digits, which is a hundredth of a bucket.
fn four_digits(number: f64) -> f64 {
    format!("{number:.3e}").parse().unwrap_or(number)
}

/// A histogram of whole numbers from 1: exact up to 16, then in buckets of 9 %.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct CountHistogram {
    /// By the lowest number of the bucket.
    buckets: BTreeMap<u64, u64>,
}

impl CountHistogram {
    /// Counts `value`; 0 counts as 1.
    pub fn record(&mut self, value: u64, count: u64) {
        let bucket = self.buckets.entry(lowest(value.max(1))).or_default();
        *bucket = bucket.saturating_add(count);
    }

    /// How many were counted.
    pub fn total(&self) -> u64 {
        self.buckets
            .values()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The buckets that are not empty, ascending: lowest and highest number, count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let counted = self.buckets.iter().filter(|(_, count)| **count > 0);
        counted.map(|(&low, &count)| (low, highest(low), count))
    }

    /// The number up to which a share of all is, within the width of a bucket.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let wanted = share.clamp(0.0, 1.0) * self.total() as f64;
        let mut sum = 0.0;
        let mut last = None;
        for (low, high, count) in self.buckets() {
            sum += count as f64;
            last = Some(low.midpoint(high));
            if sum >= wanted {
                break;
            }
        }
        last
    }
}

impl From<Vec<(u64, u64)>> for CountHistogram {
    fn from(list: Vec<(u64, u64)>) -> Self {
        let mut histogram = CountHistogram::default();
        for (value, count) in list {
            histogram.record(value, count);
        }
        histogram
    }
}

impl From<CountHistogram> for Vec<(u64, u64)> {
    fn from(histogram: CountHistogram) -> Self {
        histogram
            .buckets()
            .map(|(low, _, count)| (low, count))
            .collect()
    }
}

/// The lowest whole number of the bucket with this index, counted as in [`LogHistogram`].
fn bound(index: f64) -> u64 {
    (index / BUCKETS_PER_OCTAVE).exp2().ceil() as u64
}

fn lowest(value: u64) -> u64 {
    if value <= COUNTS_EXACT {
        return value;
    }
    let index = ((value as f64).log2() * BUCKETS_PER_OCTAVE).floor();
    // The logarithm of a bound may be rounded to either side.
    match bound(index + 1.0) {
        next if next <= value => next,
        _ => bound(index).min(value),
    }
}

fn highest(low: u64) -> u64 {
    if low < COUNTS_EXACT {
        return low;
    }
    let index = ((low as f64).log2() * BUCKETS_PER_OCTAVE).round();
    let next = (0..3)
        .map(|step| bound(index + f64::from(step)))
        .find(|&next| next > low);
    next.map_or(low, |next| next - 1)
}
