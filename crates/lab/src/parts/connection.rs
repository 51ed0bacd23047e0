//! A connection between the lead and an agent that dials it: TCP with TLS 1.3. Reading and writing
//! are for two threads, neither of which waits for the other.

use std::fmt;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::net::sockopt;
use rustls::{ClientConnection, ServerConnection};

use super::keys::{self, KeyFiles};

/// How long the other side may take for its part of a handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// A side that acknowledges nothing for so long has gone: its node was lost, or a wire.
const SILENCE_MAX: Duration = Duration::from_secs(30);
const PROBE_AFTER: Duration = Duration::from_secs(10);
const PROBE_EVERY: Duration = Duration::from_secs(5);
/// As much as is read at once: a record of TLS and its header.
const OCTETS_READ: usize = 17 << 10;

/// What both halves share.
struct Session {
    tls: Mutex<rustls::Connection>,
    /// Held from when a record is made until it is written, so that records stay in order. The
    /// session is not: whoever reads is never kept by a peer that does not read.
    sending: Mutex<TcpStream>,
}

/// The connection as a whole.
#[derive(Debug)]
pub struct Connection {
    socket: TcpStream,
}

/// The half that is read.
pub struct FromAgent {
    session: Arc<Session>,
    socket: TcpStream,
    /// Octets from the network that the session has not taken yet.
    rest: Vec<u8>,
}

/// The half that is written.
pub struct ToAgent {
    session: Arc<Session>,
}

/// The halves of a connection, and the whole.
pub struct Ways {
    /// What the other side says.
    pub from: FromAgent,
    /// What it is told.
    pub to: ToAgent,
    /// To end it by.
    pub connection: Connection,
}

impl fmt::Debug for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.connection.fmt(f)
    }
}

impl Connection {
    /// Ends it, whoever waits for something.
    pub(super) fn cut(&self) {
        // One that has ended cannot be shut down.
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// True if the other side has not closed it. Looks only at what has come.
    pub(super) fn is_open(&self) -> bool {
        if self.socket.set_nonblocking(true).is_err() {
            return false;
        }
        let seen = self.socket.peek(&mut [0]);
        let blocks_again = self.socket.set_nonblocking(false).is_ok();
        let is_open = match seen {
            Ok(octets) => octets > 0,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        };
        is_open && blocks_again
    }

    /// Waits no longer than that for anything to be read; without a time, for ever.
    pub(super) fn wait_at_most(&self, time: Option<Duration>) -> Result<()> {
        self.socket.set_read_timeout(time)
    }
}

/// Takes in somebody who has dialled.
///
/// # Errors
/// It is no agent of this fleet.
pub(super) fn accept(socket: TcpStream, config: &Arc<rustls::ServerConfig>) -> Result<Ways> {
    let tls = ServerConnection::new(Arc::clone(config)).map_err(Error::other)?;
    shake_hands(socket, tls.into())
}

/// Dials the lead at one of its addresses.
///
/// # Errors
/// [`ErrorKind::InvalidData`] if whoever answers is not this fleet's lead, or does not know this
/// agent; others may be over in a moment.
pub(super) fn dial(socket: TcpStream, files: &KeyFiles) -> Result<Ways> {
    let config = keys::of_agent(files)
        .map_err(|error| Error::new(ErrorKind::InvalidData, format!("{error:#}")))?;
    let tls = ClientConnection::new(config, keys::lead_name()).map_err(Error::other)?;
    shake_hands(socket, tls.into())
}

fn shake_hands(mut socket: TcpStream, mut tls: rustls::Connection) -> Result<Ways> {
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(HANDSHAKE_MAX))?;
    socket.set_write_timeout(Some(SILENCE_MAX))?;
    sockopt::set_socket_keepalive(&socket, true)?;
    sockopt::set_tcp_keepidle(&socket, PROBE_AFTER)?;
    sockopt::set_tcp_keepintvl(&socket, PROBE_EVERY)?;
    sockopt::set_tcp_keepcnt(&socket, 4)?;
    let user_timeout = u32::try_from(SILENCE_MAX.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(&socket, user_timeout)?;
    while tls.is_handshaking() {
        tls.complete_io(&mut socket)?;
    }
    while tls.wants_write() {
        tls.write_tls(&mut socket)?;
    }
    socket.set_read_timeout(None)?;
    let session = Arc::new(Session {
        tls: Mutex::new(tls),
        sending: Mutex::new(socket.try_clone()?),
    });
    Ok(Ways {
        from: FromAgent {
            session: Arc::clone(&session),
            socket: socket.try_clone()?,
            rest: Vec::new(),
        },
        to: ToAgent { session },
        connection: Connection { socket },
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// Encrypts and writes.
    fn send(&self, octets: &[u8]) -> Result<()> {
        let mut socket = lock(&self.sending);
        let mut records = Vec::new();
        let mut left = octets;
        loop {
            {
                let mut tls = lock(&self.tls);
                let taken = tls.writer().write(left)?;
                left = &left[taken..];
                while tls.wants_write() {
                    tls.write_tls(&mut records)?;
                }
            }
            socket.write_all(&records)?;
            records.clear();
            if left.is_empty() {
                return Ok(());
            }
        }
    }
}

impl Read for FromAgent {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        loop {
            {
                let mut tls = lock(&self.session.tls);
                match tls.reader().read(into) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    other => return other,
                }
                if !self.rest.is_empty() {
                    let taken = tls.read_tls(&mut self.rest.as_slice())?;
                    self.rest.drain(..taken);
                    // What does not decrypt is nothing that the other side has said: the path has
                    // broken it.
                    tls.process_new_packets()
                        .map_err(|error| Error::new(ErrorKind::ConnectionAborted, error))?;
                    continue;
                }
            }
            let mut octets = vec![0; OCTETS_READ];
            let read = self.socket.read(&mut octets)?;
            if read == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.rest.extend_from_slice(&octets[..read]);
        }
    }
}

impl Write for ToAgent {
    fn write(&mut self, octets: &[u8]) -> Result<usize> {
        self.session.send(octets)?;
        Ok(octets.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
