//! SPKI pins: knowing a server by its public key (RFC 7858, section 4.2; RFC 7469, section 2.4).

use super::verifier::{JudgeChain, Presented};
use data_encoding::BASE64;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, OtherError, RootCertStore};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The SHA-256 digest of a SubjectPublicKeyInfo, written in base64.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpkiPin([u8; 32]);

impl SpkiPin {
    /// The pin of a certificate in DER.
    ///
    /// # Errors
    /// It cannot be read (rustls' description).
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Self, String> {
        pin_of(certificate).map_err(|error| error.to_string())
    }
}

fn pin_of(certificate: &CertificateDer<'_>) -> Result<SpkiPin, Error> {
    let parsed = ParsedCertificate::try_from(certificate)?;
    let digest = Sha256::digest(parsed.subject_public_key_info());
    Ok(SpkiPin(digest.into()))
}

impl FromStr for SpkiPin {
    type Err = String;

    /// Reads the 44 characters of a digest in base64.
    fn from_str(text: &str) -> Result<Self, String> {
        let octets = BASE64
            .decode(text.as_bytes())
            .map_err(|_| format!("`{text}` is not base64"))?;
        let digest = <[u8; 32]>::try_from(octets.as_slice());
        digest.map(SpkiPin).map_err(|_| {
            let octets = octets.len();
            format!("`{text}` stands for {octets} bytes, a SHA-256 digest has 32")
        })
    }
}

impl fmt::Display for SpkiPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64.encode(&self.0))
    }
}

impl fmt::Debug for SpkiPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// No pin is that of the server.
#[derive(Debug)]
pub(super) struct PinMismatch {
    server: SpkiPin,
}

impl fmt::Display for PinMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no pin is that of its key, {}", self.server)
    }
}

impl std::error::Error for PinMismatch {}

/// Takes a server whose own key is pinned, or whose certificate is signed by a key that is.
#[derive(Debug)]
pub(super) struct Pinned {
    pub(super) pins: Vec<SpkiPin>,
    /// Has to be content as well, if there is one.
    pub(super) authorities: Option<Arc<dyn JudgeChain>>,
    pub(super) provider: Arc<CryptoProvider>,
}

impl Pinned {
    /// True if `certificate`, which the server sent along with its own, has a pinned key and its
    /// own leads to it. Who only has a copy of a pinned certificate has no chain to it.
    fn vouches(
        &self,
        certificate: &CertificateDer<'_>,
        presented: &Presented<'_>,
        now: UnixTime,
    ) -> bool {
        if !pin_of(certificate).is_ok_and(|pin| self.pins.contains(&pin)) {
            return false;
        }
        let mut anchor = RootCertStore::empty();
        if anchor.add(certificate.clone().into_owned()).is_err() {
            return false;
        }
        WebPkiServerVerifier::builder_with_provider(Arc::new(anchor), self.provider.clone())
            .build()
            .is_ok_and(|verifier| verifier.judge(presented, now).is_ok())
    }
}

impl JudgeChain for Pinned {
    fn judge(&self, presented: &Presented<'_>, now: UnixTime) -> Result<(), Error> {
        if let Some(authorities) = &self.authorities {
            authorities.judge(presented, now)?;
        }
        let server = pin_of(presented.end_entity)?;
        let is_vouched_for = || {
            let mut others = presented.intermediates.iter();
            others.any(|certificate| self.vouches(certificate, presented, now))
        };
        if self.pins.contains(&server) || is_vouched_for() {
            return Ok(());
        }
        let mismatch = OtherError(Arc::new(PinMismatch { server }));
        Err(CertificateError::Other(mismatch).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_32_octets_in_base64() {
        let text = "FHkyLhvI0n70E47cJlRTamTrnYVcsYdjUGbr79CfAVI=";
        assert_eq!(text.parse::<SpkiPin>().unwrap().to_string(), text);
        for malformed in ["", "FHky", "not base64!", &text[..43], &text.repeat(2)] {
            let refused = malformed.parse::<SpkiPin>().unwrap_err();
            assert!(refused.contains(malformed), "{refused}");
        }
    }
}
