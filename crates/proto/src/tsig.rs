//! Transaction signatures (RFC 8945): signing queries with a shared secret.
//!
//! Signs only; the MACs of responses are not checked, since a load generator trusts its target
//! no more or less for them. The time comes from the caller.

use crate::name;
use crate::rr::{CLASS_ANY, TYPE_TSIG};
use data_encoding::BASE64;
use hmac::{Hmac, KeyInit, Mac};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

mod key_file;

/// Seconds that the clocks of client and server may differ (RFC 8945, section 10).
const FUDGE_SECONDS: u16 = 300;

/// Octets of TYPE, CLASS, TTL and RDLENGTH.
const RECORD_FIXED_OCTETS: usize = 10;

/// Octets of the RDATA beside algorithm name and MAC: Time Signed, Fudge, MAC Size, Original ID,
/// Error and Other Len.
const RDATA_FIXED_OCTETS: usize = 16;

/// Octets of the longest MAC, that of HMAC-SHA512.
const MAC_OCTETS_MAX: usize = 64;

/// A MAC algorithm by its RFC 8945 name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// `hmac-md5.sig-alg.reg.int`, accepted because dnsperf does.
    HmacMd5,
    /// `hmac-sha1`.
    HmacSha1,
    /// `hmac-sha224`.
    HmacSha224,
    /// `hmac-sha256`, the default.
    HmacSha256,
    /// `hmac-sha384`.
    HmacSha384,
    /// `hmac-sha512`.
    HmacSha512,
}

impl Algorithm {
    /// All algorithms, from the oldest to the strongest.
    pub const ALL: [Algorithm; 6] = [
        Algorithm::HmacMd5,
        Algorithm::HmacSha1,
        Algorithm::HmacSha224,
        Algorithm::HmacSha256,
        Algorithm::HmacSha384,
        Algorithm::HmacSha512,
    ];

    /// The name as it is typed: `hmac-sha256` and the like, `hmac-md5` for short.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::HmacMd5 => "hmac-md5",
            Algorithm::HmacSha1 => "hmac-sha1",
            Algorithm::HmacSha224 => "hmac-sha224",
            Algorithm::HmacSha256 => "hmac-sha256",
            Algorithm::HmacSha384 => "hmac-sha384",
            Algorithm::HmacSha512 => "hmac-sha512",
        }
    }

    /// The name in wire format (RFC 8945, section 6).
    const fn wire_name(self) -> &'static [u8] {
        match self {
            Algorithm::HmacMd5 => b"\x08hmac-md5\x07sig-alg\x03reg\x03int\0",
            Algorithm::HmacSha1 => b"\x09hmac-sha1\0",
            Algorithm::HmacSha224 => b"\x0bhmac-sha224\0",
            Algorithm::HmacSha256 => b"\x0bhmac-sha256\0",
            Algorithm::HmacSha384 => b"\x0bhmac-sha384\0",
            Algorithm::HmacSha512 => b"\x0bhmac-sha512\0",
        }
    }

    /// Octets of the MAC, which is never truncated.
    const fn mac_octets(self) -> u16 {
        match self {
            Algorithm::HmacMd5 => 16,
            Algorithm::HmacSha1 => 20,
            Algorithm::HmacSha224 => 28,
            Algorithm::HmacSha256 => 32,
            Algorithm::HmacSha384 => 48,
            Algorithm::HmacSha512 => 64,
        }
    }

    /// The MAC over all `parts` in a row, at the start of the octets returned.
    fn mac(self, secret: &[u8], parts: &[&[u8]]) -> [u8; MAC_OCTETS_MAX] {
        match self {
            Algorithm::HmacMd5 => mac_of::<Hmac<md5::Md5>>(secret, parts),
            Algorithm::HmacSha1 => mac_of::<Hmac<sha1::Sha1>>(secret, parts),
            Algorithm::HmacSha224 => mac_of::<Hmac<sha2::Sha224>>(secret, parts),
            Algorithm::HmacSha256 => mac_of::<Hmac<sha2::Sha256>>(secret, parts),
            Algorithm::HmacSha384 => mac_of::<Hmac<sha2::Sha384>>(secret, parts),
            Algorithm::HmacSha512 => mac_of::<Hmac<sha2::Sha512>>(secret, parts),
        }
    }
}

