//! The noise floor: how far apart two medians of the same thing come to lie.

use rand_xoshiro::Xoshiro256PlusPlus;

use super::bootstrap::{difference, draw_many};
use super::{Bootstrap, median, quantile};

/// The difference of two medians, of `sizes.0` and of `sizes.1` runs of the same thing, that is
/// exceeded by chance alone in a share of 1 - `level` of the cases (`level` of `bootstrap`).
///
/// Each of `samples` holds runs of one thing, such as runs of A compared with A; what counts is how
/// far they lie from their own median. Deviations are widened by sqrt(n / (n - 1)), because a
/// median lies closer to the values it was taken from than to the truth. None if no sample has two
/// values.
pub fn noise_floor(
    samples: &[&[f64]],
    sizes: (usize, usize),
    bootstrap: &Bootstrap,
    generator: &mut Xoshiro256PlusPlus,
) -> Option<f64> {
    let mut deviations = Vec::new();
    for sample in samples.iter().filter(|sample| sample.len() > 1) {
        let middle = median(sample)?;
        let number = sample.len() as f64;
        let widening = (number / (number - 1.0)).sqrt();
        deviations.extend(sample.iter().map(|value| widening * (value - middle)));
    }
    if deviations.is_empty() || sizes.0.min(sizes.1) == 0 {
        return None;
    }
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let differences = (0..bootstrap.resamples).map(|_| {
        draw_many(&deviations, sizes.0, generator, &mut first);
        draw_many(&deviations, sizes.1, generator, &mut second);
        difference(&mut first, &mut second).abs()
    });
    quantile(&differences.collect::<Vec<f64>>(), bootstrap.level)
}
