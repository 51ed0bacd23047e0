//! Cipher suites and key exchange groups by their names in the IANA registries (RFC 8446, appendix
//! B.4; RFC 8447).

use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::{cipher_suite, kx_group};
use rustls::{NamedGroup, SupportedCipherSuite};
use std::fmt;
use std::str::FromStr;

/// A cipher suite that this program can negotiate.
#[derive(Clone, Copy, PartialEq)]
pub struct CipherSuite(SupportedCipherSuite);

impl Eq for CipherSuite {}

impl CipherSuite {
    /// All there are, in the order in which they are offered: TLS 1.3's first, and AES-128 before
    /// AES-256, as browsers do; every TLS 1.3 server has to have it (RFC 8446, section 9.1), and
    /// SHA-256 is the cheaper hash.
    pub fn all() -> [CipherSuite; 9] {
        [
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
            cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
            cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
            cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ]
        .map(CipherSuite)
    }

    /// The name in the registry, such as `TLS_AES_128_GCM_SHA256`.
    pub fn name(self) -> &'static str {
        suite_name(self.0.suite())
    }

    /// True for TLS 1.3 (RFC 8446), false for TLS 1.2: no suite serves both.
    pub fn is_tls13(self) -> bool {
        self.0.tls13().is_some()
    }

    pub(super) fn supported(self) -> SupportedCipherSuite {
        self.0
    }
}

impl fmt::Debug for CipherSuite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for CipherSuite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CipherSuite {
    type Err = UnknownName;

    /// Reads a name of the registry, in either case.
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let known = CipherSuite::all().map(CipherSuite::name);
        let at = position("cipher suite", text, &known)?;
        Ok(CipherSuite::all()[at])
    }
}

/// rustls puts the version into the names of TLS 1.3; the registry does not.
pub(super) fn suite_name(suite: rustls::CipherSuite) -> &'static str {
    match suite {
        rustls::CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        rustls::CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        suite => suite.as_str().unwrap_or("unknown"),
    }
}

/// A key exchange group that this program can negotiate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// x25519 (RFC 7748).
    X25519,
    /// secp256r1, also P-256.
    Secp256r1,
    /// secp384r1, also P-384.
    Secp384r1,
    /// X25519MLKEM768, hybrid with a post-quantum part (draft-ietf-tls-ecdhe-mlkem). TLS 1.3 only.
    X25519MlKem768,
    /// SecP256r1MLKEM768, hybrid. TLS 1.3 only.
    Secp256r1MlKem768,
    /// MLKEM768 alone. TLS 1.3 only.
    MlKem768,
    /// MLKEM1024 alone. TLS 1.3 only.
    MlKem1024,
}

impl Group {
    /// All there are.
    pub const ALL: [Group; 7] = [
        Group::X25519,
        Group::Secp256r1,
        Group::Secp384r1,
        Group::X25519MlKem768,
        Group::Secp256r1MlKem768,
        Group::MlKem768,
        Group::MlKem1024,
    ];

    /// What is offered unless told otherwise, preferred first. A key share is sent for the first
    /// alone; the hybrid group is last because its share adds 1,184 octets to the first flight.
    pub const DEFAULT: [Group; 4] = [
        Group::X25519,
        Group::Secp256r1,
        Group::Secp384r1,
        Group::X25519MlKem768,
    ];

    /// The name in the registry, such as `x25519` or `X25519MLKEM768`.
    pub const fn name(self) -> &'static str {
        match self {
            Group::X25519 => "x25519",
            Group::Secp256r1 => "secp256r1",
            Group::Secp384r1 => "secp384r1",
            Group::X25519MlKem768 => "X25519MLKEM768",
            Group::Secp256r1MlKem768 => "SecP256r1MLKEM768",
            Group::MlKem768 => "MLKEM768",
            Group::MlKem1024 => "MLKEM1024",
        }
    }

    /// True if TLS 1.2 can use it, too.
    pub const fn is_for_tls12(self) -> bool {
        matches!(self, Group::X25519 | Group::Secp256r1 | Group::Secp384r1)
    }

    pub(super) fn supported(self) -> &'static dyn SupportedKxGroup {
        match self {
            Group::X25519 => kx_group::X25519,
            Group::Secp256r1 => kx_group::SECP256R1,
            Group::Secp384r1 => kx_group::SECP384R1,
            Group::X25519MlKem768 => kx_group::X25519MLKEM768,
            Group::Secp256r1MlKem768 => kx_group::SECP256R1MLKEM768,
            Group::MlKem768 => kx_group::MLKEM768,
            Group::MlKem1024 => kx_group::MLKEM1024,
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Group {
    type Err = UnknownName;

    /// Reads a name of the registry, in either case.
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let at = position("group", text, &Group::ALL.map(Group::name))?;
        Ok(Group::ALL[at])
    }
}

/// The registry's name of a group that was negotiated.
pub(super) fn group_name(group: NamedGroup) -> &'static str {
    Group::ALL
        .into_iter()
        .find(|known| known.supported().name() == group)
        .map_or("unknown", Group::name)
}

/// A name that stands for nothing this program has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// The name, and of what: ``unknown cipher suite `RC4` ``.
    pub what: String,
    /// The names there are: `known are x25519, ...`.
    pub known: String,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.known)
    }
}

impl std::error::Error for UnknownName {}

fn position(kind: &str, text: &str, known: &[&str]) -> Result<usize, UnknownName> {
    let found = known
        .iter()
        .position(|name| name.eq_ignore_ascii_case(text));
    found.ok_or_else(|| UnknownName {
        what: format!("unknown {kind} `{text}`"),
        known: format!("known are {}", known.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_registries_and_read_back_in_either_case() {
        for suite in CipherSuite::all() {
            assert!(suite.name().starts_with("TLS_"), "{suite}");
            assert!(!suite.name().contains("TLS13"), "{suite}");
            assert_eq!(suite.name().to_lowercase().parse(), Ok(suite));
        }
        for group in Group::ALL {
            assert_eq!(group.name().to_uppercase().parse(), Ok(group));
            assert_eq!(group_name(group.supported().name()), group.name());
        }
    }

    #[test]
    fn unknown_names_are_refused_with_those_there_are() {
        let refused = "RC4-MD5".parse::<CipherSuite>().unwrap_err();
        assert_eq!(refused.what, "unknown cipher suite `RC4-MD5`");
        assert!(refused.known.contains("TLS_CHACHA20_POLY1305_SHA256"));
        let refused = "P-256".parse::<Group>().unwrap_err();
        assert!(refused.known.contains("secp256r1"), "{refused}");
    }

    #[test]
    fn groups_know_whether_tls12_can_use_them() {
        for group in Group::ALL {
            let usable = group
                .supported()
                .usable_for_version(rustls::ProtocolVersion::TLSv1_2);
            assert_eq!(group.is_for_tls12(), usable, "{group}");
        }
    }
}