impl FromStr for Algorithm {
    type Err = String;

    /// Reads a name in upper or lower case; `hmac-md5.sig-alg.reg.int` is `hmac-md5`.
    fn from_str(text: &str) -> Result<Self, String> {
        let without_dot = text.strip_suffix('.').unwrap_or(text);
        if without_dot.eq_ignore_ascii_case("hmac-md5.sig-alg.reg.int") {
            return Ok(Algorithm::HmacMd5);
        }
        Algorithm::ALL
            .into_iter()
            .find(|algorithm| algorithm.name().eq_ignore_ascii_case(without_dot))
            .ok_or_else(|| {
                let known = Algorithm::ALL.map(Algorithm::name).join(", ");
                format!("unknown TSIG algorithm `{text}`: expected one of {known}")
            })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn mac_of<M: Mac + KeyInit>(secret: &[u8], parts: &[&[u8]]) -> [u8; MAC_OCTETS_MAX] {
    let mut mac = <M as KeyInit>::new_from_slice(secret).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    let mac = mac.finalize().into_bytes();
    let mut octets = [0; MAC_OCTETS_MAX];
    octets[..mac.len()].copy_from_slice(&mac);
    octets
}

/// A TSIG key: algorithm, name and secret.
#[derive(Clone)]
pub struct Key {
    /// The MAC algorithm.
    pub algorithm: Algorithm,
    /// The key's name in wire format, lower case.
    pub name: Vec<u8>,
    /// The shared secret.
    pub secret: Vec<u8>,
}

impl fmt::Debug for Key {
    /// Never prints the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = name::to_text(&self.name).unwrap_or_default();
        write!(f, "Key({:?}, {name})", self.algorithm)
    }
}

impl FromStr for Key {
    type Err = String;

