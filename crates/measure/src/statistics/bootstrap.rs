//! The bootstrap: what the figures would have been if the runs had fallen out otherwise.
//!
//! Runs are drawn from those that were made, with replacement, and the statistic is computed of
//! each draw; the interval reaches from one quantile of these to another (the percentile method of
//! Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13). BCa corrects skewness by
//! the jackknife, which is inconsistent for medians (chapter 11.6), so it is not offered.

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{ConfidenceInterval, median_in_place, quantile_of_sorted};

/// Settings of a bootstrap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrap {
    /// How often is drawn.
    pub resamples: usize,
    /// Coverage of the intervals, 0 to 1.
    pub level: f64,
}

impl Default for Bootstrap {
    /// 4,000 draws and 95 %: the ends then move by a few percent of the width from seed to seed.
    fn default() -> Self {
        Bootstrap {
            resamples: 4_000,
            level: 0.95,
        }
    }
}

impl Bootstrap {
    /// The interval of the median. None with fewer than two values.
    ///
    /// With fewer than about ten values it covers less than its level says; where that matters
    /// [`super::interval_of_median`] is exact.
    pub fn median(
        &self,
        values: &[f64],
        generator: &mut Xoshiro256PlusPlus,
    ) -> Option<ConfidenceInterval> {
        let mut drawn = Vec::with_capacity(values.len());
        let several = values.len() > 1;
        several.then(|| {
            self.interval(generator, |generator| {
                draw(values, generator, &mut drawn);
                median_in_place(&mut drawn).unwrap_or(f64::NAN)
            })
        })?
    }

    /// The interval of the median of `to` minus that of `from`, where the runs of the two were made
    /// independently. None unless both have two values.
    pub fn difference_of_medians(
        &self,
        from: &[f64],
        to: &[f64],
        generator: &mut Xoshiro256PlusPlus,
    ) -> Option<ConfidenceInterval> {
        if from.len().min(to.len()) < 2 {
            return None;
        }
        let (mut first, mut second) = (Vec::new(), Vec::new());
        self.interval(generator, |generator| {
            draw(from, generator, &mut first);
            draw(to, generator, &mut second);
            difference(&mut first, &mut second)
        })
    }

    /// The same where the runs were made in pairs (from, to), close in time: pairs are drawn, so
    /// that what changed on the host from pair to pair does not widen the interval. None with fewer
    /// than two pairs.
    pub fn paired_difference_of_medians(
        &self,
        pairs: &[(f64, f64)],
        generator: &mut Xoshiro256PlusPlus,
    ) -> Option<ConfidenceInterval> {
        if pairs.len() < 2 {
            return None;
        }
        let (mut first, mut second) = (Vec::new(), Vec::new());
        self.interval(generator, |generator| {
            first.clear();
            second.clear();
            for _ in pairs {
                let (from, to) = pairs[below(generator, pairs.len())];
                first.push(from);
                second.push(to);
            }
            difference(&mut first, &mut second)
        })
    }

    /// The interval of the median of `to` divided by that of `from`, all values above 0. None
    /// unless both have two values.
    pub fn ratio_of_medians(
        &self,
        from: &[f64],
        to: &[f64],
        generator: &mut Xoshiro256PlusPlus,
    ) -> Option<ConfidenceInterval> {
        let interval = self.difference_of_medians(&logarithms(from), &logarithms(to), generator);
        interval.map(|interval| interval.map(f64::exp))
    }

    /// The same of pairs, as [`Bootstrap::paired_difference_of_medians`].
    pub fn paired_ratio_of_medians(
        &self,
        pairs: &[(f64, f64)],
        generator: &mut Xoshiro256PlusPlus,
    ) -> Option<ConfidenceInterval> {
        let pairs = pairs.iter().map(|(from, to)| (from.ln(), to.ln()));
        let pairs: Vec<(f64, f64)> = pairs.collect();
        let interval = self.paired_difference_of_medians(&pairs, generator);
        interval.map(|interval| interval.map(f64::exp))
    }

    /// The interval of whatever `statistic` computes of a draw that it makes itself. None without
    /// resamples.
    pub fn interval(
        &self,
        generator: &mut Xoshiro256PlusPlus,
        mut statistic: impl FnMut(&mut Xoshiro256PlusPlus) -> f64,
    ) -> Option<ConfidenceInterval> {
        let draws = (0..self.resamples).map(|_| statistic(generator));
        let mut statistics: Vec<f64> = draws.collect();
        statistics.sort_unstable_by(f64::total_cmp);
        let tail = (1.0 - self.level) / 2.0;
        Some(ConfidenceInterval {
            low: quantile_of_sorted(&statistics, tail)?,
            high: quantile_of_sorted(&statistics, 1.0 - tail)?,
            level: self.level,
        })
    }

    /// Indices of `number` successive intervals, drawn in blocks of `block` of them (the circular
    /// block bootstrap of Politis and Romano, 1992): what lies close in time stays together, so
    /// that slow changes widen the interval as they should.
    pub fn blocks(
        number: usize,
        block: usize,
        generator: &mut Xoshiro256PlusPlus,
    ) -> impl Iterator<Item = usize> {
        let block = block.clamp(1, number.max(1));
        let starts = number.div_ceil(block);
        let starts: Vec<usize> = (0..starts).map(|_| below(generator, number)).collect();
        let each = starts.into_iter();
        each.flat_map(move |start| (0..block).map(move |offset| (start + offset) % number))
            .take(number)
    }
}

/// As many values as there are, drawn with replacement.
pub(super) fn draw(values: &[f64], generator: &mut Xoshiro256PlusPlus, drawn: &mut Vec<f64>) {
    draw_many(values, values.len(), generator, drawn);
}

/// `number` of the values, drawn with replacement.
pub(super) fn draw_many(
    values: &[f64],
    number: usize,
    generator: &mut Xoshiro256PlusPlus,
    drawn: &mut Vec<f64>,
) {
    drawn.clear();
    drawn.extend((0..number).map(|_| values[below(generator, values.len())]));
}

/// A number below `bound`; one that is not a power of two makes some likelier than others, by less
/// than `bound` in 2^64.
fn below(generator: &mut Xoshiro256PlusPlus, bound: usize) -> usize {
    ((u128::from(generator.next_u64()) * bound as u128) >> 64) as usize
}

pub(super) fn difference(from: &mut [f64], to: &mut [f64]) -> f64 {
    match (median_in_place(from), median_in_place(to)) {
        // Equal infinities have no difference, and are the same.
        (Some(from), Some(to)) if from == to => 0.0,
        (Some(from), Some(to)) => to - from,
        _ => f64::NAN,
    }
}

fn logarithms(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}
