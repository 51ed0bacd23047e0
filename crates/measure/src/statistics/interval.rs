//! Intervals of confidence that need no random numbers.

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};

use super::{Range, mean, sorted, variance};

/// An interval that holds the true value with the probability `level`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfidenceInterval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Its coverage, 0 to 1: of many such intervals this share holds the true value.
    pub level: f64,
}

impl ConfidenceInterval {
    /// True if `value` is in it, the ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// True if all of it is in `other`, the ends included.
    pub fn is_within(&self, other: &ConfidenceInterval) -> bool {
        other.contains(self.low) && other.contains(self.high)
    }

    /// The interval that holds all of this one and all of `other`.
    pub fn joined(&self, other: &ConfidenceInterval) -> ConfidenceInterval {
        ConfidenceInterval {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            level: self.level,
        }
    }

    /// The interval that holds `value` too.
    pub fn extended_to(&self, value: f64) -> ConfidenceInterval {
        ConfidenceInterval {
            low: self.low.min(value),
            high: self.high.max(value),
            level: self.level,
        }
    }

    /// Half its width.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// The interval of `change` of what this one is the interval of; `change` has to be monotonic.
    pub fn map(self, change: impl Fn(f64) -> f64) -> ConfidenceInterval {
        let (one, other) = (change(self.low), change(self.high));
        ConfidenceInterval {
            low: one.min(other),
            high: one.max(other),
            level: self.level,
        }
    }
}

/// The interval of the median between two of the values, whatever their distribution: the narrowest
/// pair of order statistics, as many from below as from above, whose coverage is at least `level`.
///
/// Its `level` is the exact coverage, 1 - 2 P(B < k) where B is binomial with n and 1/2 (Conover,
/// Practical Nonparametric Statistics, section 3.2). None if not even the least and the greatest
/// value reach `level`: 95 % need six values.
pub fn interval_of_median(values: &[f64], level: f64) -> Option<ConfidenceInterval> {
    let sorted = sorted(values);
    let number = sorted.len();
    let binomial = Binomial::new(0.5, number as u64).ok()?;
    // From the k-th value from below to the k-th from above.
    let coverage = |k: usize| 1.0 - 2.0 * binomial.cdf(k as u64 - 1);
    let k = (1..=number / 2).rev().find(|&k| coverage(k) >= level)?;
    Some(ConfidenceInterval {
        low: sorted[k - 1],
        high: sorted[number - k],
        level: coverage(k),
    })
}

/// The interval of the mean by Student's t on the scale of its [`Range`], for a few values that are
/// about normally distributed; there it is one of the median too. None with fewer than two values.
pub fn interval_of_mean(values: &[f64], range: Range, level: f64) -> Option<ConfidenceInterval> {
    let number = values.len() as f64;
    if values.len() < 2 || !(0.0..1.0).contains(&level) {
        return None;
    }
    let mean = mean(values)?;
    let t = StudentsT::new(0.0, 1.0, number - 1.0).ok()?;
    let reach = error_of_mean(values) * t.inverse_cdf(0.5 + level / 2.0);
    Some(range.around(mean, reach, level))
}

/// The standard error of the mean of two values or more.
pub(super) fn error_of_mean(values: &[f64]) -> f64 {
    let variance = variance(values).unwrap_or(f64::NAN);
    (variance / values.len() as f64).sqrt()
}

/// What [`welch`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanTest {
    /// The mean of the second sample minus that of the first.
    pub difference: f64,
    /// The interval of the difference.
    pub interval: ConfidenceInterval,
    /// Probability of a difference at least as great, to either side, if both means are the same.
    pub p_value: f64,
}

/// Welch's test of two means (The Generalization of Student's Problem when Several Different
/// Population Variances Are Involved, 1947), two-sided: for samples so small that ranks can decide
/// nothing, of values that are about normally distributed. None unless both have two values.
pub fn welch(from: &[f64], to: &[f64], level: f64) -> Option<MeanTest> {
    if from.len().min(to.len()) < 2 {
        return None;
    }
    let difference = mean(to)? - mean(from)?;
    let (one, other) = (error_of_mean(from).powi(2), error_of_mean(to).powi(2));
    let error = (one + other).sqrt();
    if error == 0.0 {
        let p_value = f64::from(u8::from(difference == 0.0));
        let interval = ConfidenceInterval {
            low: difference,
            high: difference,
            level,
        };
        return Some(MeanTest {
            difference,
            interval,
            p_value,
        });
    }
    let t = StudentsT::new(0.0, 1.0, degrees_of_freedom(from, to)).ok()?;
    let reach = error * t.inverse_cdf(0.5 + level / 2.0);
    Some(MeanTest {
        difference,
        interval: ConfidenceInterval {
            low: difference - reach,
            high: difference + reach,
            level,
        },
        p_value: (2.0 * t.sf(difference.abs() / error)).min(1.0),
    })
}

/// Those of the error of a difference of means (Welch and Satterthwaite).
pub(super) fn degrees_of_freedom(from: &[f64], to: &[f64]) -> f64 {
    let (one, other) = (error_of_mean(from).powi(2), error_of_mean(to).powi(2));
    let parts = one.powi(2) / (from.len() - 1) as f64 + other.powi(2) / (to.len() - 1) as f64;
    (one + other).powi(2) / parts
}
