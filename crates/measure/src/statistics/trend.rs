//! Trends in a series: whether there is one, and how steep it is, neither disturbed by outliers.

use statrs::distribution::{ContinuousCDF, Normal};

use super::{autocorrelation, median, midranks};

/// What [`mann_kendall`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Kendall's S: pairs that rise minus pairs that fall.
    pub s: f64,
    /// Its distance from 0 in standard deviations, corrected for continuity.
    pub z: f64,
    /// Probability of such a distance to either side without a trend.
    pub p_value: f64,
}

/// Mann and Kendall's test for a monotonic trend, two-sided, with the variance corrected for ties
/// and, as Hamed and Rao do (A Modified Mann-Kendall Trend Test for Autocorrelated Data, 1998), for
/// successive values that resemble each other. None with fewer than four values.
pub fn mann_kendall(values: &[f64]) -> Option<Trend> {
    let number = values.len() as f64;
    if values.len() < 4 {
        return None;
    }
    let mut s = 0.0;
    for (index, one) in values.iter().enumerate() {
        for next in &values[index + 1..] {
            s += f64::from(u8::from(next > one)) - f64::from(u8::from(next < one));
        }
    }
    let untied = number * (number - 1.0) * (2.0 * number + 5.0);
    let variance = (untied - tied(values)) / 18.0 * inflation(values);
    let z = match variance > 0.0 {
        true => (s.abs() - 1.0).max(0.0).copysign(s) / variance.sqrt(),
        false => 0.0,
    };
    let p_value = (2.0 * Normal::standard().sf(z.abs())).min(1.0);
    Some(Trend { s, z, p_value })
}

/// The sum over groups of equal values of t (t - 1) (2 t + 5).
fn tied(values: &[f64]) -> f64 {
    let sorted = super::sorted(values);
    let term = |size: f64| size * (size - 1.0) * (2.0 * size + 5.0);
    let groups = sorted.chunk_by(|one, other| one == other);
    groups.map(|group| term(group.len() as f64)).sum()
}

/// By how much autocorrelation widens the variance of S, at least 1: of the ranks of what is left
/// without the trend, lags that are beyond chance.
fn inflation(values: &[f64]) -> f64 {
    let number = values.len() as f64;
    let slope = theil_sen(values).unwrap_or(0.0);
    let without: Vec<f64> = values
        .iter()
        .enumerate()
        .map(|(index, value)| value - slope * index as f64)
        .collect();
    let ranks = midranks(&without);
    let chance = 1.96 / number.sqrt();
    let mut sum = 0.0;
    for lag in 1..values.len() - 1 {
        let correlation = autocorrelation(&ranks, lag);
        // Beyond the first lag that is chance alone, all are: their sum would be noise.
        if correlation.abs() <= chance {
            break;
        }
        let left = number - lag as f64;
        sum += left * (left - 1.0) * (left - 2.0) * correlation;
    }
    (1.0 + 2.0 * sum / (number * (number - 1.0) * (number - 2.0))).max(1.0)
}

/// The median of the slopes of all pairs, a step of one value to the next (Theil, 1950; Sen,
/// Estimates of the Regression Coefficient Based on Kendall's Tau, 1968). None with fewer than two
/// values. Takes time and memory by the square of their number.
pub fn theil_sen(values: &[f64]) -> Option<f64> {
    let mut slopes = Vec::with_capacity(values.len() * values.len().saturating_sub(1) / 2);
    for (index, one) in values.iter().enumerate() {
        for (offset, next) in values[index + 1..].iter().enumerate() {
            slopes.push((next - one) / (offset + 1) as f64);
        }
    }
    median(&slopes)
}
