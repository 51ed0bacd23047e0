//! How much successive values have to do with each other, and how long blocks of them must be to
//! have little to do with each other.

use super::mean;

/// The autocorrelation at `lag`, -1 to 1; 0 if there are not that many values or all are equal.
pub fn autocorrelation(values: &[f64], lag: usize) -> f64 {
    let variance = covariance(values, 0);
    match variance > 0.0 {
        true => covariance(values, lag) / variance,
        false => 0.0,
    }
}

/// The autocovariance at `lag`, divided by the number of all values.
fn covariance(values: &[f64], lag: usize) -> f64 {
    let Some(mean) = mean(values).filter(|_| lag < values.len()) else {
        return 0.0;
    };
    let pairs = values.iter().zip(&values[lag..]);
    pairs
        .map(|(one, next)| (one - mean) * (next - mean))
        .sum::<f64>()
        / values.len() as f64
}

/// The length of blocks for a circular block bootstrap, from 1 to a third of the values: the rule
/// of Politis and White (Automatic Block-Length Selection for the Dependent Bootstrap, 2004) as
/// corrected by Patton, Politis and White (2009).
pub fn block_length(values: &[f64]) -> usize {
    let number = values.len();
    let longest = (number / 3).max(1);
    if number < 4 {
        return 1;
    }
    let lags = 2 * last_correlated_lag(values);
    let mut spectrum = covariance(values, 0);
    let mut slope = 0.0;
    for lag in 1..=lags.min(number - 1) {
        let weighted = 2.0 * flat_top(lag as f64 / lags as f64) * covariance(values, lag);
        spectrum += weighted;
        slope += lag as f64 * weighted;
    }
    if spectrum <= 0.0 || slope == 0.0 {
        return 1;
    }
    let denominator = 4.0 / 3.0 * spectrum * spectrum;
    let length = (2.0 * slope * slope / denominator * number as f64).cbrt();
    (length.ceil() as usize).clamp(1, longest)
}

/// The last lag before a row of lags whose correlation is as small as chance makes it.
fn last_correlated_lag(values: &[f64]) -> usize {
    let number = values.len() as f64;
    let chance = 2.0 * (number.log10() / number).sqrt();
    let row = (number.log10().sqrt() as usize).max(5);
    let longest = number.sqrt().ceil() as usize + row;
    let mut small = 0;
    for lag in 1..=longest {
        small = match autocorrelation(values, lag).abs() < chance {
            true => small + 1,
            false => 0,
        };
        if small == row {
            return (lag - row).max(1);
        }
    }
    longest
}

/// The flat-top window: 1 up to the half, then falling to 0.
fn flat_top(share: f64) -> f64 {
    match share <= 0.5 {
        true => 1.0,
        false => 2.0 * (1.0 - share),
    }
}
