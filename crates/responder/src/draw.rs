//! Random numbers.

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// A number from 0 to below 1.
#[inline]
pub(crate) fn draw(generator: &mut Xoshiro256PlusPlus) -> f64 {
    (generator.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}
