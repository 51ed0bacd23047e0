//! Sockets that wait for queries, as the kernel's socket diagnostics list them (NETLINK_SOCK_DIAG).
//!
//! The files in /proc/net hold every connection of a network namespace, and the kernel looks
//! through a table of hundreds of thousands of places to print `tcp` and again for `tcp6`. Here it
//! is asked for sockets of one state alone: what a scrape costs does not grow with the connections.
//! It also tells what those files do not: how much room there is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

use super::Root;
use super::sockets::{Listening, SOCKETS_MAX};
use crate::network::Network;

/// How long the kernel may take; it answers within the call that asks.
const TIME_MAX: Duration = Duration::from_millis(500);
/// Octets of one message of the kernel's, at most.
const MESSAGE_OCTETS: usize = 32 << 10;
/// Octets of the header of a netlink message, and of the request behind it.
const HEADER_OCTETS: usize = 16;
const REQUEST_OCTETS: usize = 56;
/// Octets of `struct inet_diag_msg`, which the attributes of a socket follow.
const SOCKET_OCTETS: usize = 72;
/// Types of netlink messages.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// A request for a whole list.
const NLM_F_REQUEST_DUMP: u16 = 0x301;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
const IPPROTO_UDP: u8 = 17;
/// States of sockets: a UDP socket that is not connected is closed.
const TCP_CLOSE: u32 = 7;
const TCP_LISTEN: u32 = 10;
/// The attribute with what the memory of a socket is used for, and two of its numbers.
const INET_DIAG_SKMEMINFO: u16 = 7;
const SK_MEMINFO_RCVBUF: usize = 1;
const SK_MEMINFO_DROPS: usize = 8;

/// Asks the kernel about one network namespace.
pub(super) struct Diagnostics {
    socket: OwnedFd,
}

impl Diagnostics {
    /// For the network namespace of a process of this host; none where the kernel or this user's
    /// rights do not allow it.
    pub(super) fn of(root: &Root, pid: u32) -> Option<Diagnostics> {
        // A folder that stands for a host has no kernel behind it.
        let network = (*root == Root::this()).then(|| Network::of(root, pid))??;
        let socket = network.open(|| Ok(open()?)).ok()?;
        let diagnostics = Diagnostics { socket };
        // One that cannot list them is of no use.
        diagnostics.listening(&[(true, true), (false, true)])?;
        Some(diagnostics)
    }

    /// Sockets that wait for queries, of those kinds: over TCP or not, IPv4 or not. None if the
    /// kernel does not tell.
    pub(super) fn listening(&self, kinds: &[(bool, bool)]) -> Option<Vec<Listening>> {
        let mut found = Vec::new();
        for (sequence, (is_tcp, is_ipv4)) in (1..).zip(kinds.iter().copied()) {
            let request = request(is_tcp, is_ipv4, sequence);
            send(&self.socket, &request, SendFlags::empty()).ok()?;
            self.read(is_tcp, sequence, &mut found)?;
        }
        Some(found)
    }

    /// Reads the list that was asked for until its end.
    fn read(&self, is_tcp: bool, sequence: u32, found: &mut Vec<Listening>) -> Option<()> {
        let mut buffer = vec![0; MESSAGE_OCTETS];
        // Each message has a socket at least, or ends the list.
        for _ in 0..SOCKETS_MAX {
            let octets = match recv(&self.socket, &mut buffer[..], RecvFlags::empty()) {
                Ok((_, octets)) => octets,
                Err(Errno::INTR) => continue,
                Err(_) => return None,
            };
            let mut rest = buffer.get(..octets)?;
            while let Some((kind, of_sequence, body, behind)) = message(rest) {
                rest = behind;
                match kind {
                    _ if of_sequence != sequence => {}
                    NLMSG_DONE => return Some(()),
                    NLMSG_ERROR => return None,
                    SOCK_DIAG_BY_FAMILY if found.len() < SOCKETS_MAX => {
                        found.extend(parse(body, is_tcp));
                    }
                    _ => {}
                }
            }
        }
        None
    }
}

