//! The driver for the kernel's sockets through io_uring: streams by completion, datagrams by
//! readiness.
//!
//! A stream has one multishot receive request, which takes memory from a pool only when data has
//! come. Data to send is copied and submitted together with that of all other streams, in the one
//! call that also waits. So a turn of the worker costs one system call, however many streams it
//! served. Datagram sockets are watched in the same wait, and read and written as by the epoll
//! driver: a batch of datagrams is one system call already, and offload needs its own headers.
//!
//! The ring is registered with its thread, and streams that send often are registered files.
//!
//! `stream` handles results of requests, `sends` outgoing data, `buffers` incoming data, `ring` the
//! queues.

mod buffers;
mod request;
mod ring;
mod sends;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use proto::Instant;

use crate::clock::Clock;
use crate::datagram::Batch;
use crate::socket::{self, SockAddr};
use crate::table::Table;
use crate::tcp_info::TcpInfo;
use crate::{
    Accepted, Close, CpuTime, Driver, DriverStats, Outgoing, Received, SocketError, SocketId,
    SocketOptions, SocketSpec, cpu,
};
use buffers::Buffers;
use request::Request;
use ring::Ring;
pub use ring::Unavailable;
use sends::{NONE, Sends, State};

/// Deliveries between two waits, as in the epoll driver.
const DELIVERIES_MAX: u32 = 256;
/// Waiting streams after which their data is submitted before the end of the turn; this bounds the
/// delay of a query, at about 2 us each.
const DUE_MAX: usize = 64;
/// Connections that are begun before they are handed over.
const CONNECTING_MAX: usize = 64;
/// Writes to a stream before it becomes a registered file: registration does not pay for a stream
/// that ends after a few queries.
const SENDS_UNREGISTERED: u8 = 16;
/// Streams that are registered before they are handed over.
const REGISTERING_MAX: usize = 64;
/// Closed sockets whose descriptors wait for the next call.
const CLOSING_MAX: usize = 64;
/// Pause of a listener that could not accept for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// Rounds in which requests in flight are awaited when the driver ends.
const FAREWELL_ROUNDS_MAX: u32 = 100;

/// Uses the kernel's sockets through io_uring. Belongs to the thread that made it.
pub struct UringDriver {
    ring: Ring,
    buffers: Buffers,
    clock: Clock,
    options: SocketOptions,
    sockets: Table<Socket>,
    sends: Sends,
    /// Events not delivered yet, in order.
    happened: VecDeque<Happened>,
    /// Addresses that queued requests point to; never more than [`CONNECTING_MAX`].
    connecting: Vec<SockAddr>,
    /// Descriptors that queued requests put into the table of registered files; never more than
    /// [`REGISTERING_MAX`].
    registering: Vec<RawFd>,
    /// Descriptors of closed sockets that queued requests still name.
    closing: Vec<OwnedFd>,
    /// Listeners that wait for descriptors.
    starved: Vec<SocketId>,
    /// When they are retried at the latest.
    feed_at: Instant,
    /// Deliveries since the last wait.
    deliveries: u32,
    batch: Batch,
    stats: DriverStats,
}

struct Socket {
    fd: OwnedFd,
    kind: Kind,
    /// The one peer of a socket that we connected.
    peer: Option<SocketAddr>,
    /// SO_RXQ_OVFL as last reported.
    drops: u32,
    /// The slot whose octets are sent first, and the one that follows.
    sending: [u32; 2],
    /// The last write was short.
    blocked: bool,
    reading_paused: bool,
    /// It sends with its SYN, and has not sent yet.
    fast_open: bool,
    /// A multishot request is active: receive, accept or poll.
    is_watched: bool,
    /// Number of writes, until it is a registered file.
    sends: u8,
    is_registered: bool,
    /// FIN follows the octets in the slots.
    finishes: bool,
    /// Deliveries held while reading is paused.
    held: Option<Box<Held>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Datagram,
    Connecting,
    Stream,
    Listener,
}

