//! Ports of this host at which a test receives queries, or at which no process listens.

#![allow(clippy::new_without_default, reason = "binding a port is no default")]

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketType};

/// A UDP socket of the test that keeps what is sent to it and never answers.
pub struct Listener(UdpSocket);

impl Listener {
    /// Listens at a free port of loopback.
    pub fn new() -> Listener {
        Listener(UdpSocket::bind("127.0.0.1:0").unwrap())
    }

    /// Where it listens, for `--server`.
    pub fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// The queries that wait in the socket. What looks whether anybody listens is empty.
    pub fn received(&self) -> Vec<(SocketAddr, Vec<u8>)> {
        self.0.set_nonblocking(true).unwrap();
        let mut queries = Vec::new();
        let mut octets = [0; 4096];
        while let Ok((count, source)) = self.0.recv_from(&mut octets) {
            if count > 0 {
                queries.push((source, octets[..count].to_vec()));
            }
        }
        queries
    }
}

/// A UDP port without a listener, held so that no other process gets it: its socket is connected to
/// itself, and the kernel refuses datagrams to a connected socket that are not from its peer.
pub struct ClosedUdpPort(UdpSocket);

impl ClosedUdpPort {
    /// Holds a free port of loopback.
    pub fn new() -> ClosedUdpPort {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        ClosedUdpPort(socket)
    }

    /// The port, with the address of loopback.
    pub fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }
}

/// A TCP port at which no process listens, held so that no other process gets it: bound, and never
/// listened at, so that the kernel refuses connections.
pub struct ClosedTcpPort {
    _socket: OwnedFd,
    address: SocketAddr,
}

impl ClosedTcpPort {
    /// Holds a free port of loopback.
    pub fn new() -> ClosedTcpPort {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&socket, &any).unwrap();
        let address = rustix::net::getsockname(&socket).unwrap();
        ClosedTcpPort {
            address: address.try_into().unwrap(),
            _socket: socket,
        }
    }

    /// The port, with the address of loopback.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
