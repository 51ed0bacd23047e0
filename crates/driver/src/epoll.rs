//! The driver for the kernel's sockets: epoll, edge-triggered, one system call a batch.
//!
//! Every socket is registered once; readiness is remembered until the socket would block, so no
//! call is spent on re-arming. [`Driver::receive`] serves one socket at a time with the same small
//! set of buffers, which therefore stay in the cache.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use proto::Instant;

use crate::clock::Clock;
use crate::cpu;
use crate::datagram::Batch;
use crate::socket;
use crate::table::Table;
use crate::tcp_info::TcpInfo;
use crate::timestamps::{Numbering, Timestamps};
use crate::{
    Accepted, Close, CpuTime, Driver, DriverStats, Event, Outgoing, Received, SendStamp,
    SocketError, SocketId, SocketOptions, SocketSpec,
};

/// Sockets served after one wait; the rest follows after the next one.
const READY_MAX: usize = 512;
/// Deliveries between two waits. A closed loop on a fast target never runs dry, and timers and
/// intervals need their turn.
const DELIVERIES_MAX: u32 = 256;
/// Octets read from a stream at once.
const STREAM_READ_OCTETS: usize = 256 << 10;

const READABLE: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;
const WRITABLE: u32 = libc::EPOLLOUT as u32;
const BROKEN: u32 = (libc::EPOLLHUP | libc::EPOLLERR) as u32;

/// Uses the kernel's sockets through epoll.
pub struct EpollDriver {
    epoll: OwnedFd,
    clock: Clock,
    options: SocketOptions,
    sockets: Table<Socket>,
    ready: Vec<libc::epoll_event>,
    ready_next: usize,
    /// The socket at `ready_next` has been served and has more.
    partly_served: bool,
    /// Deliveries since the last wait.
    deliveries: u32,
    batch: Batch,
    /// Present if the kernel timestamps datagrams.
    timestamps: Option<Box<Timestamps>>,
    stats: DriverStats,
}

struct Socket {
    fd: OwnedFd,
    kind: Kind,
    /// The one peer of a connected datagram socket.
    peer: Option<SocketAddr>,
    /// SO_RXQ_OVFL as last reported.
    drops: u32,
    /// Of its datagrams, where the kernel stamps them.
    numbering: Numbering,
    /// The last write was short.
    blocked: bool,
    reading_paused: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Datagram,
    Connecting,
    Stream,
    Listener,
}

/// The result of serving one ready socket.
enum Served {
    /// `received` is filled; serve the same socket again.
    More,
    /// `received` is filled and the socket has nothing more.
    Last,
    /// The socket has nothing.
    Nothing,
}

impl EpollDriver {
    /// A driver without sockets, on `clock`'s epoch.
    ///
    /// # Errors
    /// The kernel's, if it has no more descriptors.
    pub fn new(clock: Clock, options: SocketOptions) -> io::Result<Self> {
        // SAFETY: a plain system call.
        let raw = socket::check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: epoll_create1 returned a new descriptor, which nothing else owns.
        let epoll = unsafe { OwnedFd::from_raw_fd(raw) };
        Ok(EpollDriver {
            epoll,
            clock,
            options,
            sockets: Table::new(),
            ready: Vec::with_capacity(READY_MAX),
            ready_next: 0,
            partly_served: false,
            deliveries: 0,
            batch: Batch::new(&options),
            timestamps: (options.timestamps).map(|source| Box::new(Timestamps::new(clock, source))),
            stats: DriverStats::default(),
        })
    }