/// Octets that the kernel had received before it learned that reading is paused, and how the
/// stream ended then.
#[derive(Default)]
struct Held {
    octets: Vec<u8>,
    end: Option<Option<SocketError>>,
}

/// An event.
#[derive(Clone, Copy)]
enum Happened {
    /// A request has a result.
    Completed {
        request: Request,
        result: i32,
        flags: u32,
    },
    /// A datagram socket has, or may have, more to read.
    Readable(SocketId),
    /// A stream or datagram socket takes octets again.
    Writable(SocketId),
    /// Sending failed.
    Broken(SocketId, SocketError),
    /// A stream is read again and has something kept.
    Resumed(SocketId),
}

impl UringDriver {
    /// A driver without sockets, on `clock`'s epoch, for the calling thread.
    ///
    /// # Errors
    /// [`Unavailable`] says why this host does not let it.
    pub fn new(clock: Clock, options: SocketOptions) -> Result<Self, Unavailable> {
        let ring = Ring::new().map_err(|error| Unavailable::of(&error))?;
        let buffers = Buffers::register(&ring).map_err(|error| Unavailable::of(&error))?;
        Ok(UringDriver {
            ring,
            buffers,
            clock,
            options,
            sockets: Table::new(),
            sends: Sends::default(),
            happened: VecDeque::new(),
            connecting: Vec::with_capacity(CONNECTING_MAX),
            registering: Vec::with_capacity(REGISTERING_MAX),
            closing: Vec::new(),
            starved: Vec::new(),
            feed_at: Instant::ZERO,
            deliveries: 0,
            batch: Batch::new(&options),
            stats: DriverStats::default(),
        })
    }

    fn add(&mut self, fd: OwnedFd, kind: Kind, peer: Option<SocketAddr>) -> SocketId {
        self.sockets.insert(Socket {
            fd,
            kind,
            peer,
            drops: 0,
            sending: [NONE; 2],
            blocked: false,
            reading_paused: false,
            fast_open: false,
            is_watched: false,
            sends: 0,
            is_registered: false,
            finishes: false,
            held: None,
        })
    }

    /// Queues the multishot request for a socket's kind.
    fn watch(&mut self, id: SocketId) {
        let Some(open) = self.sockets.get_mut(id) else {
            return;
        };
        if std::mem::replace(&mut open.is_watched, true) {
            return;
        }
        let request = open.kind.standing_request(id);
        let entry = request.standing(open.fd.as_raw_fd());
        // SAFETY: none of the three points to memory; the descriptor is open until submitted.
        unsafe { self.ring.push(&entry) };
    }

    /// Submits all waiting data, and drops descriptors closed before.
    fn flush(&mut self) {
        self.queue_sends();
        self.ring.submit();
        self.forget_submitted();
        self.reap();
    }

    /// Once no request is queued, none names a closed descriptor or points to an address.
    fn forget_submitted(&mut self) {
        if self.ring.queued() == 0 {
            self.closing.clear();
            self.connecting.clear();
            self.registering.clear();
        }
    }

    /// Queues requests for all slots that are due.
    fn queue_sends(&mut self) {
        let mut due = std::mem::take(&mut self.sends.due);
        for number in due.drain(..) {
            let slot = self.sends.get_mut(number);
            if slot.state != State::Idle || slot.octets.len() == slot.sent {
                // It was submitted already, or was given up.
                continue;
            }
            slot.state = State::InFlight;
            let octets = &slot.octets[slot.sent..];
            let entry = Request::Send(number).send(slot.fd, slot.place, octets);
            // SAFETY: the octets of a slot in flight stay where they are until its completion.
            unsafe { self.ring.push(&entry) };
        }
        self.sends.due = due;
    }

    /// Takes results out of the queue: handles sends at once, queues all others for delivery.
    fn reap(&mut self) {
        while let Some(entry) = self.ring.pop() {
            let (result, flags) = (entry.result(), entry.flags());
            match Request::from_user_data(entry.user_data()) {
                Some(Request::Send(slot)) => self.handle_sent(slot, result),
                Some(Request::Sendable(slot)) => self.handle_sendable(slot),
                Some(request) => self.happened.push_back(Happened::Completed {
                    request,
                    result,
                    flags,
                }),
                // A cancellation that came too late.
                None => {}
            }
        }
    }

