//! Random numbers: those of one client, small and independent of all other clients, and those of
//! one worker.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A SplitMix64 generator (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
/// 2014): eight octets a client, where better generators take 32.
#[derive(Clone, Debug)]
pub struct Draws {
    state: u64,
}

/// The golden ratio's fraction, SplitMix64's increment.
const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

impl Draws {
    /// The source of client number `client` of a population seeded with `seed`.
    pub fn of_client(seed: u64, client: u32) -> Self {
        Draws::of(seed, client.into())
    }

    /// The source of number `number` among those of `seed`: independent of draws from the others.
    #[inline]
    pub fn of(seed: u64, number: u64) -> Self {
        let mut mixed = Draws {
            state: seed ^ number.wrapping_mul(0xd134_2543_de82_ef95),
        };
        // Neighbouring numbers must not begin with neighbouring states.
        let state = mixed.bits() ^ mixed.bits().rotate_left(32);
        Draws { state }
    }

    /// The next 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let mixed = mix(self.state);
        self.state = self.state.wrapping_add(INCREMENT);
        mixed
    }

    /// Uniform in [0, 1).
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        uniform(self.bits())
    }

    /// Exponentially distributed with this mean.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 - u is never zero.
        -mean * (1.0 - self.uniform()).ln()
    }

    /// Pareto-distributed with exponent `shape` above 1 and this mean.
    #[inline]
    pub fn pareto(&mut self, shape: f64, mean: f64) -> f64 {
        let least = mean * (shape - 1.0) / shape;
        least / (1.0 - self.uniform()).powf(1.0 / shape)
    }
}

impl rand_core::TryRng for Draws {
    type Error = core::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok((self.bits() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(self.bits())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        for piece in bytes.chunks_mut(8) {
            piece.copy_from_slice(&self.bits().to_le_bytes()[..piece.len()]);
        }
        Ok(())
    }
}

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
    uniform(generator.next_u64())
}

/// Spreads what differs in a few bits of `value` over all of them; a bijection (SplitMix64).
#[inline]
pub(crate) fn mix(value: u64) -> u64 {
    let mixed = value.wrapping_add(INCREMENT);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The upper 53 of 64 random bits as a number from 0 up to but not including 1.
#[inline]
fn uniform(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}
