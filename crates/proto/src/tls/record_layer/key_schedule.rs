//! The part of TLS 1.3's key schedule that goes on after a handshake (RFC 8446, section 7.2), and
//! where its first secrets come from: rustls tells them to a key log. (What it lets extract are
//! keys without the secrets that they were made from, and no key update can be made of these.)

use super::traffic_key::Cipher;
use aws_lc_rs::hkdf::{HKDF_SHA256, HKDF_SHA384, KeyType, Prk};
use rustls::KeyLog;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

/// The longest hash of a cipher suite, SHA-384's.
const HASH_OCTETS_MAX: usize = 48;

const CLIENT_LABEL: &str = "CLIENT_TRAFFIC_SECRET_0";
const SERVER_LABEL: &str = "SERVER_TRAFFIC_SECRET_0";

/// What the keys of one direction are made from.
#[derive(Clone, Copy)]
pub(crate) struct TrafficSecret([u8; HASH_OCTETS_MAX]);

impl TrafficSecret {
    fn new(octets: &[u8]) -> Option<TrafficSecret> {
        let mut secret = [0; HASH_OCTETS_MAX];
        secret.get_mut(..octets.len())?.copy_from_slice(octets);
        Some(TrafficSecret(secret))
    }

    /// The secret after a key update.
    pub(super) fn next(&self, cipher: Cipher) -> TrafficSecret {
        let mut next = [0; HASH_OCTETS_MAX];
        self.expand(cipher, b"traffic upd", &mut next[..hash_octets(cipher)]);
        TrafficSecret(next)
    }

    /// HKDF-Expand-Label with an empty context (RFC 8446, section 7.1).
    pub(super) fn expand(&self, cipher: Cipher, label: &[u8], out: &mut [u8]) {
        let algorithm = match cipher {
            Cipher::Aes256Gcm => HKDF_SHA384,
            Cipher::Aes128Gcm | Cipher::ChaCha20Poly1305 => HKDF_SHA256,
        };
        // All lengths are of one octet: a hash at most, and labels of this file.
        let length = [0, out.len() as u8, (6 + label.len()) as u8];
        let info = [&length, b"tls13 ".as_slice(), label, &[0]];
        Prk::new_less_safe(algorithm, &self.0[..hash_octets(cipher)])
            .expand(&info, Octets(out.len()))
            .and_then(|okm| okm.fill(out))
            .expect("HKDF gives up to 255 hashes, and this is one at most");
    }
}

fn hash_octets(cipher: Cipher) -> usize {
    match cipher {
        Cipher::Aes256Gcm => 48,
        Cipher::Aes128Gcm | Cipher::ChaCha20Poly1305 => 32,
    }
}

/// How much is asked of HKDF.
struct Octets(usize);

impl KeyType for Octets {
    fn len(&self) -> usize {
        self.0
    }
}

/// What a handshake has shown of its secrets.
#[derive(Clone, Copy, Default)]
pub(crate) struct HandshakeSecrets {
    pub(super) client: Option<TrafficSecret>,
    pub(super) server: Option<TrafficSecret>,
    /// Sessions of the configuration are remembered: tickets are waited for.
    pub(crate) remembers: bool,
}

thread_local! {
    static SECRETS: Cell<HandshakeSecrets> = const { Cell::new(HandshakeSecrets {
        client: None,
        server: None,
        remembers: false,
    }) };
}

impl HandshakeSecrets {
    /// Takes the secrets logged on this thread, if both are there. To be called after each call of
    /// rustls that works on a handshake, so that they belong to this handshake.
    pub(crate) fn take() -> Option<HandshakeSecrets> {
        let secrets = SECRETS.get();
        if secrets.client.is_none() || secrets.server.is_none() {
            return None;
        }
        SECRETS.set(HandshakeSecrets::default());
        Some(secrets)
    }
}

/// Listens to the secrets of all handshakes, and passes everything on to the user's key log.
pub(crate) struct Listener {
    pub(crate) user: Option<Arc<dyn KeyLog>>,
    pub(crate) remembers: bool,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

impl KeyLog for Listener {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut secrets = SECRETS.get();
        match label {
            CLIENT_LABEL => secrets.client = TrafficSecret::new(secret),
            SERVER_LABEL => secrets.server = TrafficSecret::new(secret),
            _ => {}
        }
        secrets.remembers = self.remembers;
        SECRETS.set(secrets);
        if let Some(user) = self.user.as_ref().filter(|user| user.will_log(label)) {
            user.log(label, client_random, secret);
        }
    }

    fn will_log(&self, label: &str) -> bool {
        let is_ours = label == CLIENT_LABEL || label == SERVER_LABEL;
        is_ours || self.user.as_ref().is_some_and(|user| user.will_log(label))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets(hex: &str) -> Vec<u8> {
        data_encoding::HEXLOWER.decode(hex.as_bytes()).unwrap()
    }

    #[test]
    fn rfc_8448_section_3_key_and_iv_are_those_of_the_traffic_secret() {
        let secret = "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643";
        let secret = TrafficSecret::new(&octets(secret)).unwrap();
        let (mut key, mut iv) = ([0; 16], [0; 12]);
        secret.expand(Cipher::Aes128Gcm, b"key", &mut key);
        secret.expand(Cipher::Aes128Gcm, b"iv", &mut iv);
        assert_eq!(key, *octets("9f02283b6c9c07efc26bb9f2ac92e356"));
        assert_eq!(iv, *octets("cf782b88dd83549aadf1e984"));
    }

    #[test]
    fn both_secrets_are_taken_once() {
        let listener = Listener {
            user: None,
            remembers: true,
        };
        assert!(listener.will_log(CLIENT_LABEL) && !listener.will_log("EXPORTER_SECRET"));
        listener.log(CLIENT_LABEL, &[0; 32], &[1; 32]);
        assert!(HandshakeSecrets::take().is_none());
        listener.log(SERVER_LABEL, &[0; 32], &[2; 48]);
        assert!(HandshakeSecrets::take().unwrap().remembers);
        assert!(HandshakeSecrets::take().is_none());
        assert!(TrafficSecret::new(&[0; 49]).is_none());
    }
}
