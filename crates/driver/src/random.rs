//! The system's random numbers.

use crate::clock::Clock;

/// Octets of a seed.
pub const SEED_OCTETS: usize = 32;

/// A seed from the system's random numbers.
pub fn seed() -> [u8; SEED_OCTETS] {
    let mut seed = [0; SEED_OCTETS];
    if getrandom::fill(&mut seed).is_err() {
        // Every supported kernel has them. The fallback is at least different each time.
        let time = Clock::unix_time().as_nanos();
        seed[..16].copy_from_slice(&time.to_le_bytes());
        seed[16..20].copy_from_slice(&std::process::id().to_le_bytes());
    }
    seed
}
