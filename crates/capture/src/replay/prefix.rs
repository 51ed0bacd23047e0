//! Prefixes of addresses (RFC 4632, RFC 4291, section 2.3).

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An address and how many of its bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    bits: u32,
}

impl Prefix {
    /// True if `address` is of the same version and begins with these bits.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (bits, shift) = (|address: IpAddr| bits_of(address), self.free_bits());
        let is_same = |one: u128, other: u128| one.checked_shr(shift) == other.checked_shr(shift);
        self.address.is_ipv4() == address.is_ipv4() && is_same(bits(self.address), bits(address))
    }

    /// Bits that do not count.
    fn free_bits(&self) -> u32 {
        bits_max(self.address) - self.bits
    }
}

fn bits_max(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn bits_of(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl fmt::Display for Prefix {
    /// As it is read: an address alone where all of its bits count.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.free_bits() {
            0 => write!(f, "{}", self.address),
            _ => write!(f, "{}/{}", self.address, self.bits),
        }
    }
}

impl FromStr for Prefix {
    type Err = String;

    /// Reads `192.0.2.0/24`, `2001:db8::/32`, or an address alone.
    fn from_str(text: &str) -> Result<Self, String> {
        let error = || format!("`{text}` is neither an address nor a prefix such as 192.0.2.0/24");
        let (address, bits) = text.split_once('/').unwrap_or((text, ""));
        let address: IpAddr = address.parse().map_err(|_| error())?;
        let bits = match text.contains('/') {
            true => bits.parse().map_err(|_| error())?,
            false => bits_max(address),
        };
        if bits > bits_max(address) {
            return Err(error());
        }
        Ok(Prefix { address, bits })
    }
}