    /// Makes a wait end when `fd` becomes readable, once each time; nothing is delivered for it.
    pub(crate) fn watch(&self, fd: &OwnedFd) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: (libc::EPOLLIN | libc::EPOLLET) as u32,
            // The place of no socket.
            u64: u64::MAX,
        };
        // SAFETY: both descriptors are open and `event` is valid.
        socket::check(unsafe {
            let (epoll, fd) = (self.epoll.as_raw_fd(), fd.as_raw_fd());
            libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event)
        })
        .map(drop)
    }

    fn add(&mut self, fd: OwnedFd, kind: Kind, peer: Option<SocketAddr>) -> io::Result<SocketId> {
        let id = self.sockets.next_id();
        let interest = match kind {
            // Level-triggered: a listener that ran out of descriptors must be polled again.
            Kind::Listener => libc::EPOLLIN,
            _ => libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET,
        };
        let mut event = libc::epoll_event {
            events: interest as u32,
            u64: u64::from(id.generation) << 32 | u64::from(id.index),
        };
        // SAFETY: both descriptors are open and `event` is valid.
        socket::check(unsafe {
            let (epoll, fd) = (self.epoll.as_raw_fd(), fd.as_raw_fd());
            libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event)
        })?;
        Ok(self.sockets.insert(Socket {
            fd,
            kind,
            peer,
            drops: 0,
            numbering: Numbering::default(),
            blocked: false,
            reading_paused: false,
        }))
    }

    /// Serves the socket of the ready event at `self.ready_next`.
    fn serve(&mut self, id: SocketId, flags: &mut u32, received: &mut Received) -> Served {
        let Some(kind) = self.sockets.get(id).map(|socket| socket.kind) else {
            return Served::Nothing;
        };
        received.socket = id;
        received.datagrams.clear();
        received.stream_octets = 0;
        match kind {
            Kind::Datagram => self.serve_datagrams(id, flags, received),
            Kind::Listener => self.serve_listener(id, received),
            Kind::Connecting => self.serve_connecting(id, flags, received),
            Kind::Stream => self.serve_stream(id, flags, received),
        }
    }

    fn serve_datagrams(
        &mut self,
        id: SocketId,
        flags: &mut u32,
        received: &mut Received,
    ) -> Served {
        let Some(socket) = self.sockets.get_mut(id) else {
            return Served::Nothing;
        };
        if *flags & WRITABLE != 0 && socket.blocked {
            socket.blocked = false;
            *flags &= !WRITABLE;
            received.event = Event::Writable;
            return Served::More;
        }
        if *flags & READABLE == 0 {
            return Served::Nothing;
        }
        let drops_before = socket.drops;
        let result = self
            .batch
            .receive(&socket.fd, socket.peer, received, &mut socket.drops);
        self.stats.receive_calls += 1;
        self.stats.receive_drops += u64::from(socket.drops.wrapping_sub(drops_before));
        match result {
            Ok(more) => {
                self.stats.datagrams_received += received.datagrams.len() as u64;
                received.event = Event::Datagrams;
                if let Some(timestamps) = &mut self.timestamps {
                    received.arrived.clear();
                    timestamps.convert(&self.batch.arrived_ns, &mut received.arrived);
                }
                if more { Served::More } else { Served::Last }
            }
            Err(libc::EAGAIN) => Served::Nothing,
            Err(errno) => {
                received.event = Event::DatagramError(SocketError::of_errno(errno));
                Served::More
            }
        }
    }

    fn serve_listener(&mut self, id: SocketId, received: &mut Received) -> Served {
        let Some(socket) = self.sockets.get(id) else {
            return Served::Nothing;
        };
        // Without descriptors the connection stays in the backlog until the next wait.
        let (fd, peer) = match socket::accept(&socket.fd) {
            Ok(Some(accepted)) => accepted,
            Ok(None) => return Served::Nothing,
            Err(_) => {
                self.stats.accepts_failed += 1;
                return Served::Nothing;
            }
        };
        let Ok(accepted) = self.add(fd, Kind::Stream, None) else {
            return Served::Nothing;
        };
        received.socket = accepted;
        received.event = Event::Accepted { listener: id, peer };
        Served::More
    }

    fn serve_connecting(
        &mut self,
        id: SocketId,
        flags: &mut u32,
        received: &mut Received,
    ) -> Served {
        let Some(socket) = self.sockets.get_mut(id) else {
            return Served::Nothing;
        };
        if *flags & (WRITABLE | BROKEN) == 0 {
            return Served::Nothing;
        }
        if let Some(error) = socket::take_error(&socket.fd) {
            received.event = Event::Failed(error);
            return Served::Last;
        }
        socket.kind = Kind::Stream;
        *flags &= !WRITABLE;
        received.event = Event::Connected;
        Served::More
    }

    fn serve_stream(&mut self, id: SocketId, flags: &mut u32, received: &mut Received) -> Served {
        let Some(socket) = self.sockets.get_mut(id) else {
            return Served::Nothing;
        };
        if *flags & WRITABLE != 0 && socket.blocked {
            socket.blocked = false;
            *flags &= !WRITABLE;
            received.event = Event::Writable;
            return Served::More;
        }
        if *flags & READABLE == 0 || socket.reading_paused {
            return Served::Nothing;
        }
        if received.buffer.len() < STREAM_READ_OCTETS {
            received.buffer = vec![0; STREAM_READ_OCTETS];
        }
        // SAFETY: the buffer is valid for STREAM_READ_OCTETS.
        let result = unsafe {
            let room = received.buffer.as_mut_ptr().cast();
            libc::read(socket.fd.as_raw_fd(), room, STREAM_READ_OCTETS)
        };
        let ended = *flags & !(libc::EPOLLIN as u32) & READABLE != 0;
        self.stats.stream_calls += 1;
        match usize::try_from(result) {
            Ok(0) => {
                *flags &= !READABLE;
                received.event = Event::EndOfStream;
                Served::More
            }
            Ok(octets) => {
                received.stream_octets = octets;
                received.event = Event::Bytes;
                if self.options.tcp_quickack {
                    socket::acknowledge_now(&socket.fd);
                }
                // A short read emptied the buffer; an end or error still has to be read.
                let drained = octets < STREAM_READ_OCTETS && !ended;
                if drained { Served::Last } else { Served::More }
            }
            Err(_) => match io::Error::last_os_error()
                .raw_os_error()
                .unwrap_or(libc::EIO)
            {
                libc::EAGAIN => Served::Nothing,
                errno => {
                    received.event = Event::Failed(SocketError::of_errno(errno));
                    Served::Last
                }
            },
        }
    }
}

