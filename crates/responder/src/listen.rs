//! Opening the sockets of a worker.

use std::io;
use std::net::SocketAddr;

use driver::{Close, Driver, SocketId, SocketSpec};
use proto::Transport;

/// Attempts to find a port that is free for both UDP and TCP.
const ATTEMPTS_MAX: usize = 16;

/// A socket that was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listening {
    pub(crate) transport: Transport,
    pub(crate) socket: SocketId,
    pub(crate) address: SocketAddr,
}

/// Opens one socket for each entry of `listen`, or none.
///
/// An entry for TCP with port 0 takes the port that UDP got on the same address.
///
/// # Errors
/// The system's error, with transport and address in its message.
pub(crate) fn open<D: Driver>(
    driver: &mut D,
    listen: &[(Transport, SocketAddr)],
    shared_port: bool,
) -> io::Result<Vec<Listening>> {
    let mut attempt = 1;
    loop {
        let mut opened = Vec::with_capacity(listen.len());
        match open_each(driver, listen, shared_port, &mut opened) {
            Ok(()) => return Ok(opened),
            Err(failure) => {
                for listening in opened {
                    driver.close(listening.socket, Close::Graceful);
                }
                if !failure.port_was_borrowed || attempt == ATTEMPTS_MAX {
                    return Err(failure.error);
                }
                attempt += 1;
            }
        }
    }
}

struct Failure {
    error: io::Error,
    /// The port was free for UDP and not for TCP: others may be free for both.
    port_was_borrowed: bool,
}

fn open_each<D: Driver>(
    driver: &mut D,
    listen: &[(Transport, SocketAddr)],
    shared_port: bool,
    opened: &mut Vec<Listening>,
) -> Result<(), Failure> {
    for &(transport, wanted) in listen {
        let port = borrowed_port(transport, wanted, opened);
        let local = SocketAddr::new(wanted.ip(), port.unwrap_or(wanted.port()));
        let spec = SocketSpec {
            local: Some(local),
            peer: None,
            shared_port,
            fast_open: true,
        };
        let failure = |error: io::Error| Failure {
            port_was_borrowed: port.is_some() && error.kind() == io::ErrorKind::AddrInUse,
            error: io::Error::new(
                error.kind(),
                format!("cannot listen for {transport} on {local}: {error}"),
            ),
        };
        let socket = match transport {
            Transport::Udp | Transport::Doh3 | Transport::Doq => driver.open_udp(&spec),
            Transport::Tcp | Transport::Dot | Transport::Doh2 => driver.listen_tcp(&spec),
        };
        let socket = socket.map_err(failure)?;
        let address = driver.local_addr(socket).map_err(failure)?;
        opened.push(Listening {
            transport,
            socket,
            address,
        });
    }
    Ok(())
}

fn borrowed_port(transport: Transport, wanted: SocketAddr, opened: &[Listening]) -> Option<u16> {
    if transport != Transport::Tcp || wanted.port() != 0 {
        return None;
    }
    let taken = |port: u16| {
        let same =
            |other: &&Listening| other.transport != Transport::Udp && other.address.port() == port;
        opened
            .iter()
            .any(|other| same(&other) && other.address.ip() == wanted.ip())
    };
    opened
        .iter()
        .filter(|other| other.transport == Transport::Udp && other.address.ip() == wanted.ip())
        .map(|other| other.address.port())
        .find(|port| !taken(*port))
}
