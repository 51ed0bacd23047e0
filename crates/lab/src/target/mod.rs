//! Real servers under test, on free loopback ports.
//!
//! BIND, Unbound, Knot DNS and CoreDNS answer one zone themselves; dnsdist and HAProxy stand in
//! front of a BIND that does. [`Product`] starts any of them with everything it offers; the
//! `Options` types of the first three set limits, keys and cores as well.
//!
//! Each target runs in the foreground as a child process in a folder of its own, serves one zone
//! and is ready when `start` returns. Dropping it kills and reaps the process and removes the
//! folder; the kernel kills it if the thread that started it dies first. Nothing outside the
//! folder is written and the servers listen on loopback only.
//!
//! Does not install servers: `./test` installs packages of Debian 12, and `servers/prepare` builds
//! CoreDNS and unpacks newer programs ([`prepared`]).

mod bind;
mod bind_counters;
mod certificate;
mod coredns;
mod folder;
mod knot;
mod namespace;
mod ports;
pub mod prepared;
mod process;
mod product;
mod proxy;
mod ready;
mod running;
mod service;
mod start;
mod unbound;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use bind::{BindOptions, BindTarget};
pub use bind_counters::BindCounters;
pub use certificate::TLS_NAME;
pub use knot::{KnotOptions, KnotTarget};
pub use namespace::Namespace;
pub use product::Product;
pub use running::RunningServer;
pub use service::{DOH_PATH, Endpoints, Service};
pub use unbound::{UnboundOptions, UnboundTarget};

/// A zone to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The apex in presentation format with the final dot, `example.test.`.
    pub origin: String,
    /// The zone in master file format (RFC 1035, section 5); must hold an SOA RR at the apex.
    pub text: String,
}

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

/// The address families a target listens on, always on loopback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Families {
    /// 127.0.0.1 alone.
    #[default]
    V4,
    /// ::1 alone.
    V6,
    /// Both, with the same port numbers.
    Both,
}

impl Families {
    fn addresses(self) -> Vec<IpAddr> {
        let v4 = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let v6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
        match self {
            Families::V4 => vec![v4],
            Families::V6 => vec![v6],
            Families::Both => vec![v4, v6],
        }
    }
}