impl Driver for EpollDriver {
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
        if let (Some(timestamps), Some(peer)) = (&mut self.timestamps, spec.peer) {
            timestamps.prepare(peer, spec.local)?;
        }
        let fd = socket::open_udp(spec, &self.options)?;
        self.add(fd, Kind::Datagram, spec.peer)
    }

    fn connect_tcp(&mut self, spec: &SocketSpec) -> Result<SocketId, SocketError> {
        socket::connect_tcp(spec, &self.options)
            .and_then(|fd| self.add(fd, Kind::Connecting, spec.peer))
            .map_err(|error| SocketError::of(&error))
    }

    fn listen_tcp(&mut self, spec: &SocketSpec) -> io::Result<SocketId> {
        let fd = socket::listen_tcp(spec, libc::SOCK_NONBLOCK)?;
        self.add(fd, Kind::Listener, None)
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
        if let Some(timestamps) = &mut self.timestamps {
            timestamps.settle(&open.fd, &mut open.numbering);
        }
        let offload = &mut self.options.offload;
        let outcome = self
            .batch
            .send(&open.fd, outgoing, offload, &mut self.stats);
        open.blocked = outcome.error.is_none() && outcome.accepted < outgoing.datagrams.len();
        if self.timestamps.is_some() {
            let failed_after = self.batch.failed_after;
            open.numbering.note_sent(outcome.accepted, failed_after);
        }
        outcome
    }

    fn read_send_stamps(&mut self, socket: SocketId, stamps: &mut Vec<SendStamp>) {
        if let Some(timestamps) = &mut self.timestamps
            && let Some(open) = self.sockets.get_mut(socket)
        {
            timestamps.read(&open.fd, &mut open.numbering, stamps);
        }
    }

    fn send_bytes(&mut self, socket: SocketId, bytes: &[u8]) -> Result<usize, SocketError> {
        let Some(open) = self.sockets.get_mut(socket) else {
            return Err(SocketError::Other(libc::EBADF));
        };
        // SAFETY: `bytes` is valid for its length. MSG_NOSIGNAL: a reset peer is an error here,
        // not the end of the process.
        let result = unsafe {
            let (fd, octets) = (open.fd.as_raw_fd(), bytes.as_ptr().cast());
            libc::send(fd, octets, bytes.len(), libc::MSG_NOSIGNAL)
        };
        let taken = match usize::try_from(result) {
            Ok(taken) => taken,
            Err(_) => match io::Error::last_os_error()
                .raw_os_error()
                .unwrap_or(libc::EIO)
            {
                // The last error means: a connection that was to send data with its SYN sends the
                // SYN without.
                libc::EAGAIN | libc::EINTR | libc::EINPROGRESS => 0,
                errno => return Err(SocketError::of_errno(errno)),
            },
        };
        open.blocked = taken < bytes.len();
        self.stats.stream_calls += 1;
        Ok(taken)
    }

    fn pause_reading(&mut self, socket: SocketId, paused: bool) {
        let Some(open) = self.sockets.get_mut(socket) else {
            return;
        };
        let was_paused = std::mem::replace(&mut open.reading_paused, paused);
        if was_paused && !paused {
            // Data that arrived meanwhile causes no new edge.
            let events = READABLE & !BROKEN;
            let tag = u64::from(socket.generation) << 32 | u64::from(socket.index);
            self.ready.push(libc::epoll_event { events, u64: tag });
        }
    }

    fn finish_sending(&mut self, socket: SocketId) {
        if let Some(open) = self.sockets.get(socket) {
            socket::shut_down(&open.fd, libc::SHUT_WR);
        }
    }

    fn close(&mut self, socket: SocketId, how: Close) {
        let Some(closed) = self.sockets.remove(socket) else {
            return;
        };
        if closed.kind == Kind::Stream && closed.peer.is_some() {
            self.stats.tcp.note_close(&closed.fd);
        }
        if closed.kind == Kind::Datagram {
            let drops = socket::receive_drops(&closed.fd).unwrap_or(closed.drops);
            self.stats.receive_drops += u64::from(drops.wrapping_sub(closed.drops));
        }
        if how == Close::Reset {
            socket::set_reset_on_close(&closed.fd);
        }
    }

    fn receive(&mut self, received: &mut Received) -> bool {
        while self.deliveries < DELIVERIES_MAX {
            let Some(event) = self.ready.get(self.ready_next) else {
                break;
            };
            let tag = event.u64;
            let id = SocketId {
                index: tag as u32,
                generation: (tag >> 32) as u32,
            };
            let mut flags = event.events;
            let served = self.serve(id, &mut flags, received);
            self.ready[self.ready_next].events = flags;
            self.partly_served = matches!(served, Served::More);
            if !self.partly_served {
                self.ready_next += 1;
            }
            if !matches!(served, Served::Nothing) {
                received.at = self.clock.now();
                self.deliveries += 1;
                return true;
            }
        }
        false
    }

    fn wait(&mut self, until: Instant) {
        self.deliveries = 0;
        self.ready.drain(..self.ready_next);
        self.ready_next = 0;
        let left = self.ready.len();
        // First come, first served, but a socket that always has data waits for the others.
        if std::mem::take(&mut self.partly_served) && left > 0 {
            self.ready.rotate_left(1);
        }
        if left >= READY_MAX {
            return;
        }
        let nanos = if left > 0 {
            0
        } else {
            until.nanos_since(self.clock.now())
        };
        let timeout = libc::timespec {
            tv_sec: (nanos / 1_000_000_000).min(3_600) as libc::time_t,
            tv_nsec: (nanos % 1_000_000_000) as libc::c_long,
        };
        self.ready.reserve(READY_MAX);
        // SAFETY: the vector has room for READY_MAX more events; the kernel says how many it wrote.
        unsafe {
            let events = self.ready.as_mut_ptr().add(left);
            let count = wait_for_events(self.epoll.as_fd(), events, &timeout);
            self.ready.set_len(left + count);
        }
        self.stats.waits += 1;
    }

    fn stats(&self) -> DriverStats {
        self.stats
    }
}