fn open() -> rustix::io::Result<OwnedFd> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    set_socket_timeout(&socket, Timeout::Recv, Some(TIME_MAX))?;
    Ok(socket)
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2`, of the host's order.
fn request(is_tcp: bool, is_ipv4: bool, sequence: u32) -> Vec<u8> {
    let octets = HEADER_OCTETS + REQUEST_OCTETS;
    let mut request = Vec::with_capacity(octets);
    request.extend((octets as u32).to_ne_bytes());
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend(NLM_F_REQUEST_DUMP.to_ne_bytes());
    request.extend(sequence.to_ne_bytes());
    request.extend([0; 4]);
    let family = if is_ipv4 { AF_INET } else { AF_INET6 };
    let (protocol, state) = match is_tcp {
        true => (IPPROTO_TCP, TCP_LISTEN),
        false => (IPPROTO_UDP, TCP_CLOSE),
    };
    request.extend([family, protocol, 1 << (INET_DIAG_SKMEMINFO - 1), 0]);
    request.extend((1_u32 << state).to_ne_bytes());
    // Of any address.
    request.resize(octets, 0);
    request
}

/// The first message: its type, its sequence number, its payload, and the octets behind it.
fn message(octets: &[u8]) -> Option<(u16, u32, &[u8], &[u8])> {
    let length = u32_at(octets, 0)? as usize;
    let kind = u16_at(octets, 4)?;
    let sequence = u32_at(octets, 8)?;
    let body = octets.get(HEADER_OCTETS..length)?;
    let behind = octets.get(length.next_multiple_of(4)..);
    Some((kind, sequence, body, behind.unwrap_or_default()))
}

/// `struct inet_diag_msg` and its attributes; none of what has no address.
fn parse(body: &[u8], is_tcp: bool) -> Option<Listening> {
    let ip = body.get(8..24)?;
    let ip = match *body.first()? {
        AF_INET => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(&ip[..4]).ok()?)),
        AF_INET6 => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(ip).ok()?)),
        _ => return None,
    };
    let port = u16::from_be_bytes([*body.get(4)?, *body.get(5)?]);
    let memory = attribute(body.get(SOCKET_OCTETS..)?, INET_DIAG_SKMEMINFO);
    let memory = |place: usize| u32_at(memory?, 4 * place).map(u64::from);
    Some(Listening {
        is_tcp,
        address: SocketAddr::new(ip, port),
        inode: u32_at(body, 68)?.into(),
        waiting: u32_at(body, 56)?.into(),
        drops: match is_tcp {
            true => 0,
            false => memory(SK_MEMINFO_DROPS).unwrap_or(0),
        },
        room: match is_tcp {
            true => Some(u32_at(body, 60)?.into()),
            false => memory(SK_MEMINFO_RCVBUF),
        },
    })
}

/// What an attribute holds.
fn attribute(mut octets: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16_at(octets, 0)?);
        let value = octets.get(4..length)?;
        if u16_at(octets, 2)? == wanted {
            return Some(value);
        }
        octets = octets.get(length.next_multiple_of(4)..)?;
    }
}

fn u16_at(octets: &[u8], at: usize) -> Option<u16> {
    let value = octets.get(at..at + 2)?;
    Some(u16::from_ne_bytes(value.try_into().ok()?))
}

fn u32_at(octets: &[u8], at: usize) -> Option<u32> {
    let value = octets.get(at..at + 4)?;
    Some(u32::from_ne_bytes(value.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::super::sockets::from_files;
    use super::*;

    #[test]
    fn the_kernel_lists_the_sockets_that_its_files_list_with_their_room() {
        let root = Root::this();
        let pid = std::process::id();
        let Some(diagnostics) = Diagnostics::of(&root, pid) else {
            eprintln!("left out: this kernel has no socket diagnostics");
            return;
        };
        for bound in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(udp) = UdpSocket::bind(bound) else {
                continue;
            };
            let tcp = TcpListener::bind(bound).unwrap();
            let waits = UdpSocket::bind(bound).unwrap();
            waits.send_to(b"waits", udp.local_addr().unwrap()).unwrap();
            let own = [
                (false, udp.local_addr().unwrap()),
                (true, tcp.local_addr().unwrap()),
            ];
            let is_own = |it: &Listening| own.contains(&(it.is_tcp, it.address));
            let is_ipv4 = own[0].1.is_ipv4();
            let listed = diagnostics.listening(&[(false, is_ipv4), (true, is_ipv4)]);
            let mut listed: Vec<Listening> = listed.unwrap();
            listed.retain(is_own);
            assert_eq!(listed.len(), 2, "{listed:#?}");
            assert!(listed[0].waiting > 0 && listed[0].room > Some(0));
            assert!(listed[1].room > Some(0), "{listed:#?}");
            let mut of_files = from_files(&root, pid);
            of_files.retain(is_own);
            for it in &mut listed {
                it.room = None;
            }
            assert_eq!(listed, of_files);
        }
    }

    #[test]
    fn messages_that_end_early_are_not_read() {
        let whole = request(true, true, 1);
        for end in 0..whole.len() {
            assert_eq!(message(&whole[..end]), None);
        }
        let body = [&[AF_INET][..], &[0; 71], &8_u16.to_ne_bytes(), &[7, 0]].concat();
        for end in 0..body.len() {
            let read = parse(&body[..end], false);
            assert!(read.is_none_or(|it| it.room.is_none()), "{end}");
        }
        // An attribute without length would be read for ever.
        assert_eq!(attribute(&[0; 8], 7), None);
    }
}
