//! Finding processes: by number, by name, by the port that they serve.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use super::name::program_name;
use super::sockets::{from_files, inodes_of};
use super::{Root, Stat};

/// Processes that are observed as one, at most.
const PROCESSES_MAX: usize = 64;
/// Files of a process that are looked through for sockets, at most.
pub(super) const FILES_MAX: usize = 65_536;

/// The program that opens sockets for servers before it starts them.
const SOCKET_ACTIVATOR: &str = "systemd";

/// Which processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// That one.
    Number(u32),
    /// All of that name: their program's, or the kernel's.
    Name(String),
    /// All that serve a port of this host, over UDP or TCP; on that address, where it is given.
    Port(Option<IpAddr>, u16),
}

impl Target {
    /// Reads `1234`, `named`, `:53` or `127.0.0.1:53`.
    pub(crate) fn parse(text: &str) -> Result<Target, String> {
        if let Ok(number) = text.parse() {
            return Ok(Target::Number(number));
        }
        if let Some(port) = text.strip_prefix(':') {
            let port = port.parse().map_err(|_| format!("`{text}` has no port"))?;
            return Ok(Target::Port(None, port));
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Target::Port(Some(address.ip()), address.port()));
        }
        match text.is_empty() || text.contains(['/', ':']) {
            true => Err(format!(
                "`{text}` is not a process: expected its number, its name, `:port` or \
                    `address:port`"
            )),
            false => Ok(Target::Name(text.to_owned())),
        }
    }

    /// The processes that there are now, each with its start, which tells it from a later one of
    /// the same number.
    pub(crate) fn processes(&self, root: &Root) -> Vec<(u32, Stat)> {
        let pids = match self {
            Target::Number(pid) => vec![*pid],
            Target::Name(name) => by_name(root, name),
            Target::Port(ip, port) => by_port(root, *ip, *port),
        };
        let known = pids
            .into_iter()
            .filter_map(|pid| Some((pid, stat(root, pid)?)));
        known.take(PROCESSES_MAX).collect()
    }
}

pub(super) fn stat(root: &Root, pid: u32) -> Option<Stat> {
    Stat::parse(&root.text(&format!("proc/{pid}/stat"))?)
}

fn by_name(root: &Root, name: &str) -> Vec<u32> {
    let is_named = |pid: &u32| {
        let known = root.text(&format!("proc/{pid}/comm"));
        // The kernel keeps 15 octets of a name.
        let is_known = known.is_some_and(|known| {
            let known = known.trim_end();
            known == name || (known.len() == 15 && name.starts_with(known))
        });
        is_known || program_name(root, *pid).is_some_and(|program| program == name)
    };
    root.numbers("proc").into_iter().filter(is_named).collect()
}

/// True for what opens sockets for the servers that it starts, and keeps them open.
fn is_activator(root: &Root, pid: u32) -> bool {
    program_name(root, pid).is_some_and(|name| name == SOCKET_ACTIVATOR)
}

/// Processes that have a socket open at the port: of the address, in the network namespace that has
/// it, which is the own one if that has it.
fn by_port(root: &Root, ip: Option<IpAddr>, port: u16) -> Vec<u32> {
    // Packets to an address of this network namespace stay in it, even if a process in another one
    // listens on all addresses.
    let own = ip.filter(|ip| is_of_this_host(*ip));
    let own = own.and_then(|_| root.link("proc/thread-self/ns/net"));
    let mut found: Vec<(usize, u32)> = Vec::new();
    let mut known: Vec<(String, BTreeSet<u64>)> = Vec::new();
    for pid in root.numbers("proc") {
        let Some(namespace) = root.link(&format!("proc/{pid}/ns/net")) else {
            continue;
        };
        if own.as_ref().is_some_and(|own| *own != namespace) {
            continue;
        }
        let at = known.iter().position(|(each, _)| *each == namespace);
        let at = at.unwrap_or_else(|| {
            let is_there = own.is_some() || ip.is_none_or(|ip| has_address(root, pid, ip));
            let sockets = from_files(root, pid).into_iter();
            let serving = sockets.filter(|it| is_there && serves(it.address, ip, port));
            known.push((namespace, serving.map(|it| it.inode).collect()));
            known.len() - 1
        });
        let sockets = &known[at].1;
        if !sockets.is_empty() && !inodes_of(root, pid, FILES_MAX).is_disjoint(sockets) {
            found.push((at, pid));
        }
    }
    // Two networks may have the same address; which of them is meant is unknown.
    let is_one = found.iter().all(|(at, _)| *at == found[0].0);
    let is_known = ip.is_none() || is_one;
    let pids = found.into_iter().filter(|_| is_known);
    let (activators, servers): (Vec<u32>, Vec<u32>) = pids
        .map(|(_, pid)| pid)
        .partition(|pid| is_activator(root, *pid));
    match servers.is_empty() {
        true => activators,
        false => servers,
    }
}

/// True if the network namespace of a process has that address.
fn has_address(root: &Root, pid: u32, ip: IpAddr) -> bool {
    let text = |file: &str| {
        let text = root.text(&format!("proc/{pid}/net/{file}"));
        text.unwrap_or_default()
    };
    match ip {
        IpAddr::V4(v4) => has_local_route(&text("fib_trie"), v4),
        IpAddr::V6(v6) => {
            let octets = v6.octets().map(|octet| format!("{octet:02x}")).concat();
            let routes = text("if_inet6");
            routes.lines().any(|line| line.starts_with(&octets))
        }
    }
}

/// /proc/PID/net/fib_trie: an address on a line, and below it what is there.
fn has_local_route(text: &str, address: Ipv4Addr) -> bool {
    let wanted = format!("|-- {address}");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_own = |pair: &[&str]| pair[0] == wanted && pair[1] == "/32 host LOCAL";
    lines.windows(2).any(is_own)
}

/// True if a socket can be bound there.
pub(crate) fn is_of_this_host(ip: IpAddr) -> bool {
    UdpSocket::bind((ip, 0)).is_ok()
}

/// True if what is sent to address and port comes to a socket that is bound so.
fn serves(bound: SocketAddr, ip: Option<IpAddr>, port: u16) -> bool {
    let takes = |ip: IpAddr| match bound.ip() {
        own if own == ip => true,
        own => own.is_unspecified() && (own.is_ipv6() || ip.is_ipv4()),
    };
    bound.port() == port && ip.is_none_or(takes)
}

/// The profile whose product has a program of that name.
pub(crate) fn product_of(name: &str) -> Option<&'static crate::Profile> {
    let mut profiles = crate::profiles::ALL.iter().copied();
    profiles.find(|profile| profile.programs.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_a_network_that_has_it_and_not_of_one_with_a_route_to_it() {
        let text = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.98.0.2\n        /32 host UNICAST\n\
                    Local:\n     |-- 10.98.0.1\n        /32 host LOCAL\n";
        let has = |address: [u8; 4]| has_local_route(text, address.into());
        assert!(has([10, 98, 0, 1]));
        assert!(!has([10, 98, 0, 2]) && !has([10, 98, 0, 0]));
    }

    #[test]
    fn this_host_has_its_own_addresses() {
        let own = std::process::id();
        for (address, is_there) in [("127.0.0.1", true), ("192.0.2.1", false)] {
            let address = address.parse().unwrap();
            assert_eq!(has_address(&Root::this(), own, address), is_there);
        }
    }
}
