//! The link-layer address of the next hop to an address.
//!
//! The kernel's routes and neighbours are read once for each pair of addresses. For a neighbour
//! that the kernel does not know yet, an empty datagram is sent through an ordinary socket to the
//! discard port (RFC 863), which makes the kernel resolve it (ARP, or RFC 4861).

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};
use std::time::{Duration, Instant};

use super::frame::Hop;
use super::interface::Interface;
use crate::ethtool::interface_name;
use crate::netlink::{Changes, Mac, Netlink};

/// How long a neighbour is waited for: Linux itself asks three times, a second apart.
const NEIGHBOUR_WAIT: Duration = Duration::from_secs(3);
/// Pairs of addresses whose hop is cached; others are looked up each time.
const KNOWN_MAX: usize = 65_536;

/// The next hops of one interface.
pub(super) struct NextHops {
    netlink: Netlink,
    known: HashMap<(IpAddr, IpAddr), Mac>,
}

impl NextHops {
    pub(super) fn new() -> io::Result<NextHops> {
        Ok(NextHops {
            netlink: Netlink::open()?,
            known: HashMap::new(),
        })
    }

    /// The link from here towards `to`.
    ///
    /// # Errors
    /// The route does not lead over `interface`, or the neighbour does not answer.
    pub(super) fn find(
        &mut self,
        interface: &Interface,
        from: SocketAddr,
        to: SocketAddr,
    ) -> io::Result<Hop> {
        let pair = (from.ip(), to.ip());
        let mac = match self.known.get(&pair) {
            Some(mac) => *mac,
            None => self.ask(interface, pair)?,
        };
        if self.known.len() < KNOWN_MAX {
            self.known.insert(pair, mac);
        }
        Ok(Hop {
            from: interface.mac,
            to: mac,
            vlan: interface.vlan,
        })
    }

    fn ask(&self, interface: &Interface, (from, to): (IpAddr, IpAddr)) -> io::Result<Mac> {
        let route = self.netlink.route(to, from, interface.index)?;
        if route.interface != interface.index {
            let index = route.interface;
            let other = interface_name(index).unwrap_or_else(|_| format!("interface {index}"));
            return Err(io::Error::other(format!(
                "the route from {from} to {to} leads over `{other}`, not over `{}`",
                interface.name
            )));
        }
        let next = route.gateway.unwrap_or(to);
        if let Some(mac) = self.netlink.neighbour(interface.index, next)? {
            return Ok(mac);
        }
        let changes = Changes::of_neighbours()?;
        wake(interface, from, next)?;
        let until = Instant::now() + NEIGHBOUR_WAIT;
        loop {
            changes.wait(until);
            if let Some(mac) = self.netlink.neighbour(interface.index, next)? {
                return Ok(mac);
            }
            if Instant::now() >= until {
                let name = interface.name;
                return Err(io::Error::new(
                    io::ErrorKind::HostUnreachable,
                    format!(
                        "{next} does not answer on `{name}`: the kernel knows no link-layer \
                         address for it (`ip neigh` shows those it knows)"
                    ),
                ));
            }
        }
    }
}

/// Makes the kernel resolve a neighbour.
fn wake(interface: &Interface, from: IpAddr, next: IpAddr) -> io::Result<()> {
    const DISCARD: u16 = 9;
    let to: SocketAddr = match next {
        IpAddr::V4(v4) => (v4, DISCARD).into(),
        IpAddr::V6(v6) => SocketAddrV6::new(v6, DISCARD, 0, interface.index).into(),
    };
    // A gateway may be of the other family than what it forwards.
    let any = |is_ipv4: bool| -> IpAddr {
        match is_ipv4 {
            true => [0, 0, 0, 0].into(),
            false => [0_u16; 8].into(),
        }
    };
    let own = match from.is_ipv4() == next.is_ipv4() {
        true => from,
        false => any(next.is_ipv4()),
    };
    UdpSocket::bind((own, 0))?.send_to(&[], to)?;
    Ok(())
}
