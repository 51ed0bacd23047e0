//! Real servers under test, on free loopback ports.
//!
//! BIND, Unbound, Knot DNS, NSD and CoreDNS answer one zone themselves; dnsdist and HAProxy stand
//! in front of a BIND that does. A [`Product`] is a file in [`products`], and a line of the list
//! there; a [`Cell`] is one with its factors set. The `Options` types of the first three set keys
//! as well.
//!
//! Each target runs in the foreground as a child process in a folder of its own, serves one zone
//! and is ready when `start` returns. Dropping it kills and reaps the process and removes the
//! folder; the kernel kills it if the thread that started it dies first. Nothing outside the
//! folder is written and the servers listen on loopback only.
//!
//! Does not install servers: `./test` installs packages of Debian 12, and `servers/prepare` builds
//! CoreDNS and unpacks newer programs ([`prepared`]).

mod cell;
mod certificate;
mod folder;
mod namespace;
mod ports;
pub mod prepared;
mod process;
mod product;
pub mod products;
mod ready;
mod running;
mod service;
mod start;

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use cell::{Cell, Factor, Values};
pub use certificate::TLS_NAME;
pub use namespace::Namespace;
pub use product::Product;
pub use products::{
    BindCounters, BindOptions, BindTarget, KnotOptions, KnotTarget, UnboundOptions, UnboundTarget,
};
pub use running::RunningServer;
pub use service::{DOH_PATH, Endpoints, Service};

/// A zone to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The apex in presentation format with the final dot, `example.test.`.
    pub origin: String,
    /// The zone in master file format (RFC 1035, section 5); must hold an SOA RR at the apex.
    pub text: String,
}

impl Zone {
    /// `lab.test.` with so many names, `test-record-1` and so on, each with one A RR of that TTL.
    pub fn with_records(records: u32, ttl_s: u32) -> Zone {
        let mut text = format!(
            "$ORIGIN lab.test.\n$TTL {ttl_s}\n@ IN SOA ns hostmaster 1 3600 600 86400 1\n\
             @ IN NS ns\nns IN A 127.0.0.1\n"
        );
        for number in 1..=records {
            let last = (number - 1) % 254 + 1;
            // Writing to a String does not fail.
            let _ = writeln!(text, "test-record-{number} IN A 192.0.2.{last}");
        }
        Zone {
            origin: "lab.test.".to_owned(),
            text,
        }
    }
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
