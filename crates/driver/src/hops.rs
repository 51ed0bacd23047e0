//! A UDP socket with a hop limit that receives the ICMP errors of hosts that dropped its datagrams.
//!
//! With IP_RECVERR (IPV6_RECVERR) the kernel keeps a socket's ICMP errors in a separate queue, with
//! their sender and the quoted datagram. Unlike a raw socket this needs no privileges, and the
//! kernel has already matched the error to the socket. One socket sends all queries, so that
//! routers with multipath routing keep them on one path.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use proto::Instant;

use crate::clock::Clock;
use crate::control::{self, ControlMessages, extended_error};
use crate::socket::{self, SockAddr};
use crate::{SocketError, SocketOptions, SocketSpec};

/// A connected UDP socket with a limit of hops.
#[derive(Debug)]
pub struct HopSocket {
    fd: OwnedFd,
    is_ipv6: bool,
    clock: Clock,
}

/// What arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A datagram of the peer; its octets are at the start of the buffer.
    Datagram {
        /// How many octets.
        octets: usize,
        /// When it was read.
        at: Instant,
    },
    /// An ICMP error.
    Icmp {
        /// Its sender; none if the kernel does not report it.
        from: Option<IpAddr>,
        /// ICMPv6 rather than ICMP.
        is_v6: bool,
        /// ICMP or ICMPv6 type.
        icmp_type: u8,
        /// Its code.
        code: u8,
        /// Octets of our datagram that it quotes, at the start of the buffer; may be none.
        quoted: usize,
        /// When it was read.
        at: Instant,
    },
}

impl HopSocket {
    /// A socket to `target`, from `local` if given.
    ///
    /// # Errors
    /// There is no route to the target, the local address is not ours, or this host does not allow
    /// reading ICMP errors (the message says which).
    pub fn open(target: SocketAddr, local: Option<SocketAddr>) -> io::Result<Self> {
        let spec = SocketSpec {
            local,
            peer: Some(target),
            ..SocketSpec::default()
        };
        let options = SocketOptions {
            offload: false,
            ..SocketOptions::default()
        };
        let fd = socket::open_udp(&spec, &options)?;
        let is_ipv6 = target.is_ipv6();
        socket::keep_icmp_errors(&fd, is_ipv6).map_err(|error| {
            let what = format!("this host does not let ICMP errors be read: {error}");
            io::Error::new(error.kind(), what)
        })?;
        Ok(HopSocket {
            fd,
            is_ipv6,
            clock: Clock::start(),
        })
    }

    /// Sets the hop limit of datagrams sent from now on.
    ///
    /// # Errors
    /// It is 0.
    pub fn set_hops_max(&self, hops: u8) -> io::Result<()> {
        let (level, option) = match self.is_ipv6 {
            true => (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS),
            false => (libc::IPPROTO_IP, libc::IP_TTL),
        };
        socket::set(&self.fd, level, option, hops.into())
    }

