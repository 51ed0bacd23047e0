//! Statistics of repeated runs and of intervals: middles, spreads, intervals of confidence, tests.
//!
//! Everything here is about a handful to a few thousand figures, each of which one run or one
//! interval has measured; percentiles of queries come from histograms. Medians and ranks are used
//! throughout, because one disturbed run must not decide. Whatever is random draws from the
//! generator that is handed in, so the same figures and the same seed give the same result.
//!
//! Distributions (normal, Student's t, binomial, beta) are those of the crate `statrs`. Nothing
//! panics on input: what cannot be computed from so few values is none. Values must not be NaN; a
//! NaN sorts last and makes what depends on it NaN.

mod autocorrelation;
mod bootstrap;
mod interval;
mod nested;
mod noise;
mod range;
mod rank;
mod trend;

#[cfg(test)]
mod tests;

pub use autocorrelation::{autocorrelation, block_length};
pub use bootstrap::Bootstrap;
pub use interval::{ConfidenceInterval, MeanTest, interval_of_mean, interval_of_median, welch};
pub use nested::Nested;
pub use noise::noise_floor;
pub use range::{Events, Range, interval_of_difference, interval_of_share};
pub use rank::{RankTest, cliffs_delta, hodges_lehmann, holm, mann_whitney, midranks};
pub use trend::{Trend, mann_kendall, theil_sen};

/// What makes a median absolute deviation comparable to a standard deviation: for normally
/// distributed values the two then agree (1 / the normal quantile of 3/4).
pub const MAD_TO_DEVIATION: f64 = 1.482_602_218_505_602;

/// The median; of an even number of values the middle between the two in the middle. None without
/// values.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The `p`-th quantile, `p` from 0 to 1, interpolated linearly between the values beside it (type 7
/// of Hyndman and Fan, Sample Quantiles in Statistical Packages, 1996). None without values.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    quantile_of_sorted(&sorted(values), p)
}

/// The median absolute deviation from the median, unscaled (see [`MAD_TO_DEVIATION`]). None without
/// values.
pub fn mad(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    median(&distances)
}

/// The arithmetic mean; none without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The sum of the squares of the distances from a middle.
pub fn squares(values: &[f64], middle: f64) -> f64 {
    values.iter().map(|value| (value - middle).powi(2)).sum()
}

/// The variance of a sample; none of fewer than two values.
pub fn variance(values: &[f64]) -> Option<f64> {
    let middle = mean(values)?;
    (values.len() > 1).then(|| squares(values, middle) / (values.len() - 1) as f64)
}

/// A copy in ascending order.
fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The same as [`quantile`] of values in ascending order.
fn quantile_of_sorted(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = p.clamp(0.0, 1.0) * last as f64;
    let below = position.floor() as usize;
    let share = position - below as f64;
    let above = sorted[(below + 1).min(last)];
    // Equal neighbours are taken as they are: infinite ones have no difference.
    Some(match share > 0.0 && above != sorted[below] {
        true => sorted[below] + share * (above - sorted[below]),
        false => sorted[below],
    })
}

/// The median, putting the values in order in place.
fn median_in_place(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    quantile_of_sorted(values, 0.5)
}
