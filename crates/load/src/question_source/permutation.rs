//! A keyed bijection of the numbers below a bound, computed and not stored.

use crate::random::mix;

/// Rounds of scrambling; with four, not all orders of three names are equally likely.
const ROUNDS: usize = 6;

/// A bijection of the numbers below `count`: position to number, in an order that looks random.
///
/// Each step of a round (addition and multiplication by an odd number modulo a power of two, and an
/// exclusive or with the upper bits) is invertible, so the whole is. Results from `count` up are
/// scrambled again until one is below it, which keeps it a bijection and takes at most two passes
/// on average.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permutation {
    count: u64,
    mask: u64,
    shift: u32,
    /// What each round adds, and what it multiplies by.
    rounds: [(u64, u64); ROUNDS],
}

impl Permutation {
    /// The permutation of the numbers below `count` that `seed` gives.
    ///
    /// # Panics
    /// If `count` is 0 or above 2^63.
    pub(crate) fn new(count: u64, seed: u64) -> Self {
        assert!(
            (1..=1 << 63).contains(&count),
            "there is something to permute"
        );
        let bits = (u64::BITS - (count - 1).leading_zeros()).max(1);
        let mut key = mix(seed);
        let mut draw = || {
            key = mix(key);
            key
        };
        Permutation {
            count,
            mask: (1 << bits) - 1,
            shift: bits.div_ceil(2),
            rounds: [(); ROUNDS].map(|()| (draw(), draw() | 1)),
        }
    }

    /// The number at `position`, which is below `count`.
    #[inline]
    pub(crate) fn at(&self, position: u64) -> u64 {
        debug_assert!(position < self.count, "positions are those of the numbers");
        let mut value = position;
        loop {
            for (addend, factor) in self.rounds {
                value = value.wrapping_add(addend).wrapping_mul(factor) & self.mask;
                value ^= value >> self.shift;
            }
            if value < self.count {
                return value;
            }
        }
    }
}
