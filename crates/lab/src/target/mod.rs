//! Real servers under test: BIND, Unbound and Knot DNS on free loopback ports.
//!
//! Each target runs in the foreground as a child process in a folder of its own, serves one zone
//! and is ready when `start` returns. Dropping it kills and reaps the process and removes the
//! folder; the kernel kills it if the thread that started it dies first. Nothing outside the
//! folder is written and the servers listen on loopback only.
//!
//! Does not install servers: the packages have to be there (`./test` installs them on Debian).

mod bind;
mod certificate;
mod folder;
mod knot;
mod ports;
mod process;
mod ready;
mod running;
mod unbound;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub use bind::{BindCounters, BindOptions, BindTarget};
pub use certificate::TLS_NAME;
pub use knot::{KnotOptions, KnotTarget};
pub use running::RunningServer;
pub use unbound::{UnboundOptions, UnboundTarget};

/// How often a start is repeated when another process took a port first.
const START_ATTEMPTS_MAX: usize = 5;

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

/// Where a target listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    addresses: Vec<IpAddr>,
    do53_port: u16,
    dot_port: Option<u16>,
}

impl Endpoints {
    /// The first address for UDP and TCP (the same port for both); IPv4 when both families are on.
    pub fn do53(&self) -> SocketAddr {
        SocketAddr::new(self.addresses[0], self.do53_port)
    }

    /// All addresses for UDP and TCP, IPv4 first.
    pub fn do53_all(&self) -> Vec<SocketAddr> {
        self.addresses
            .iter()
            .map(|address| SocketAddr::new(*address, self.do53_port))
            .collect()
    }

    /// The first address for DNS over TLS, if the target was started with it.
    pub fn dot(&self) -> Option<SocketAddr> {
        self.dot_port
            .map(|port| SocketAddr::new(self.addresses[0], port))
    }

    fn tcp_ports(&self) -> impl Iterator<Item = u16> {
        std::iter::once(self.do53_port).chain(self.dot_port)
    }
}

/// Why one attempt to start a server failed.
enum StartFailure {
    /// Another process took one of the ports between their choice and their use; try others.
    PortTaken(anyhow::Error),
    /// Trying again would not help.
    Final(anyhow::Error),
}

impl From<anyhow::Error> for StartFailure {
    fn from(error: anyhow::Error) -> Self {
        StartFailure::Final(error)
    }
}

/// Runs `attempt` with fresh free ports until it succeeds, fails for good or the tries are used up.
///
/// `attempt` gets `port_count` different ports, each free on all `addresses` for UDP and TCP.
fn start_on_free_ports<T>(
    addresses: &[IpAddr],
    port_count: usize,
    mut attempt: impl FnMut(&[u16]) -> Result<T, StartFailure>,
) -> anyhow::Result<T> {
    let mut last = anyhow::anyhow!("no attempt was made");
    for _ in 0..START_ATTEMPTS_MAX {
        match attempt(&ports::free_ports(addresses, port_count)?) {
            Ok(target) => return Ok(target),
            Err(StartFailure::Final(error)) => return Err(error),
            Err(StartFailure::PortTaken(error)) => last = error,
        }
    }
    Err(last.context(format!(
        "no start in {START_ATTEMPTS_MAX} attempts with different ports"
    )))
}
