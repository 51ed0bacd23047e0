//! Drawing from histograms by the inverse of their distribution.

use rand_core::Rng;

use super::Popularity;
use super::histogram::{CountHistogram, LogHistogram};

/// A number above 0 and up to 1.
pub(super) fn uniform(generator: &mut impl Rng) -> f64 {
    ((generator.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

/// Steps of a distribution.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Steps {
    /// The sum of the weights up to each step.
    sums: Vec<f64>,
}

impl Steps {
    pub(super) fn new(weights: impl Iterator<Item = f64>) -> Self {
        let sums = weights.scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        Steps {
            sums: sums.collect(),
        }
    }

    /// The sum of all weights.
    pub(super) fn total(&self) -> f64 {
        self.sums.last().copied().unwrap_or(0.0)
    }

    /// The sum of the weights up to a step, that one included.
    pub(super) fn sum(&self, step: usize) -> f64 {
        self.sums[step]
    }

    /// The step at a share of the total, and how far into it that is (from 0 to 1).
    pub(super) fn find(&self, share: f64) -> (usize, f64) {
        let wanted = share * self.total();
        let step = self.sums.partition_point(|&sum| sum < wanted);
        let step = step.min(self.sums.len().saturating_sub(1));
        let before = match step {
            0 => 0.0,
            step => self.sums[step - 1],
        };
        let width = self.sums.get(step).map_or(0.0, |sum| sum - before);
        let within = if width > 0.0 {
            (wanted - before) / width
        } else {
            0.5
        };
        (step, within.clamp(0.0, 1.0))
    }
}

/// Draws from a [`LogHistogram`]; within a bucket the logarithm is uniform.
#[derive(Clone, Debug, Default)]
pub(super) struct LogSampler {
    bounds: Vec<(f64, f64)>,
    by_count: Steps,
    /// Weighted by the values: what a moment picked at random falls into.
    by_length: Steps,
}

impl LogSampler {
    pub(super) fn new(histogram: &LogHistogram) -> Self {
        let bounds = histogram
            .buckets()
            .map(|(low, high, _)| (low, high))
            .collect();
        let length = |(low, high, count): (f64, f64, u64)| mean(low, high) * count as f64;
        LogSampler {
            bounds,
            by_count: Steps::new(histogram.buckets().map(|(_, _, count)| count as f64)),
            by_length: Steps::new(histogram.buckets().map(length)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bounds.is_empty()
    }

    /// The mean of what is drawn; 0 if there is nothing.
    pub(super) fn mean(&self) -> f64 {
        match self.is_empty() {
            true => 0.0,
            false => self.by_length.total() / self.by_count.total(),
        }
    }

    /// The value at a share of all, from the lowest up; 0 if there is nothing.
    pub(super) fn at(&self, share: f64) -> f64 {
        let (step, within) = self.by_count.find(share);
        let bounds = self.bounds.get(step);
        bounds.map_or(0.0, |(low, high)| low * (high / low).powf(within))
    }

    /// The length that a moment picked at random falls into.
    pub(super) fn at_moment(&self, share: f64) -> f64 {
        let (step, within) = self.by_length.find(share);
        let bounds = self.bounds.get(step);
        bounds.map_or(0.0, |(low, high)| low + (high - low) * within)
    }
}

/// The mean of a bucket whose logarithm is uniform.
fn mean(low: f64, high: f64) -> f64 {
    (high - low) / (high / low).ln()
}

/// Draws from a [`CountHistogram`]; within a bucket all numbers are alike.
#[derive(Clone, Debug, Default)]
pub(super) struct CountSampler {
    bounds: Vec<(u64, u64)>,
    by_count: Steps,
    by_length: Steps,
}

impl CountSampler {
    pub(super) fn new(histogram: &CountHistogram) -> Self {
        let length = |(low, high, count): (u64, u64, u64)| low.midpoint(high) as f64 * count as f64;
        CountSampler {
            bounds: histogram
                .buckets()
                .map(|(low, high, _)| (low, high))
                .collect(),
            by_count: Steps::new(histogram.buckets().map(|(_, _, count)| count as f64)),
            by_length: Steps::new(histogram.buckets().map(length)),
        }
    }

    /// The mean of what is drawn; 0 if there is nothing.
    pub(super) fn mean(&self) -> f64 {
        let sums = self.bounds.iter().enumerate().map(|(step, &(low, high))| {
            let before = if step == 0 {
                0.0
            } else {
                self.by_count.sums[step - 1]
            };
            let count = self.by_count.sums[step] - before;
            (low as f64 + high as f64) / 2.0 * count
        });
        let sum: f64 = sums.sum();
        if self.bounds.is_empty() {
            0.0
        } else {
            sum / self.by_count.total()
        }
    }

    /// The number at a share of all, from the lowest up; 1 if there is nothing.
    pub(super) fn at(&self, share: f64) -> u64 {
        self.pick(self.by_count.find(share))
    }

    /// As [`CountSampler::at`], weighted by the numbers.
    pub(super) fn at_moment(&self, share: f64) -> u64 {
        self.pick(self.by_length.find(share))
    }

    fn pick(&self, (step, within): (usize, f64)) -> u64 {
        let Some(&(low, high)) = self.bounds.get(step) else {
            return 1;
        };
        let width = high - low + 1;
        low + ((within * width as f64) as u64).min(width - 1)
    }
}

/// Draws ranks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ranks {
    /// The last rank of each step.
    lasts: Vec<u64>,
    steps: Steps,
}

impl Ranks {
    pub(super) fn new(names: &Popularity) -> Self {
        let mut before = 0.0;
        let weights = names.ranks.iter().map(|&(_, share)| {
            let weight = share - before;
            before = share;
            weight
        });
        Ranks {
            steps: Steps::new(weights),
            lasts: names.ranks.iter().map(|&(rank, _)| rank).collect(),
        }
    }

    /// The rank at a share of all queries; within a step as if by Zipf's law with exponent 1.
    pub(super) fn at(&self, share: f64) -> u64 {
        let (step, within) = self.steps.find(share);
        let before = if step == 0 { 0 } else { self.lasts[step - 1] };
        let last = self.lasts[step];
        let (low, high) = (before as f64 + 0.5, last as f64 + 0.5);
        let rank = (low * (high / low).powf(within)).round() as u64;
        rank.clamp(before + 1, last)
    }
}
