//! A connection over TCP with TLS 1.3, in halves for two threads, neither of which waits for the
//! other.

use std::fmt;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use proto::tls::rustls::{
    self, ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection,
};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv, sockopt};

use super::keys;

/// How long a handshake may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// How long one that was refused may take to say something more.
const LINGER_MAX: Duration = Duration::from_secs(1);
/// A peer that acknowledges nothing for that long has gone: its host was lost, or the path to it.
const SILENCE_MAX: Duration = Duration::from_secs(30);
const PROBE_AFTER: Duration = Duration::from_secs(10);
const PROBE_EVERY: Duration = Duration::from_secs(5);
/// As much as is read at once: some records.
const OCTETS_READ: usize = 64 << 10;

/// What both halves share.
struct Session {
    tls: Mutex<Connection>,
    /// Held from when a record is made until it is written, so that records stay in order. The
    /// session is not: the reader never waits for a peer that does not read.
    sending: Mutex<TcpStream>,
}

/// The half that is read.
pub(super) struct Reading {
    session: Arc<Session>,
    socket: TcpStream,
    /// What has come and the session has not taken yet.
    rest: Vec<u8>,
}

/// The half that is written; its end is the end of what this side says.
pub(super) struct Writing {
    session: Arc<Session>,
}

/// A connection.
pub(super) struct Secured {
    pub(super) reading: Reading,
    pub(super) writing: Writing,
    /// To end it by.
    pub(super) socket: TcpStream,
}

impl fmt::Debug for Secured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.socket.fmt(f)
    }
}

impl Secured {
    /// True if the peer has neither closed it nor said anything that was not read yet.
    pub(super) fn is_quiet(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let seen = recv(&self.socket, &mut [0_u8; 1], flags);
        seen.is_err_and(|error| error == Errno::AGAIN)
    }
}

/// Answers a client, which has to be an agent of this lead.
///
/// # Errors
/// It is none.
pub(super) fn accept(socket: TcpStream, config: &Arc<ServerConfig>) -> Result<Secured> {
    let tls = ServerConnection::new(Arc::clone(config)).map_err(Error::other)?;
    shake_hands(socket, tls.into())
}

/// Begins a connection with the lead.
///
/// # Errors
/// [`ErrorKind::InvalidData`] if the server is not this agent's lead.
pub(super) fn dial(socket: TcpStream, config: &Arc<ClientConfig>) -> Result<Secured> {
    let tls = ClientConnection::new(Arc::clone(config), keys::lead_name());
    shake_hands(socket, tls.map_err(Error::other)?.into())
}

fn shake_hands(mut socket: TcpStream, mut tls: Connection) -> Result<Secured> {
    prepare(&socket)?;
    let until = Instant::now() + HANDSHAKE_MAX;
    while tls.is_handshaking() {
        while tls.wants_write() {
            tls.write_tls(&mut socket)?;
        }
        if !tls.is_handshaking() {
            break;
        }
        // A peer that sends an octet now and then does not get more time by that.
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        if tls.read_tls(&mut socket)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if let Err(error) = tls.process_new_packets() {
            let _ = tls.write_tls(&mut socket);
            linger(&mut socket);
            return Err(Error::new(ErrorKind::InvalidData, error));
        }
    }
    while tls.wants_write() {
        tls.write_tls(&mut socket)?;
    }
    socket.set_read_timeout(None)?;
    let session = Arc::new(Session {
        tls: Mutex::new(tls),
        sending: Mutex::new(socket.try_clone()?),
    });
    Ok(Secured {
        reading: Reading {
            session: Arc::clone(&session),
            socket: socket.try_clone()?,
            rest: Vec::new(),
        },
        writing: Writing { session },
        socket,
    })
}

/// Lets the peer read why it was refused (an alert): a socket that is closed with unread octets
/// resets its connection, and what was on its way is lost.
fn linger(socket: &mut TcpStream) {
    let ended = socket.shutdown(Shutdown::Write);
    let ended = ended.and_then(|()| socket.set_read_timeout(Some(LINGER_MAX)));
    let mut read = 0;
    let mut octets = [0; 4 << 10];
    while ended.is_ok() && read < OCTETS_READ {
        match socket.read(&mut octets) {
            Ok(0) | Err(_) => return,
            Ok(more) => read += more,
        }
    }
}

/// A path that is gone is noticed, whether something is being sent or not.
fn prepare(socket: &TcpStream) -> Result<()> {
    socket.set_nodelay(true)?;
    socket.set_write_timeout(Some(SILENCE_MAX))?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, PROBE_AFTER)?;
    sockopt::set_tcp_keepintvl(socket, PROBE_EVERY)?;
    sockopt::set_tcp_keepcnt(socket, 4)?;
    let user_timeout = u32::try_from(SILENCE_MAX.as_millis()).unwrap_or(u32::MAX);
    Ok(sockopt::set_tcp_user_timeout(socket, user_timeout)?)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// Encrypts and writes.
    fn send(&self, octets: &[u8]) -> Result<()> {
        let mut socket = lock(&self.sending);
        let mut left = octets;
        loop {
            let mut records = Vec::new();
            {
                let mut tls = lock(&self.tls);
                let taken = tls.writer().write(left)?;
                left = &left[taken..];
                while tls.wants_write() {
                    tls.write_tls(&mut records)?;
                }
            }
            socket.write_all(&records)?;
            if left.is_empty() {
                return Ok(());
            }
        }
    }
}

impl Read for Reading {
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
                    tls.process_new_packets().map_err(broken)?;
                    continue;
                }
            }
            let mut octets = vec![0; OCTETS_READ];
            let read = self.socket.read(&mut octets)?;
            if read == 0 {
                return Ok(0);
            }
            self.rest.extend_from_slice(&octets[..read]);
        }
    }
}

/// The peer, or the path, has ended the session.
fn broken(error: rustls::Error) -> Error {
    Error::new(ErrorKind::InvalidData, error)
}

impl Write for Writing {
    fn write(&mut self, octets: &[u8]) -> Result<usize> {
        self.session.send(octets)?;
        Ok(octets.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        lock(&self.session.tls).send_close_notify();
        // A connection that has ended cannot be ended once more.
        let _ = self.session.send(&[]);
        let _ = lock(&self.session.sending).shutdown(Shutdown::Write);
    }
}