    /// Waits in the kernel, after handing over what is queued.
    fn enter(&mut self, want: u32, timeout: Duration) {
        self.stats.ring_overflows += u64::from(self.ring.has_overflowed());
        // Requests refused here are retried in the next turn.
        let _ = self.ring.enter(want, Some(timeout));
        self.forget_submitted();
    }

    /// Retries listeners that could not accept.
    fn feed_starved(&mut self) {
        for id in std::mem::take(&mut self.starved) {
            self.watch(id);
        }
    }
}

impl Driver for UringDriver {
    #[inline]
    fn now(&mut self) -> Instant {
        self.clock.now()
    }

    fn unix_time(&self) -> Duration {
        Clock::unix_time()
    }

    fn cpu_time(&self) -> CpuTime {
        CpuTime {
            used: Clock::thread_cpu_time(),
            waited: cpu::run_queue_wait(),
            passed: self.clock.now().duration_since(proto::Instant::ZERO),
        }
    }

    fn open_udp(&mut self, spec: &SocketSpec) -> io::Result<SocketId> {
        let fd = socket::open_udp(spec, &self.options)?;
        let id = self.add(fd, Kind::Datagram, spec.peer);
        self.watch(id);
        Ok(id)
    }

    fn connect_tcp(&mut self, spec: &SocketSpec) -> Result<SocketId, SocketError> {
        // Sockets of the ring block: a request on one that does not would end with EAGAIN.
        let opened = socket::peer_of(spec)
            .and_then(|peer| Ok((socket::open_tcp(spec, &self.options, 0)?, peer)));
        let (fd, peer) = opened.map_err(|error| SocketError::of(&error))?;
        let raw = fd.as_raw_fd();
        let id = self.add(fd, Kind::Connecting, Some(peer));
        if let Some(open) = self.sockets.get_mut(id) {
            open.fast_open = spec.fast_open;
        }
        self.connect(id, raw, SockAddr::from_std(peer));
        Ok(id)
    }

    fn listen_tcp(&mut self, spec: &SocketSpec) -> io::Result<SocketId> {
        let fd = socket::listen_tcp(spec, 0)?;
        let id = self.add(fd, Kind::Listener, None);
        self.watch(id);
        Ok(id)
    }

    fn was_fast_opened(&self, socket: SocketId) -> bool {
        let info = self
            .sockets
            .get(socket)
            .and_then(|open| TcpInfo::read(&open.fd));
        info.is_some_and(|info| info.was_fast_opened())
    }

    fn local_addr(&self, socket: SocketId) -> io::Result<SocketAddr> {
        let closed = || io::Error::from_raw_os_error(libc::EBADF);
        socket::local_addr(&self.sockets.get(socket).ok_or_else(closed)?.fd)
    }

    fn send_datagrams(&mut self, socket: SocketId, outgoing: &Outgoing) -> Accepted {
        let Some(open) = self.sockets.get_mut(socket) else {
            return Accepted {
                accepted: 0,
                error: Some(SocketError::Other(libc::EBADF)),
            };
        };
        let (offload, stats) = (&mut self.options.offload, &mut self.stats);
        let outcome = self.batch.send(&open.fd, outgoing, offload, stats);
        if outcome.error.is_none() && outcome.accepted < outgoing.datagrams.len() {
            open.blocked = true;
            let entry = Request::Writable(socket).when_writable(open.fd.as_raw_fd());
            // SAFETY: the request points to no memory.
            unsafe { self.ring.push(&entry) };
        }
        outcome
    }

