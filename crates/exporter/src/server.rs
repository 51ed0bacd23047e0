//! The sockets, and the thread that answers scrapes.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lab::live::{ListenError, Live, Next, yield_to_workers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::accumulator::{About, Accumulator};
use crate::connection::Connection;
use crate::family::ScrapeCounts;
use crate::format::Format;
use crate::request::REQUEST_BYTES_MAX;
use crate::table;

/// Most scrapes at a time; further ones are answered with 503. A Prometheus has one at a time.
pub const SCRAPES_MAX: usize = 16;
/// Most connections at a time, those that get a 503 included; further ones are closed at once.
pub const CONNECTIONS_MAX: usize = 2 * SCRAPES_MAX;
/// How long the thread does not accept after the system refused it a connection.
const PAUSE: Duration = Duration::from_secs(1);

/// Limits of scrapes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From its connection to the end of its response. Prometheus itself waits for 10 s.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            patience: Duration::from_secs(10),
        }
    }
}

/// Encodes what there is at the moment of a scrape.
type Encode = Box<dyn Fn(Format, ScrapeCounts) -> Vec<u8> + Send>;

/// Answers scrapes until it is dropped.
#[derive(Debug)]
pub struct Exporter {
    address: SocketAddr,
    /// Its end wakes the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Exporter {
    /// Reads everything that is published from now on, and answers scrapes at `address`.
    ///
    /// # Errors
    /// The address cannot be listened on, or the system allows no further thread.
    pub fn start(
        live: &Live,
        address: SocketAddr,
        (about, limits): (About, Limits),
    ) -> Result<Exporter, ListenError> {
        let all = Arc::new(Mutex::new(Accumulator::new(about)));
        let encoded = Arc::clone(&all);
        let encode = move |format, scrapes| lock(&encoded).encode(format, scrapes);
        let exporter = Exporter::serve(address, limits, Box::new(encode))?;
        live.want_groups();
        let mut is_nice = false;
        // It ends with what is published.
        let follower = live.follow(move |next: &Next| {
            if !std::mem::replace(&mut is_nice, true) {
                yield_to_workers();
            }
            lock(&all).read(next);
        });
        follower.map_err(|error| ListenError::new("metrics", address, error))?;
        Ok(exporter)
    }

    /// Answers scrapes at `address` with what a responder has counted by then, by name.
    ///
    /// # Errors
    /// The address cannot be listened on, or the system allows no further thread.
    pub fn start_for_responder(
        address: SocketAddr,
        limits: Limits,
        counted: impl Fn() -> Vec<(&'static str, u64)> + Send + 'static,
    ) -> Result<Exporter, ListenError> {
        let encode = move |format, scrapes| table::encode_responder(counted(), format, scrapes);
        Exporter::serve(address, limits, Box::new(encode))
    }

    fn serve(address: SocketAddr, limits: Limits, encode: Encode) -> Result<Exporter, ListenError> {
        let start = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            let (stop, stopped) = UnixStream::pair()?;
            let server = Server {
                listener,
                stopped,
                encode,
                limits,
                connections: Vec::new(),
                counts: ScrapeCounts::default(),
                paused_until: None,
            };
            let thread = thread::Builder::new()
                .name("metrics".to_owned())
                .spawn(move || server.serve())?;
            Ok(Exporter {
                address,
                stop: Some(stop),
                thread: Some(thread),
            })
        };
        start().map_err(|error| ListenError::new("metrics", address, error))
    }

    /// Where it listens: with port 0, the port that the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It never waits for a scraper; a panic of it was printed.
            let _ = thread.join();
        }
    }
}

fn lock(all: &Mutex<Accumulator>) -> MutexGuard<'_, Accumulator> {
    // What was added up before a panic is still true.
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Server {
    listener: TcpListener,
    stopped: UnixStream,
    encode: Encode,
    limits: Limits,
    connections: Vec<(TcpStream, Connection)>,
    counts: ScrapeCounts,
    /// The system has refused a connection: no further one is accepted before.
    paused_until: Option<Instant>,
}

impl Server {
    fn serve(mut self) {
        yield_to_workers();
        while let Some(ready) = self.wait() {
            let now = Instant::now();
            self.paused_until = self.paused_until.filter(|until| *until > now);
            let mut at = 0;
            self.connections.retain_mut(|(stream, connection)| {
                let is_ready = ready.get(at).copied().unwrap_or(false);
                at += 1;
                let goes_on =
                    !is_ready || advance(stream, connection, &self.encode, &mut self.counts);
                if goes_on && connection.until <= now {
                    self.counts.timed_out += 1;
                    return false;
                }
                goes_on
            });
            if self.paused_until.is_none() {
                self.accept(now);
            }
        }
    }

    /// Waits until something can be done; which connections are ready, none if it is to end.
    fn wait(&self) -> Option<Vec<bool>> {
        let mut watched = vec![PollFd::from_borrowed_fd(
            self.stopped.as_fd(),
            PollFlags::IN,
        )];
        for (stream, connection) in &self.connections {
            let events = match connection.room() {
                0 => PollFlags::OUT,
                _ => PollFlags::IN,
            };
            watched.push(PollFd::from_borrowed_fd(stream.as_fd(), events));
        }
        if self.paused_until.is_none() {
            let listener = self.listener.as_fd();
            watched.push(PollFd::from_borrowed_fd(listener, PollFlags::IN));
        }
        let ends = self.connections.iter().map(|(_, it)| it.until);
        let next = ends.chain(self.paused_until).min();
        let timeout = next.map(|next| {
            let left = next.saturating_duration_since(Instant::now());
            // Rounded up, so that it does not wake before.
            Timespec::try_from(left + Duration::from_millis(1)).expect("limits are short")
        });
        // Interrupted by a signal: nothing is ready.
        let _ = poll(&mut watched, timeout.as_ref());
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let (stopped, rest) = watched.split_first().expect("the first is always there");
        (!is_ready(stopped)).then(|| rest.iter().map(is_ready).collect())
    }

    fn accept(&mut self, now: Instant) {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                    ) =>
                {
                    continue;
                }
                // No file descriptor is left, say: poll would return at once.
                Err(_) => {
                    self.paused_until = Some(now + PAUSE);
                    return;
                }
            };
            let open = self.connections.len();
            let is_refused = open >= SCRAPES_MAX;
            self.counts.refused += u64::from(is_refused);
            if open < CONNECTIONS_MAX && stream.set_nonblocking(true).is_ok() {
                let connection = Connection::new(now, self.limits.patience, is_refused);
                self.connections.push((stream, connection));
            }
        }
    }
}

/// Reads and writes what can be; false if the connection is over.
fn advance(
    stream: &mut TcpStream,
    connection: &mut Connection,
    encode: &Encode,
    counts: &mut ScrapeCounts,
) -> bool {
    let mut buffer = [0; REQUEST_BYTES_MAX];
    loop {
        let room = connection.room();
        let moved = match room {
            0 => stream.write(connection.outgoing()),
            _ => stream.read(&mut buffer[..room]),
        };
        match moved {
            Ok(0) => return false,
            Ok(sent) if room == 0 => connection.advance(sent),
            Ok(received) => {
                let scrapes = *counts;
                let encode = |format| encode(format, scrapes);
                let is_scrape = connection.receive(&buffer[..received], encode);
                counts.served += u64::from(is_scrape);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
        if connection.is_done() {
            // Sent whole; its end must not be a reset.
            let _ = stream.shutdown(Shutdown::Write);
            return false;
        }
    }
}
