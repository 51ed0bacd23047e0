//! Random numbers of one client: small, seeded, and independent of all other clients.

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
        let mut mixed = Draws {
            state: seed ^ u64::from(client).wrapping_mul(0xd134_2543_de82_ef95),
        };
        // Neighbouring numbers must not begin with neighbouring states.
        let state = mixed.bits() ^ mixed.bits().rotate_left(32);
        Draws { state }
    }

    /// The next 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(INCREMENT);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in [0, 1).
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
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
