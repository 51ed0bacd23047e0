//! Zipf's distribution: rank `k` of `n` with a probability in proportion to `k^-s`.
//!
//! By rejection-inversion (W. Hörmann and G. Derflinger, Rejection-inversion to generate variates
//! from monotone discrete distributions, 1996): exact for every exponent from 0 up, without a
//! table, and one or two draws a rank whatever `n` is. The area under the curve `x^-s` is inverted;
//! of the numbers that round to rank `k`, as many are kept as a bar of width 1 and height `k^-s`
//! covers.

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::random;

/// Ranks 0 to `n - 1`, the first the most likely.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    ranks: f64,
    exponent: f64,
    /// The integral of the curve up to the left edge of rank 1, less what its bar covers more.
    area_first: f64,
    /// The integral of the curve up to the right edge of the last rank.
    area_last: f64,
    /// A candidate at most this far below its rank is accepted without evaluating the area.
    kept_within: f64,
}

impl Zipf {
    /// `ranks` is at least 1, `exponent` finite and at least 0.
    pub(crate) fn new(ranks: u64, exponent: f64) -> Self {
        let ranks = ranks as f64;
        let second_edge = area(2.5, exponent) - height(2.0, exponent);
        Zipf {
            ranks,
            exponent,
            area_first: area(1.5, exponent) - 1.0,
            area_last: area(ranks + 0.5, exponent),
            kept_within: 2.0 - area_inverse(second_edge, exponent),
        }
    }

    /// The next rank, from 0.
    #[inline]
    pub(crate) fn next(&self, generator: &mut Xoshiro256PlusPlus) -> u64 {
        loop {
            let part = random::below_one(generator);
            let drawn = self.area_last + part * (self.area_first - self.area_last);
            let place = area_inverse(drawn, self.exponent);
            // Rounding of the inverse may leave the range by a hair.
            let rank = place.round().clamp(1.0, self.ranks);
            let bar = area(rank + 0.5, self.exponent) - height(rank, self.exponent);
            if rank - place <= self.kept_within || drawn >= bar {
                return rank as u64 - 1;
            }
        }
    }
}

/// The curve: `x^-s`.
fn height(x: f64, exponent: f64) -> f64 {
    (-exponent * x.ln()).exp()
}

/// The integral of the curve from 1 to `x`: `(x^(1-s) - 1) / (1 - s)`, and `ln x` where `s` is 1.
fn area(x: f64, exponent: f64) -> f64 {
    let log = x.ln();
    let power = (1.0 - exponent) * log;
    // Near 1, where the difference above would cancel out.
    let part = if power.abs() > 1e-8 {
        power.exp_m1() / power
    } else {
        1.0 + power / 2.0
    };
    part * log
}

/// The `x` up to which the integral is `area`.
fn area_inverse(area: f64, exponent: f64) -> f64 {
    // Below -1 only by rounding.
    let product = (area * (1.0 - exponent)).max(-1.0);
    let part = if product.abs() > 1e-8 {
        product.ln_1p() / product
    } else {
        1.0 - product / 2.0
    };
    (part * area).exp()
}