    /// Sends one datagram; returns when.
    ///
    /// # Errors
    /// The kernel refuses it. ICMP errors for earlier datagrams are ignored.
    pub fn send(&self, datagram: &[u8]) -> io::Result<Instant> {
        // A pending error would be reported here instead of the result.
        let _ = socket::take_error(&self.fd);
        let at = self.clock.now();
        // SAFETY: the buffer is valid for its length.
        let sent = unsafe {
            let octets = datagram.as_ptr().cast();
            libc::send(
                self.fd.as_raw_fd(),
                octets,
                datagram.len(),
                libc::MSG_DONTWAIT,
            )
        };
        match sent {
            0.. => Ok(at),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The next datagram or ICMP error, waiting at most until `until`; none if none came.
    ///
    /// # Errors
    /// The socket cannot be read.
    pub fn receive(&self, buffer: &mut [u8], until: Instant) -> io::Result<Option<Arrival>> {
        loop {
            if let Some(error) = self.read_error(buffer)? {
                return Ok(Some(error));
            }
            if let Some(octets) = self.read_datagram(buffer)? {
                let at = self.clock.now();
                return Ok(Some(Arrival::Datagram { octets, at }));
            }
            let now = self.clock.now();
            if now >= until {
                return Ok(None);
            }
            self.wait(until - now);
        }
    }

    /// The clock of its instants.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    fn wait(&self, time: Duration) {
        let mut poll = libc::pollfd {
            fd: self.fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let milliseconds = time.as_millis().clamp(1, 1_000) as libc::c_int;
        // SAFETY: one valid entry. After a failure or a signal the loop checks again.
        unsafe { libc::poll(&mut poll, 1, milliseconds) };
    }

    fn read_datagram(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        // SAFETY: the buffer is valid for its length.
        let count = unsafe {
            let place = buffer.as_mut_ptr().cast();
            libc::recv(self.fd.as_raw_fd(), place, buffer.len(), libc::MSG_DONTWAIT)
        };
        match usize::try_from(count) {
            Ok(octets) => Ok(Some(octets)),
            Err(_) => ignore_icmp(io::Error::last_os_error()),
        }
    }

    /// The next ICMP error; errors from this host are skipped.
    fn read_error(&self, buffer: &mut [u8]) -> io::Result<Option<Arrival>> {
        loop {
            let received = control::receive(&self.fd, buffer, libc::MSG_ERRQUEUE, error_of);
            let (quoted, found) = match received {
                Ok(received) => received,
                Err(error) => return ignore_icmp(error).map(|_: Option<usize>| None),
            };
            let at = self.clock.now();
            if let Some((error, from)) = found {
                let is_v6 = error.ee_origin == libc::SO_EE_ORIGIN_ICMP6;
                if is_v6 || error.ee_origin == libc::SO_EE_ORIGIN_ICMP {
                    return Ok(Some(Arrival::Icmp {
                        from,
                        is_v6,
                        icmp_type: error.ee_type,
                        code: error.ee_code,
                        quoted,
                        at,
                    }));
                }
            }
        }
    }
}

/// Nothing, if the socket was empty, or reported an ICMP error that the queue has with details.
fn ignore_icmp<T>(error: io::Error) -> io::Result<Option<T>> {
    match SocketError::of(&error) {
        SocketError::Refused | SocketError::Unreachable => Ok(None),
        SocketError::Forbidden => Ok(None),
        SocketError::Other(libc::EAGAIN | libc::EINTR | libc::EPROTO) => Ok(None),
        _ => Err(error),
    }
}

/// The error that a message of the queue is about, and who sent it.
fn error_of(
    mut controls: ControlMessages<'_>,
) -> Option<(libc::sock_extended_err, Option<IpAddr>)> {
    let (error, offender) = controls.find_map(extended_error)?;
    let from = SockAddr::from_octets(offender);
    Some((error, from.std_address().map(|address| address.ip())))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    fn soon(socket: &HopSocket) -> Instant {
        socket.now() + Duration::from_secs(60)
    }

    #[test]
    fn a_datagram_of_the_peer_arrives() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = HopSocket::open(peer.local_addr().unwrap(), None).unwrap();
        socket.set_hops_max(1).unwrap();
        socket.send(b"query").unwrap();
        let mut buffer = [0; 64];
        let (octets, from) = peer.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..octets], b"query");
        peer.send_to(b"response", from).unwrap();
        let arrival = socket.receive(&mut buffer, soon(&socket)).unwrap();
        assert!(
            matches!(arrival, Some(Arrival::Datagram { octets: 8, .. })),
            "{arrival:?}"
        );
    }

    #[test]
    fn a_port_where_nobody_listens_is_an_icmp_error_that_quotes_the_datagram() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let closed = UdpSocket::bind(address).unwrap().local_addr().unwrap();
            let socket = HopSocket::open(closed, None).unwrap();
            let mut buffer = [0; 64];
            // Twice: the error that is pending after the first must not stop the second.
            for query in [b"first", b"again"] {
                socket.send(query).unwrap();
                let arrival = socket.receive(&mut buffer, soon(&socket)).unwrap();
                let Some(Arrival::Icmp {
                    from,
                    is_v6,
                    icmp_type,
                    code,
                    quoted,
                    ..
                }) = arrival
                else {
                    panic!("{address}: {arrival:?}");
                };
                assert_eq!(from, Some(closed.ip()));
                let unreachable = if is_v6 { (1, 4) } else { (3, 3) };
                assert_eq!((icmp_type, code), unreachable, "{address}");
                assert_eq!(&buffer[..quoted], query);
            }
        }
    }

    #[test]
    fn silence_ends_at_the_instant_given() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = HopSocket::open(peer.local_addr().unwrap(), None).unwrap();
        let until = socket.now() + Duration::from_millis(5);
        assert_eq!(socket.receive(&mut [0; 64], until).unwrap(), None);
        assert!(socket.now() >= until);
    }
}
