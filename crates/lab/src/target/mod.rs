//! Real servers under test, on free ports of loopback or of their own network namespace.
//!
//! BIND, Unbound, Knot DNS, NSD and CoreDNS answer one zone themselves; dnsdist and HAProxy stand
//! in front of a BIND that does. A [`Product`] is a file in [`products`], and a line of the list
//! there; a [`Cell`] is one with its factors set. The `Options` types of the first three also set
//! keys.
//!
//! Each target runs in the foreground as a child process in a folder of its own, serves one zone
//! and is ready when `start` returns. Dropping it kills and reaps the process and removes the
//! folder; the kernel kills it if the thread that started it dies first. Nothing outside the
//! folder is written and the servers listen on loopback only. Root starts them as an unprivileged
//! user ([`Cell::user`]).
//!
//! Does not install servers: `./test` installs packages of Debian 12, and `servers/prepare` builds
//! CoreDNS and unpacks newer programs ([`prepared`]).

mod cache;
mod cell;
mod certificate;
mod change;
mod control;
mod folder;
mod gate;
mod internet;
mod kubelet;
mod name_lock;
mod namespace;
mod network;
mod operation;
mod over_tcp;
mod place;
mod pods;
mod ports;
pub mod prepared;
mod process;
mod process_id;
mod product;
pub mod products;
mod ready;
mod resources;
mod running;
mod running_list;
mod service;
mod signing;
mod start;
mod threads;
mod topology;
mod user;
mod version;

mod zone;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use cache::Cache;
pub use cell::{Cell, Factor, Values};
pub use certificate::TLS_NAME;
pub use change::{Change, Changed};
pub use gate::{Expectation, Signing};
pub use name_lock::NameLock;
pub use namespace::Namespace;
pub use network::Network;
pub use operation::{Done, Operation};
pub use pods::{Pods, check_cluster};
pub use product::Product;
pub use products::{
    BindCounters, BindOptions, BindTarget, KnotOptions, KnotTarget, UnboundOptions, UnboundTarget,
};
pub use resources::Resources;
pub use running::RunningServer;
pub use running_list::{Listed, ProcessId, clear_leftovers, list};
pub use service::{DOH_PATH, Endpoints, Service};
pub use topology::Topology;
pub use zone::{Data, Zone};

/// A shared secret for TSIG (RFC 8945), written into the server's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TsigKey {
    /// The name of the key, a domain name.
    pub name: String,
    /// The algorithm in lower case, `hmac-sha256`.
    pub algorithm: String,
    /// The secret in base64.
    pub secret_base64: String,
}

impl TsigKey {
    /// `ALG:NAME:SECRET`, as programs take it as an argument.
    pub fn argument(&self) -> String {
        format!("{}:{}:{}", self.algorithm, self.name, self.secret_base64)
    }
}

/// The address families a target listens on, on loopback or at its end of a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Families {
    /// IPv4 alone.
    #[default]
    V4,
    /// IPv6 alone.
    V6,
    /// Both, with the same port numbers.
    Both,
}

impl Families {
    fn addresses(self) -> Vec<IpAddr> {
        self.select(Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST)
    }

    /// Those of an address of each family that are of these families.
    fn select(self, v4: Ipv4Addr, v6: Ipv6Addr) -> Vec<IpAddr> {
        match self {
            Families::V4 => vec![v4.into()],
            Families::V6 => vec![v6.into()],
            Families::Both => vec![v4.into(), v6.into()],
        }
    }
}
