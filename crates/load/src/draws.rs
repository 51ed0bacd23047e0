//! Drawing numbers: seeded, and the same on every machine.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The distance of two numbers of 53 random bits in the range up to 1.
const UNIFORM_STEP: f64 = 1.0 / (1u64 << 53) as f64;

/// The random numbers of one worker for one purpose: `stream` keeps those of other purposes that
/// are drawn with the same seed apart.
pub(crate) fn generator(seed: u64, stream: u64, worker: u32) -> Xoshiro256PlusPlus {
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed ^ stream);
    // 2^128 numbers apart: the workers' sequences never overlap.
    (0..worker).for_each(|_| generator.jump());
    generator
}

/// A number below `bound`, all equally likely.
///
/// The upper half of the 128-bit product is that number but for a slight bias, which drawing again
/// for the lowest `2^64 mod bound` values of the lower half removes.
///
/// # Panics
/// If `bound` is 0.
#[inline]
pub(crate) fn below(generator: &mut Xoshiro256PlusPlus, bound: u64) -> u64 {
    loop {
        let product = u128::from(generator.next_u64()) * u128::from(bound);
        let lower = product as u64;
        // The lowest values are below `bound`, which spares nearly every draw the division.
        if lower >= bound || lower >= bound.wrapping_neg() % bound {
            return (product >> 64) as u64;
        }
    }
}

/// A number from 0 up to but not including 1.
#[inline]
pub(crate) fn below_one(generator: &mut Xoshiro256PlusPlus) -> f64 {
    (generator.next_u64() >> 11) as f64 * UNIFORM_STEP
}

/// Spreads what differs in a few bits of `value` over all of them; a bijection (SplitMix64).
#[inline]
pub(crate) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}
