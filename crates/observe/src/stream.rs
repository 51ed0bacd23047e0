//! Blocking streams of octets that end at a deadline: TCP, Unix sockets, and TLS above them.
//!
//! Of the tasks of a scrape none takes longer than it may, however slowly the peer dribbles: before
//! each system call the socket's timeout is what is left. rustls is driven by its own blocking
//! stream here, and configured by crate proto.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proto::tls::rustls::pki_types::ServerName;
use proto::tls::rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::gap::Gap;
use crate::network::Network;
use crate::proc::{FoundSocket, Inside, NotOpened};

/// Octets that the path of a socket may have: the 108 of `sun_path` but for the zero at its end
/// (unix(7)).
const SOCKET_PATH_OCTETS_MAX: usize = 107;

/// What one scrape may take and bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long it may take.
    pub time: Duration,
    /// Octets that an answer may have.
    pub octets: u64,
}

impl Default for Limits {
    /// One second, and 4 MiB: the exposition of a server with 10,000 series has less.
    fn default() -> Self {
        Limits {
            time: Duration::from_secs(1),
            octets: 4 << 20,
        }
    }
}

/// A scrape that goes on: what it may still take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    limits: Limits,
    deadline: Instant,
}

impl Allowance {
    pub(crate) fn starting_now(limits: Limits) -> Allowance {
        Allowance {
            limits,
            deadline: Instant::now() + limits.time,
        }
    }

    /// What is left; an error when nothing is.
    pub(crate) fn left(&self) -> Result<Duration, Gap> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(Gap::Slow(self.limits.time)),
            false => Ok(left),
        }
    }

    pub(crate) fn gap(&self, error: &io::Error) -> Gap {
        Gap::of_io(error, self.limits.time)
    }

    /// Reads to the end, but no more than allowed.
    pub(crate) fn read_all(&self, from: impl Read) -> Result<Vec<u8>, Gap> {
        let mut octets = Vec::new();
        let mut limited = from.take(self.limits.octets + 1);
        match limited.read_to_end(&mut octets) {
            _ if octets.len() as u64 > self.limits.octets => Err(Gap::Large(self.limits.octets)),
            Ok(_) => Ok(octets),
            Err(error) => Err(self.gap(&error)),
        }
    }
}

/// Connects to a socket in the file system, however long its path is. Where the server's
/// queue of connections is full, the kernel waits: at most that long.
///
/// # Errors
/// Those of opening its folder and of connecting; `WouldBlock` when the time is over.
pub fn connect_unix(path: &Path, within: Duration) -> io::Result<UnixStream> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return connect_near(path, within);
    };
    if path.as_os_str().len() <= SOCKET_PATH_OCTETS_MAX {
        return connect_near(path, within);
    }
    let folder = File::open(folder)?;
    let near = format!("/proc/self/fd/{}", folder.as_raw_fd());
    connect_near(&Path::new(&near).join(name), within)
}

fn connect_near(path: &Path, within: Duration) -> io::Result<UnixStream> {
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // It is that of connecting, too (unix(7)).
    set_socket_timeout(&socket, Timeout::Send, Some(within))?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

/// A connected socket with a deadline.
#[derive(Debug)]
pub(crate) struct Timed {
    socket: Socket,
    deadline: Instant,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Timed {
    /// Connects to the first of a host's addresses that takes it.
    pub(crate) fn tcp(
        network: &Network,
        (host, port): (&str, u16),
        allowance: &Allowance,
    ) -> Result<Timed, Gap> {
        let mut last = Gap::Gone(format!("`{host}` has no address"));
        for address in addresses(host, port)? {
            match network.connect(&address, allowance.left()?) {
                Ok(socket) => {
                    return Ok(Timed {
                        socket: Socket::Tcp(socket),
                        deadline: allowance.deadline,
                    });
                }
                Err(error) => last = unreachable(&address.to_string(), &error, allowance),
            }
        }
        Err(last)
    }

    /// Connects to a socket in the file system: in that of a process, where it is given.
    pub(crate) fn unix(
        path: &Path,
        inside: Option<&Inside>,
        allowance: &Allowance,
    ) -> Result<Timed, Gap> {
        let found = found_socket(path, inside)?;
        let way = found.as_ref().map(FoundSocket::path);
        let socket = connect_unix(way.as_deref().unwrap_or(path), allowance.left()?)
            .map_err(|error| unreachable(&path.display().to_string(), &error, allowance))?;
        Ok(Timed {
            socket: Socket::Unix(socket),
            deadline: allowance.deadline,
        })
    }

    /// TLS above it.
    pub(crate) fn with_tls(self, config: &Arc<ClientConfig>, host: &str) -> Result<Tls, Gap> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Gap::Gone(format!("`{host}` is not a name that TLS knows")))?;
        let session = ClientConnection::new(config.clone(), name)
            .map_err(|error| Gap::Gone(error.to_string()))?;
        Ok(StreamOwned::new(session, self))
    }

    fn arm(&self) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match &self.socket {
            Socket::Tcp(socket) => {
                socket.set_read_timeout(Some(left))?;
                socket.set_write_timeout(Some(left))
            }
            Socket::Unix(socket) => {
                socket.set_read_timeout(Some(left))?;
                socket.set_write_timeout(Some(left))
            }
        }
    }
}

/// The socket at that path in the file system of a process; none where none is given.
pub(crate) fn found_socket(
    path: &Path,
    inside: Option<&Inside>,
) -> Result<Option<FoundSocket>, Gap> {
    let found = inside.map(|inside| inside.socket(path)).transpose();
    found.map_err(|why| {
        let what = format!("`{}`: {why}", path.display());
        match why {
            NotOpened::Missing => Gap::Gone(what),
            _ => Gap::Refused(what),
        }
    })
}

/// A TLS session above a socket.
pub(crate) type Tls = StreamOwned<ClientConnection, Timed>;

fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, Gap> {
    let found = (host, port).to_socket_addrs();
    let found = found.map_err(|error| Gap::Gone(format!("`{host}` is not found: {error}")))?;
    Ok(found.collect())
}

fn unreachable(place: &str, error: &io::Error, allowance: &Allowance) -> Gap {
    match allowance.gap(error) {
        Gap::Gone(what) => Gap::Gone(format!("no answer from {place}: {what}")),
        gap => gap,
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.arm()?;
        match &mut self.socket {
            Socket::Tcp(socket) => socket.read(buffer),
            Socket::Unix(socket) => socket.read(buffer),
        }
    }
}

impl Write for Timed {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.arm()?;
        match &mut self.socket {
            Socket::Tcp(socket) => socket.write(octets),
            Socket::Unix(socket) => socket.write(octets),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.socket {
            Socket::Tcp(socket) => socket.flush(),
            Socket::Unix(socket) => socket.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{bind, listen};
    use testing::folder::Folder;

    use super::*;

    #[test]
    fn unix_socket_whose_queue_is_full_does_not_hold_who_connects() {
        let folder = Folder::new("observe-unix");
        let path = folder.path("control");
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        let server = socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        bind(&server, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&server, 0).unwrap();
        let connect = || connect_unix(Path::new(&path), Duration::from_millis(50));
        let mut connected = Vec::new();
        let refused = (0..10).find_map(|_| match connect() {
            Ok(socket) => {
                connected.push(socket);
                None
            }
            Err(error) => Some(error),
        });
        assert!(!connected.is_empty());
        assert_eq!(refused.unwrap().kind(), io::ErrorKind::WouldBlock);
    }
}
