//! Connection IDs and the key of stateless resets, derived from the caller's seed instead of
//! quinn-proto's system random numbers.

use aws_lc_rs::hkdf;
use hmac::{KeyInit, Mac};
use quinn_proto::crypto::{CryptoError, HandshakeTokenKey, HmacKey};
use quinn_proto::{ConnectionId, ConnectionIdGenerator, EndpointConfig};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Octets of the connection IDs of servers; RFC 9000, section 5.1 leaves the length to them.
const SERVER_ID_OCTETS: usize = 8;

/// Octets of the IDs that a client's first Initials go to: at least 8 (RFC 9000, section 7.2).
const INITIAL_ID_OCTETS: usize = 8;

/// An endpoint configuration that draws from `seed` alone.
///
/// `id_octets` is 0 for clients: each has its own socket, which identifies the connection.
fn endpoint_config(seed: [u8; 32], id_octets: usize) -> EndpointConfig {
    let mut config = EndpointConfig::new(Arc::new(ResetKey(seed)));
    config.rng_seed(Some(seed));
    config.supported_versions(vec![VERSION_1]);
    config.cid_generator(move || {
        Box::new(IdGenerator {
            ids: Ids::new(seed, 0),
            octets: id_octets,
        })
    });
    config
}

/// QUIC version 1 (RFC 9000), the only one spoken here.
pub(super) const VERSION_1: u32 = 1;

pub(super) fn client_endpoint_config(seed: [u8; 32]) -> EndpointConfig {
    endpoint_config(seed, 0)
}

pub(super) fn server_endpoint_config(seed: [u8; 32]) -> EndpointConfig {
    let mut config = endpoint_config(seed, SERVER_ID_OCTETS);
    // Tests and faults need every reset; a minimum pause between them would suppress some.
    config.min_reset_interval(Duration::ZERO);
    config
}

/// The key that seals the tokens of Retry.
pub(super) fn token_key(secret: [u8; 32]) -> Arc<dyn HandshakeTokenKey> {
    let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"throng retry");
    Arc::new(salt.extract(&secret))
}

/// Destination connection IDs for first Initials, each different.
pub(super) fn initial_ids(seed: [u8; 32]) -> Arc<dyn Fn() -> ConnectionId + Send + Sync> {
    let ids = Ids::new(seed, 1);
    Arc::new(move || ConnectionId::new(&ids.next()[..INITIAL_ID_OCTETS]))
}

/// Numbers that look random and do not repeat within 2^64.
struct Ids {
    key: u64,
    count: AtomicU64,
}

impl Ids {
    fn new(seed: [u8; 32], purpose: u64) -> Self {
        // Every octet of the seed counts: seeds may differ in one of them.
        let key = seed
            .iter()
            .fold(purpose, |key, octet| mix(key ^ u64::from(*octet)));
        Ids {
            key,
            count: AtomicU64::new(0),
        }
    }

    fn next(&self) -> [u8; 8] {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        mix(self.key.wrapping_add(count)).to_le_bytes()
    }
}

/// A bijection of 64 bits in which every input bit moves about half of the output bits
/// (the finaliser of SplitMix64, by Steele, Lea and Flood).
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

struct IdGenerator {
    ids: Ids,
    octets: usize,
}

impl ConnectionIdGenerator for IdGenerator {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.ids.next()[..self.octets])
    }

    fn cid_len(&self) -> usize {
        self.octets
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// HMAC-SHA-256 under the seed; signs the tokens of stateless resets (RFC 9000, section 10.3.2).
struct ResetKey([u8; 32]);

impl ResetKey {
    fn tag(&self, data: &[u8]) -> [u8; 32] {
        let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(&self.0)
            .expect("HMAC takes a key of any length");
        mac.update(data);
        mac.finalize().into_bytes().into()
    }
}

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        signature_out.copy_from_slice(&self.tag(data));
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        if self.tag(data) == signature {
            Ok(())
        } else {
            Err(CryptoError)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_octet_of_the_seed_changes_the_ids() {
        let seeds = (0..32).map(|octet| {
            let mut seed = [7; 32];
            seed[octet] = 8;
            seed
        });
        let ids: HashSet<[u8; 8]> = seeds
            .flat_map(|seed| [Ids::new(seed, 0).next(), Ids::new(seed, 1).next()])
            .collect();
        assert_eq!(ids.len(), 64);
    }
}