/// Waits until there is an event or the time is over, and returns the number of events written.
///
/// Kernels before 5.11 lack `epoll_pwait2`, as qemu-user does, and `epoll_wait` counts in
/// milliseconds. There `ppoll` waits for the epoll descriptor.
///
/// # Safety
///
/// `events` has room for `READY_MAX` events.
unsafe fn wait_for_events(
    epoll: BorrowedFd<'_>,
    events: *mut libc::epoll_event,
    timeout: &libc::timespec,
) -> usize {
    let fd = epoll.as_raw_fd();
    let (room, time, mask) = (READY_MAX, &raw const *timeout, std::ptr::null());
    // SAFETY: the caller vouches for the room, and the kernel only reads the time.
    let count = unsafe {
        let mask: *const libc::sigset_t = mask;
        libc::syscall(libc::SYS_epoll_pwait2, fd, events, room, time, mask, 0usize)
    };
    if count >= 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS) {
        return usize::try_from(count).unwrap_or(0);
    }
    let mut polled = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: as above; `polled` is one entry.
    let count = unsafe {
        libc::ppoll(&raw mut polled, 1, time, mask);
        libc::epoll_wait(fd, events, READY_MAX as libc::c_int, 0)
    };
    usize::try_from(count).unwrap_or(0)
}
