//! Local addresses for the clients, given one by one or as prefixes.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::plan_error::PlanError;

/// The most addresses that a run uses.
pub const ADDRESSES_MAX: usize = 65_536;

const SETTING: &str = "local-address";

/// Expands `values`, addresses and prefixes such as `127.0.0.0/24`, in the order given.
///
/// The network and broadcast addresses of an IPv4 prefix shorter than /31 are left out
/// (RFC 3021 gives /31 no such addresses). Every other address of a prefix is used.
///
/// # Errors
/// A value is neither address nor prefix, a prefix has bits set beyond its length, an address
/// comes twice, or there are more than [`ADDRESSES_MAX`].
pub fn expand_local_addresses<S: AsRef<str>>(values: &[S]) -> Result<Vec<IpAddr>, PlanError> {
    let mut addresses = Vec::new();
    let mut seen = HashSet::new();
    for value in values {
        let value = value.as_ref();
        let room = ADDRESSES_MAX - addresses.len();
        for address in expand(value, room)? {
            if !seen.insert(address) {
                let what = format!("{address} of `{value}` was given before");
                return Err(error(what, "give every address once"));
            }
            addresses.push(address);
        }
    }
    Ok(addresses)
}

fn error(what: impl Into<String>, hint: impl Into<String>) -> PlanError {
    PlanError::new(SETTING, what, hint)
}

/// The addresses of one value; an error if they are more than `room`.
fn expand(value: &str, room: usize) -> Result<Vec<IpAddr>, PlanError> {
    let junk = || {
        error(
            format!("`{value}` is neither an IP address nor a prefix"),
            "write an address such as 127.0.0.2, or a prefix such as 127.0.0.0/24 or fd00::/120",
        )
    };
    let (address, bits) = match value.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (value, None),
    };
    let address: IpAddr = address.parse().map_err(|_| junk())?;
    let bits_all: u32 = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        None => bits_all,
        Some(bits) => decimal(bits)
            .filter(|bits| *bits <= bits_all)
            .ok_or_else(junk)?,
    };
    let number = match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    };
    let host_bits = bits_all - bits;
    // At /0 of IPv6 the shift would be by the whole width.
    let hosts_last = 1u128
        .checked_shl(host_bits)
        .map_or(u128::MAX, |size| size - 1);
    if number & hosts_last != 0 {
        let network = to_address(address, number & !hosts_last);
        let what = format!("`{value}` has bits set beyond its prefix length");
        return Err(error(what, format!("write {address} or {network}/{bits}")));
    }
    let cut = u128::from(address.is_ipv4() && host_bits >= 2);
    let (first, last) = (cut, hosts_last - cut);
    if last - first >= room as u128 {
        let what = format!("with `{value}` there are more than {ADDRESSES_MAX} addresses");
        return Err(error(what, "use longer prefixes"));
    }
    let addresses = (first..=last).map(|host| to_address(address, number + host));
    Ok(addresses.collect())
}

fn decimal(text: &str) -> Option<u32> {
    let is_decimal = text.bytes().all(|octet| octet.is_ascii_digit());
    is_decimal.then(|| text.parse().ok()).flatten()
}

/// `number` as an address of the family of `like`.
fn to_address(like: IpAddr, number: u128) -> IpAddr {
    match like {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(number as u32)),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: &[&str]) -> Vec<String> {
        let addresses = expand_local_addresses(values).unwrap();
        addresses.iter().map(IpAddr::to_string).collect()
    }

    fn fault(values: &[&str]) -> String {
        expand_local_addresses(values).unwrap_err().to_string()
    }

    #[test]
    fn addresses_and_prefixes_expand_in_the_order_given() {
        assert_eq!(texts(&["127.0.0.9", "::1"]), ["127.0.0.9", "::1"]);
        assert_eq!(
            texts(&["127.0.1.0/30", "127.0.0.1"]),
            ["127.0.1.1", "127.0.1.2", "127.0.0.1"]
        );
        assert_eq!(texts(&["127.0.1.0/31"]), ["127.0.1.0", "127.0.1.1"]);
        assert_eq!(texts(&["127.0.1.7/32"]), ["127.0.1.7"]);
        assert_eq!(
            texts(&["fd00::/127", "fd00::9/128"]),
            ["fd00::", "fd00::1", "fd00::9"]
        );
        let many = texts(&["127.0.0.0/24"]);
        assert_eq!(
            (many.len(), &*many[0], &*many[253]),
            (254, "127.0.0.1", "127.0.0.254")
        );
        assert!(expand_local_addresses::<&str>(&[]).unwrap().is_empty());
    }

    #[test]
    fn the_list_is_bounded() {
        assert_eq!(texts(&["fd00::/112"]).len(), ADDRESSES_MAX);
        for values in [
            &["fd00::/111"][..],
            &["::/0"],
            &["0.0.0.0/0"],
            &["fd00::/112", "::1"],
        ] {
            assert!(
                fault(values).contains("more than 65536 addresses"),
                "{values:?}"
            );
        }
    }

    #[test]
    fn junk_is_refused_with_its_text() {
        let junk = [
            "",
            "/",
            "localhost",
            "127.0.0.1/33",
            "127.0.0.0/",
            "::/129",
            "1.2.3.4/+8",
        ];
        for value in junk {
            let error = expand_local_addresses(&[value]).unwrap_err();
            let expected =
                format!("local-address: `{value}` is neither an IP address nor a prefix");
            assert_eq!(error.to_string(), expected);
        }
        let error = expand_local_addresses(&["127.0.0.5/24"]).unwrap_err();
        assert_eq!(error.hint, "write 127.0.0.5 or 127.0.0.0/24");
        assert!(fault(&["127.0.0.1", "127.0.0.0/29"]).contains("127.0.0.1 of `127.0.0.0/29`"));
    }
}