    fn send_bytes(&mut self, socket: SocketId, bytes: &[u8]) -> Result<usize, SocketError> {
        let Some(open) = self.sockets.get_mut(socket) else {
            return Err(SocketError::Other(libc::EBADF));
        };
        if open.kind != Kind::Stream {
            open.blocked = true;
            return Ok(0);
        }
        let fd = open.fd.as_raw_fd();
        let place = open.is_registered.then_some(socket.index);
        if open.sending[0] == NONE {
            open.sending[0] = self.sends.take(socket, (fd, place));
            self.sends.due.push(open.sending[0]);
        }
        let mut slot = open.sending[0];
        if self.sends.get_mut(slot).state != State::Idle {
            if open.sending[1] == NONE {
                open.sending[1] = self.sends.take(socket, (fd, place));
            }
            slot = open.sending[1];
        }
        let taken = self.sends.append(slot, bytes);
        open.blocked |= taken < bytes.len();
        open.sends = open.sends.saturating_add(1);
        if open.sends == SENDS_UNREGISTERED {
            self.register(socket);
        }
        if self.sends.due.len() >= DUE_MAX {
            self.stats.stream_calls += 1;
            self.flush();
        }
        Ok(taken)
    }

    fn pause_reading(&mut self, socket: SocketId, paused: bool) {
        let Some(open) = self.sockets.get_mut(socket) else {
            return;
        };
        let was_paused = std::mem::replace(&mut open.reading_paused, paused);
        match (was_paused, paused) {
            (false, true) if open.is_watched => {
                self.cancel(Request::Receive(socket));
            }
            (true, false) => {
                let has_ended = open.held.as_ref().is_some_and(|held| held.end.is_some());
                if open.held.is_some() {
                    self.happened.push_back(Happened::Resumed(socket));
                }
                if !has_ended {
                    self.watch(socket);
                }
            }
            _ => {}
        }
    }

    fn finish_sending(&mut self, socket: SocketId) {
        let Some(open) = self.sockets.get_mut(socket) else {
            return;
        };
        match open.sending[0] {
            NONE => socket::shut_down(&open.fd, libc::SHUT_WR),
            _ => open.finishes = true,
        }
    }

    fn close(&mut self, socket: SocketId, how: Close) {
        self.close_socket(socket, how);
        if self.closing.len() >= CLOSING_MAX {
            self.stats.stream_calls += 1;
            self.flush();
        }
        self.feed_starved();
    }

    fn receive(&mut self, received: &mut Received) -> bool {
        while self.deliveries < DELIVERIES_MAX {
            let Some(happened) = self.happened.pop_front() else {
                break;
            };
            if self.deliver(happened, received) {
                received.at = self.clock.now();
                self.deliveries += 1;
                return true;
            }
        }
        false
    }

    fn wait(&mut self, until: Instant) {
        self.deliveries = 0;
        self.queue_sends();
        self.reap();
        let now = self.clock.now();
        let until = match self.starved.is_empty() {
            true => until,
            false if self.feed_at <= now => {
                self.feed_starved();
                until
            }
            false => until.min(self.feed_at),
        };
        let mut left = Duration::ZERO;
        if self.happened.is_empty() {
            left = Duration::from_nanos(until.nanos_since(now));
        }
        self.stats.waits += 1;
        self.enter(u32::from(!left.is_zero()), left);
        self.reap();
    }

    fn stats(&self) -> DriverStats {
        self.stats
    }
}

impl Drop for UringDriver {
    /// Sends what is due, closes all sockets, and waits a moment for the kernel to be done with
    /// our memory.
    fn drop(&mut self) {
        let open: Vec<SocketId> = self.sockets.ids().collect();
        open.into_iter()
            .for_each(|id| self.close_socket(id, Close::Graceful));
        self.flush();
        let unsent: Vec<u32> = self.sends.in_flight().collect();
        for slot in unsent {
            self.cancel(Request::Send(slot));
        }
        for _ in 0..FAREWELL_ROUNDS_MAX {
            self.flush();
            if self.sends.in_flight().next().is_none() {
                break;
            }
            self.enter(1, Duration::from_millis(1));
        }
        self.sends.abandon();
        // Fails for a ring that never had them, which cannot be.
        let _ = self.buffers.unregister(&self.ring);
    }
}
