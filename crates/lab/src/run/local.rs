//! Where a target is, and how many workers suit that.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whose network a target address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetScope {
    /// This host.
    Loopback,
    /// Not routed on the public Internet: private, link-local, shared, documentation, benchmarking.
    Private,
    /// Anywhere else.
    Public,
}

/// The scope of a target (RFC 6890 and the registries it started).
pub fn target_scope(address: IpAddr) -> TargetScope {
    match address {
        _ if address.is_loopback() => TargetScope::Loopback,
        IpAddr::V4(v4) => scope_v4(v4),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => target_scope(v4.into()),
            None => scope_v6(v6),
        },
    }
}

fn scope_v4(address: Ipv4Addr) -> TargetScope {
    let [a, b, c, _] = address.octets();
    let shared = a == 100 && b & 0xc0 == 64; // RFC 6598
    let benchmarking = a == 198 && b & 0xfe == 18; // RFC 2544
    let private = address.is_private()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_unspecified()
        || shared
        || benchmarking
        || (a, b, c) == (192, 0, 0);
    if private {
        TargetScope::Private
    } else {
        TargetScope::Public
    }
}

fn scope_v6(address: Ipv6Addr) -> TargetScope {
    let segments = address.segments();
    let documentation = segments[0] == 0x2001 && segments[1] == 0x0db8;
    let benchmarking = segments[0] == 0x2001 && segments[1] == 2 && segments[2] == 0;
    let private = address.is_unique_local()
        || address.is_unicast_link_local()
        || address.is_unspecified()
        || documentation
        || benchmarking;
    if private {
        TargetScope::Private
    } else {
        TargetScope::Public
    }
}

/// Workers for a target: all CPUs but those that a target on this host needs itself.
pub fn default_workers(scope: TargetScope, cpus: usize) -> u32 {
    let workers = match scope {
        TargetScope::Loopback => cpus / 2,
        _ => cpus,
    };
    u32::try_from(workers.max(1)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_routed_addresses_are_public() {
        for (address, scope) in [
            ("127.0.0.1", TargetScope::Loopback),
            ("127.8.9.1", TargetScope::Loopback),
            ("::1", TargetScope::Loopback),
            ("::ffff:127.0.0.1", TargetScope::Loopback),
            ("10.1.2.3", TargetScope::Private),
            ("172.30.0.10", TargetScope::Private),
            ("192.168.1.1", TargetScope::Private),
            ("169.254.25.10", TargetScope::Private),
            ("100.64.0.1", TargetScope::Private),
            ("198.18.0.1", TargetScope::Private),
            ("192.0.2.53", TargetScope::Private),
            ("fd00::53", TargetScope::Private),
            ("fe80::1", TargetScope::Private),
            ("2001:db8::1", TargetScope::Private),
            ("8.8.8.8", TargetScope::Public),
            ("100.128.0.1", TargetScope::Public),
            ("172.32.0.1", TargetScope::Public),
            ("2620:fe::fe", TargetScope::Public),
            ("::ffff:9.9.9.9", TargetScope::Public),
        ] {
            assert_eq!(target_scope(address.parse().unwrap()), scope, "{address}");
        }
    }

    #[test]
    fn a_target_on_this_host_keeps_half_of_the_cpus() {
        assert_eq!(default_workers(TargetScope::Loopback, 2), 1);
        assert_eq!(default_workers(TargetScope::Loopback, 1), 1);
        assert_eq!(default_workers(TargetScope::Private, 4), 4);
    }
}
