//! Free loopback ports, and which ports are listened on or bound.
//!
//! A free port is found by binding and releasing it, so another process can take it before the
//! server does; the caller then tries another one.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};

use anyhow::Context;

/// Candidates tried for one port.
const CANDIDATES_MAX: usize = 100;

/// The sockets that hold one port on some addresses.
struct Held {
    port: u16,
    _udp: Vec<UdpSocket>,
    _tcp: Vec<TcpListener>,
}

/// Chooses `count` different ports that are free for UDP and TCP on every one of `addresses`.
pub(crate) fn free_ports(addresses: &[IpAddr], count: usize) -> anyhow::Result<Vec<u16>> {
    // All are held until the last is found, which makes them different.
    let held: Vec<Held> = (0..count)
        .map(|_| hold_one(addresses))
        .collect::<Result<_, _>>()?;
    Ok(held.iter().map(|held| held.port).collect())
}

fn hold_one(addresses: &[IpAddr]) -> anyhow::Result<Held> {
    for _ in 0..CANDIDATES_MAX {
        if let Some(held) = hold_candidate(addresses)? {
            return Ok(held);
        }
    }
    anyhow::bail!("no port is free for UDP and TCP on {addresses:?}")
}

/// Lets the kernel choose a port on the first address and takes it on the others too.
fn hold_candidate(addresses: &[IpAddr]) -> anyhow::Result<Option<Held>> {
    let mut held = Held {
        port: 0,
        _udp: Vec::new(),
        _tcp: Vec::new(),
    };
    for address in addresses {
        let at = SocketAddr::new(*address, held.port);
        let bound = UdpSocket::bind(at).and_then(|udp| {
            let local = udp.local_addr()?;
            Ok((TcpListener::bind(local)?, udp, local.port()))
        });
        match bound {
            Ok((tcp, udp, port)) => {
                held.port = port;
                held._udp.push(udp);
                held._tcp.push(tcp);
            }
            Err(error) if error.kind() == ErrorKind::AddrInUse => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot bind {at}")),
        }
    }
    Ok(Some(held))
}

/// The listening TCP ports, of both families.
///
/// Reads the kernel's tables instead of connecting, which would count against a limit on the
/// target's TCP clients and change its counters.
pub(crate) fn listening_ports() -> BTreeSet<u16> {
    ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|table| parse_ports(&table, "0A"))
        .collect()
}

/// The bound UDP ports, of both families.
pub(crate) fn bound_udp_ports() -> BTreeSet<u16> {
    ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|table| parse_ports(&table, "07"))
        .collect()
}

/// Local ports of a /proc/net/tcp or /proc/net/udp table in one state, in hexadecimal.
///
/// 0A is LISTEN; 07 is a UDP socket that is not connected.
fn parse_ports(table: &str, state: &str) -> Vec<u16> {
    let port_of = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (_, port) = fields.nth(1)?.rsplit_once(':')?;
        (fields.nth(1)? == state).then(|| u16::from_str_radix(port, 16).ok())?
    };
    table.lines().filter_map(port_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:14EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1
   1: 0100007F:8000 0100007F:14EB 01 00000000:00000000 00:00000000 00000000     0        0 2
   2: 00000000000000000000000001000000:0035 00000000000000000000000000000000:0000 0A 0:0 0 0 0
";

    #[test]
    fn only_sockets_in_listen_state_are_listed_for_both_families() {
        assert_eq!(parse_ports(TABLE, "0A"), [0x14eb, 53]);
    }

    #[test]
    fn a_listener_of_this_process_is_seen() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listening_ports().contains(&port));
    }

    #[test]
    fn a_bound_udp_socket_is_seen() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        assert!(bound_udp_ports().contains(&port));
    }

    #[test]
    fn ports_chosen_together_are_different_and_free() {
        let addresses = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
        let ports = free_ports(&addresses, 8).unwrap();
        assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), 8);
    }
}
