//! The servers that are tried, each with everything it offers.

use super::bind::{BindOptions, BindTarget};
use super::knot::{KnotOptions, KnotTarget};
use super::unbound::{UnboundOptions, UnboundTarget};
use super::{RunningServer, Service, Zone, bind, coredns, knot, proxy, unbound};

/// TCP clients where the server's own limit is below what a test needs.
const TCP_CLIENTS: u32 = 100;

/// `knotd` handles one TLS handshake at a time in each TCP worker, and blocks meanwhile; with
/// fewer workers than clients, clients that wait for each other's turn stall.
const KNOT_WORKERS: u32 = 16;

/// A server program that is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// BIND 9.18 of Debian 12.
    Bind,
    /// Unbound of Debian 12, as the authoritative server of a zone.
    Unbound,
    /// Knot DNS 3.4 of Debian 13.
    Knot,
    /// CoreDNS with its `file` plugin.
    CoreDns,
    /// dnsdist 1.7 of Debian 12 in front of BIND.
    Dnsdist,
    /// HAProxy of Debian 12 as TLS proxy in front of BIND's TCP; no UDP.
    Haproxy,
}

impl Product {
    /// All of them.
    pub const ALL: [Product; 6] = [
        Product::Bind,
        Product::Unbound,
        Product::Knot,
        Product::CoreDns,
        Product::Dnsdist,
        Product::Haproxy,
    ];

    /// What it offers beside TCP and, HAProxy excepted, UDP.
    pub const fn services(self) -> &'static [Service] {
        match self {
            Product::Bind => bind::SERVER.services,
            Product::Unbound => unbound::SERVER.services,
            Product::Knot => knot::SERVER.services,
            Product::CoreDns => coredns::SERVER.services,
            Product::Dnsdist => proxy::DNSDIST.services,
            Product::Haproxy => proxy::HAPROXY.services,
        }
    }

    /// Starts it with all its services on 127.0.0.1 and waits until it answers for the zone.
    ///
    /// # Errors
    /// It is not installed (the message says how to get it), it does not take its configuration
    /// or the zone (the message has the end of its log), or no free ports were found.
    pub fn start(self, zone: &Zone) -> anyhow::Result<RunningServer> {
        let zone = zone.clone();
        let services = self.services().to_vec();
        let server = match self {
            Product::Bind => {
                let options = BindOptions {
                    services,
                    ..BindOptions::new(zone)
                };
                BindTarget::start(&options)?.server
            }
            Product::Unbound => {
                let options = UnboundOptions {
                    services,
                    tcp_clients_max: Some(TCP_CLIENTS),
                    ..UnboundOptions::new(zone)
                };
                UnboundTarget::start(&options)?.server
            }
            Product::Knot => {
                let options = KnotOptions {
                    services,
                    workers: KNOT_WORKERS,
                    ..KnotOptions::new(zone)
                };
                KnotTarget::start(&options)?.server
            }
            Product::CoreDns => coredns::start(&zone)?,
            Product::Dnsdist => proxy::start_dnsdist(&zone)?,
            Product::Haproxy => proxy::start_haproxy(&zone)?,
        };
        Ok(server)
    }
}