    /// Reads `[ALG:]NAME:SECRET` with the secret in base64, as dnsperf's `-y` does.
    ///
    /// Without `ALG` it is `hmac-sha256`, unlike there: see [`Key::parse`].
    fn from_str(text: &str) -> Result<Self, String> {
        Key::parse(text, Algorithm::HmacSha256)
    }
}

impl Key {
    /// Reads `[ALG:]NAME:SECRET`; `default_algorithm` is used if there is no `ALG`.
    ///
    /// dnsperf itself defaults to [`Algorithm::HmacMd5`].
    ///
    /// # Errors
    /// What is wrong with which part, never with the secret in it.
    pub fn parse(text: &str, default_algorithm: Algorithm) -> Result<Self, String> {
        let mut parts = text.splitn(3, ':');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(name), Some(secret), None) => Key::new(default_algorithm, name, secret),
            (Some(algorithm), Some(name), Some(secret)) => {
                // Parts in another order would have the secret where the algorithm belongs.
                let algorithm = algorithm.parse().map_err(|_| {
                    let known = Algorithm::ALL.map(Algorithm::name).join(", ");
                    format!("unknown TSIG algorithm: expected one of {known} first")
                })?;
                Key::new(algorithm, name, secret)
            }
            _ => Err("expected a TSIG key as [ALG:]NAME:SECRET".to_owned()),
        }
    }

    /// Reads the first `key "NAME" { algorithm ALG; secret "SECRET"; };` of a BIND configuration
    /// file, as `tsig-keygen` prints it. Comments and other statements are skipped.
    ///
    /// # Errors
    /// What is missing or malformed, never with the secret in it.
    pub fn from_key_file(text: &str) -> Result<Self, String> {
        key_file::parse(text)
    }

    /// A key from a name in presentation format and a secret in base64.
    fn new(algorithm: Algorithm, name: &str, secret: &str) -> Result<Self, String> {
        let mut wire_name = Vec::new();
        name::parse(name, &mut wire_name)
            .map_err(|error| format!("malformed TSIG key name: {error}"))?;
        // Length octets are below 64 and so no letters.
        wire_name.make_ascii_lowercase();
        let secret = BASE64
            .decode(secret.as_bytes())
            .map_err(|error| format!("the TSIG secret is not base64: {error}"))?;
        if secret.is_empty() {
            return Err("the TSIG secret is empty".to_owned());
        }
        Ok(Key {
            algorithm,
            name: wire_name,
            secret,
        })
    }

    /// The octets that [`Key::sign`] appends to any message.
    pub fn record_octets(&self) -> usize {
        self.name.len() + RECORD_FIXED_OCTETS + usize::from(self.rdata_octets())
    }

    /// Appends a TSIG record to the message that starts at `start` in `message`.
    ///
    /// The ID must be final. `unix_time` is the time since 1970; fudge is 300 s. The caller sees
    /// to it that the message has room for [`Key::record_octets`] more. Allocates only if
    /// `message` has to grow.
    ///
    /// # Panics
    /// If there is no whole header at `start`: a programmer error.
    pub fn sign(&self, message: &mut Vec<u8>, start: usize, unix_time: Duration) {
        let unsigned_end = message.len();
        assert!(
            unsigned_end >= start + 12,
            "a message starts with a header of twelve bytes"
        );
        let time_and_fudge = time_and_fudge(unix_time);
        message.reserve(self.record_octets());
        self.append_record_head(message);
        message.extend_from_slice(&time_and_fudge);
        message.extend_from_slice(&self.algorithm.mac_octets().to_be_bytes());
        self.append_mac_of(start..unsigned_end, &time_and_fudge, message);
        message.extend_from_within(start..start + 2);
        message.extend_from_slice(&[0, 0, 0, 0]);
        let additionals = u16::from_be_bytes([message[start + 10], message[start + 11]]);
        let additionals = additionals.wrapping_add(1).to_be_bytes();
        message[start + 10..start + 12].copy_from_slice(&additionals);
    }

    /// Appends the record from its owner name to the algorithm name (RFC 8945, section 4.2).
    fn append_record_head(&self, message: &mut Vec<u8>) {
        message.extend_from_slice(&self.name);
        message.extend_from_slice(&TYPE_TSIG.to_be_bytes());
        message.extend_from_slice(&CLASS_ANY.to_be_bytes());
        message.extend_from_slice(&0_u32.to_be_bytes());
        message.extend_from_slice(&self.rdata_octets().to_be_bytes());
        message.extend_from_slice(self.algorithm.wire_name());
    }

    /// Appends the MAC over the unsigned message and the TSIG variables (RFC 8945, section 4.3).
    fn append_mac_of(
        &self,
        unsigned: std::ops::Range<usize>,
        time_and_fudge: &[u8; 8],
        message: &mut Vec<u8>,
    ) {
        const CLASS_ANY_TTL_0: [u8; 6] = [0, 255, 0, 0, 0, 0];
        const NO_ERROR_NO_OTHER_DATA: [u8; 4] = [0; 4];
        let parts: [&[u8]; 6] = [
            &message[unsigned],
            &self.name,
            &CLASS_ANY_TTL_0,
            self.algorithm.wire_name(),
            time_and_fudge,
            &NO_ERROR_NO_OTHER_DATA,
        ];
        let mac = self.algorithm.mac(&self.secret, &parts);
        message.extend_from_slice(&mac[..usize::from(self.algorithm.mac_octets())]);
    }

    fn rdata_octets(&self) -> u16 {
        let fixed_octets = self.algorithm.wire_name().len() + RDATA_FIXED_OCTETS;
        fixed_octets as u16 + self.algorithm.mac_octets()
    }
}

/// Time Signed, 48 bits, and Fudge.
fn time_and_fudge(unix_time: Duration) -> [u8; 8] {
    (unix_time.as_secs() << 16 | u64::from(FUDGE_SECONDS)).to_be_bytes()
}

#[cfg(test)]
mod tests;
