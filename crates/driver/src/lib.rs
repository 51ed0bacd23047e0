//! Sockets and time. No policy: a driver never decides what to send or when.
//!
//! [`Driver`] is the interface; [`epoll`] and [`uring`] use the kernel's sockets, and [`kernel`]
//! chooses between them; [`xdp`] sends and receives datagrams below them; [`sim`] is a network in
//! memory and in virtual time, [`null`] one that costs nothing. The only crate in which `unsafe` is
//! allowed.
//!
//! One driver belongs to one worker thread. A worker's turn is: for each [`Driver::receive`] that
//! returns true, handle what is in [`Received`]; fire timers; send; then [`Driver::wait`].
//! Nothing is called back, so the worker may send from within the receive loop.
//!
//! # Where to look
//!
//! * `epoll`: the kernel's sockets by readiness.
//! * `uring`: the kernel's sockets by completion, through io_uring. `uring::stream` handles the
//!   results of requests, `uring::sends` outgoing data; `uring::buffers` is the memory that all
//!   streams receive into, `uring::ring` the queues, with reasons why a host may lack them.
//! * `xdp`: datagrams as frames of an interface, through AF_XDP; streams, and everything but plain
//!   datagrams, through epoll. `xdp::program` assembles the filter, `xdp::bpf` loads and attaches
//!   it, `xdp::attachment` is the state shared by the workers of a process. `xdp::ring` and
//!   `xdp::socket` are the memory shared with the kernel, `xdp::frame` headers and checksums.
//!   `xdp::next_hops` and `xdp::peers` have link-layer addresses, of targets from the kernel and of
//!   clients from their queries. `xdp::drops` counts frames dropped by the interface and by the
//!   other end of a veth pair. `xdp::rss` computes a card's receive queue of a response,
//!   `xdp::read_pace` controls how often a veth interface is read.
//! * `kernel`: chooses one of these (`--driver`), with a reason.
//! * `datagram` batches with sendmmsg and recvmmsg, and with UDP GSO and GRO where the load allows
//!   it; `socket` is the only module that fills socket addresses; `table` numbers the sockets.
//! * `sim`: a network in memory and in virtual time, with seeded delay, loss, reordering,
//!   duplication, outages and stalls. `sim::run` gives each worker its turns and moves the time
//!   between them.
//! * `control`: the control messages that come with datagrams and errors.
//! * `timestamps`: when datagrams left and arrived (SO_TIMESTAMPING), on the driver's clock.
//! * `card`: network cards with hardware timestamps, and their clocks. No card was available to
//!   test it: the tests cover refusals and the conversion of times.
//! * `netlink`, `ethtool`: the kernel's interfaces, routes and neighbours, and properties of an
//!   interface's driver.
//! * `ways`: whether this host has a usable route to a target, watched by a separate thread.
//! * `echo`: ICMP echo requests to a target, sent and answered on a separate thread.
//! * `tun`: a TUN interface, whose packets this process reads and writes.
//! * `hops`: a UDP socket with a hop limit that receives ICMP errors.
//! * `null`: a network that costs nothing: two ends in memory, stepped in turn on one thread, so
//!   that the cost of the generator's turn can be measured alone.
//! * `memory`: an allocator that reports when the system is out of memory.
//! * `clock`, `cpu`, `namespace`: the clock; CPUs, limits, thread times; a thread's network
//!   namespace.

pub mod card;
pub mod clock;
mod control;
pub mod cpu;
mod datagram;
pub mod echo;
pub mod epoll;
mod ethtool;
pub mod hops;
pub mod kernel;
pub mod memory;
pub mod namespace;
mod netlink;
pub mod null;
pub mod random;
pub mod sim;
mod socket;
mod table;
mod tcp_info;
mod timestamps;
pub mod tun;
pub mod uring;
pub mod ways;
pub mod xdp;

/// The tests shared with integration tests refer to the crate by this name.
#[cfg(test)]
extern crate self as driver;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use proto::Instant;

use xdp::ring::Frames;

pub use settings::{SocketOptions, StampSource};
pub use tcp_info::TcpStats;

/// A socket of one driver. Never reused while an event for it can still be delivered: `index` is
/// small and dense (use it as an array index), `generation` distinguishes successive owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SocketId {
    /// Position in the driver's table; reused after a close.
    pub index: u32,
    /// Counts the owners of that position.
    pub generation: u32,
}

/// The addresses and options of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketSpec {
    /// Local address; port 0 lets the kernel choose.
    pub local: Option<SocketAddr>,
    /// The one peer (client sockets), or `None` for a server's socket.
    pub peer: Option<SocketAddr>,
    /// Several workers share the local port (SO_REUSEPORT); server sockets only.
    pub shared_port: bool,
    /// A stream sends its first data with the SYN, or accepts it from there (RFC 7413), if kernel
    /// and peer can. A client's stream then reports `Connected` at once.
    pub fast_open: bool,
}

/// How a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// An orderly close (FIN).
    Graceful,
    /// A reset (RST), which also leaves no TIME_WAIT.
    Reset,
}

/// Why a connection could not be opened or ended early; closed set, counted by cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SocketError {
    /// ECONNREFUSED: no listening socket, or an ICMP port unreachable came back.
    Refused,
    /// ECONNRESET or EPIPE: the peer reset the connection.
    Reset,
    /// ETIMEDOUT: the kernel gave up.
    TimedOut,
    /// No route, host or network unreachable.
    Unreachable,
    /// EADDRINUSE or EADDRNOTAVAIL: no free local port for this peer.
    NoLocalPort,
    /// EMFILE, ENFILE, ENOBUFS or ENOMEM.
    NoResources,
    /// EPERM or EACCES: a rule of this host forbids it.
    Forbidden,
    /// Anything else, with its errno.
    Other(i32),
}

impl SocketError {
    /// The cause of an I/O error, for the record.
    pub fn of(error: &io::Error) -> SocketError {
        SocketError::of_errno(error.raw_os_error().unwrap_or(libc::EIO))
    }

    /// The cause of an errno, for the record.
    pub(crate) fn of_errno(errno: i32) -> SocketError {
        match errno {
            libc::ECONNREFUSED => SocketError::Refused,
            libc::ECONNRESET | libc::EPIPE | libc::ECONNABORTED => SocketError::Reset,
            libc::ETIMEDOUT => SocketError::TimedOut,
            libc::ENETUNREACH
            | libc::EHOSTUNREACH
            | libc::ENETDOWN
            | libc::EHOSTDOWN
            | libc::ENODEV => SocketError::Unreachable,
            libc::EPERM | libc::EACCES => SocketError::Forbidden,
            libc::EADDRINUSE | libc::EADDRNOTAVAIL => SocketError::NoLocalPort,
            libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM => SocketError::NoResources,
            other => SocketError::Other(other),
        }
    }
}

/// What one call of [`Driver::receive`] delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Datagrams, see [`Received::datagrams`].
    Datagrams,
    /// Octets of a stream, see [`Received::bytes`].
    Bytes,
    /// A stream is connected and can be written.
    Connected,
    /// A stream that blocked can be written again.
    Writable,
    /// A listener accepted `socket` from `peer`; `listener` says which one.
    Accepted {
        /// The listening socket.
        listener: SocketId,
        /// The other end.
        peer: SocketAddr,
    },
    /// The peer sent FIN: nothing more will be received. The socket stays open until closed.
    EndOfStream,
    /// Connecting failed, or the stream broke. The socket stays open until closed.
    Failed(SocketError),
    /// A datagram socket reported an error (an ICMP message); it stays usable.
    DatagramError(SocketError),
}

/// One delivery: an event of one socket, with its octets. Reused for every call.
///
/// A delivery that is kept while others are filled keeps the memory lent by the driver.
#[derive(Debug)]
pub struct Received {
    /// The socket it belongs to.
    pub socket: SocketId,
    /// What happened.
    pub event: Event,
    /// When the driver learned of it; the clock is read after the data had arrived.
    pub at: Instant,
    /// Octets received, unless the driver has lent memory of its own.
    pub buffer: Vec<u8>,
    /// Memory of the driver that the datagrams are in, until the next delivery.
    frames: Option<Arc<Frames>>,
    /// Datagrams in `buffer` or in the driver's memory, in order of arrival.
    pub datagrams: Vec<Datagram>,
    /// The datagrams are all from the socket's one peer, as the driver or the kernel has checked.
    pub is_from_peer: bool,
    /// Number of stream octets at the start of `buffer`.
    pub stream_octets: usize,
    /// With timestamps: when each of `datagrams` arrived, zero if not known.
    pub arrived: Vec<Instant>,
}

/// When a datagram left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendStamp {
    /// Number of the datagram among those that the socket has accepted, from 0; wraps around.
    pub number: u32,
    /// On the driver's clock.
    pub at: Instant,
}

/// One datagram within [`Received::buffer`].
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// Offset of its first octet.
    pub start: u32,
    /// Its length in octets.
    pub length: u32,
    /// Who sent it.
    pub from: SocketAddr,
}

impl Received {
    /// An empty delivery, to be filled by [`Driver::receive`].
    pub fn new() -> Self {
        Received {
            socket: SocketId {
                index: 0,
                generation: 0,
            },
            event: Event::Datagrams,
            at: Instant::ZERO,
            buffer: Vec::new(),
            frames: None,
            datagrams: Vec::new(),
            is_from_peer: false,
            stream_octets: 0,
            arrived: Vec::new(),
        }
    }

    /// The datagrams are in `frames`, until the next delivery.
    #[inline]
    pub(crate) fn lend(&mut self, frames: &Arc<Frames>) {
        if !self.holds(frames) {
            self.frames = Some(Arc::clone(frames));
        }
    }

    /// Its octets may be in `frames`.
    #[inline]
    pub(crate) fn holds(&self, frames: &Arc<Frames>) -> bool {
        let held = self.frames.as_ref();
        held.is_some_and(|held| Arc::ptr_eq(held, frames))
    }

    /// The datagrams are in `buffer`, which starts with a copy of `octets`.
    pub(crate) fn keep(&mut self, octets: &[u8]) {
        self.frames = None;
        if self.buffer.len() < octets.len() {
            self.buffer.resize(octets.len(), 0);
        }
        self.buffer[..octets.len()].copy_from_slice(octets);
    }

    /// The octets of one datagram.
    #[inline]
    pub fn datagram(&self, datagram: Datagram) -> &[u8] {
        let (start, octets) = (datagram.start as usize, datagram.length as usize);
        match &self.frames {
            None => &self.buffer[start..][..octets],
            Some(frames) => frames.slice(start, octets),
        }
    }

    /// The octets of an [`Event::Bytes`].
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.stream_octets]
    }
}

impl Default for Received {
    fn default() -> Self {
        Received::new()
    }
}

/// Datagrams that wait to be sent on one socket: contiguous octets, one entry each.
#[derive(Debug, Default)]
pub struct Outgoing {
    /// The octets of all datagrams, one after the other.
    pub octets: Vec<u8>,
    /// Length of each datagram, and its receiver if the socket is not connected.
    pub datagrams: Vec<OutgoingDatagram>,
}

/// One entry of [`Outgoing`].
#[derive(Clone, Copy, Debug)]
pub struct OutgoingDatagram {
    /// Length in octets.
    pub length: u32,
    /// Receiver; `None` on a connected socket.
    pub to: Option<SocketAddr>,
}

impl Outgoing {
    /// Removes all datagrams, keeps the memory.
    pub fn clear(&mut self) {
        self.octets.clear();
        self.datagrams.clear();
    }

    /// Adds an entry for a connected peer, whose octets are in `octets` or, of a stream, elsewhere.
    #[inline]
    pub fn push_length(&mut self, octets: usize) {
        let (length, to) = (octets as u32, None);
        self.datagrams.push(OutgoingDatagram { length, to });
    }

    /// Closes the datagram whose octets were appended to `octets` since `start`.
    #[inline]
    pub fn finish(&mut self, start: usize, to: Option<SocketAddr>) {
        let length = (self.octets.len() - start) as u32;
        self.datagrams.push(OutgoingDatagram { length, to });
    }
}

/// The result of sending [`Outgoing`] datagrams: the first `accepted` went to the network; the rest
/// did not, because of `error` or, without one, because the socket's send buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// How many datagrams, from the first, were accepted.
    pub accepted: usize,
    /// Why it stopped, if not for a full send buffer.
    pub error: Option<SocketError>,
}

/// Counters of one driver, cumulative since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverStats {
    /// System calls that sent datagrams.
    pub send_calls: u64,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Datagrams that left in a burst of two or more under UDP GSO.
    pub datagrams_offloaded: u64,
    /// GSO bursts sent (so mean burst = offloaded / bursts).
    pub offload_bursts: u64,
    /// System calls that received datagrams.
    pub receive_calls: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Datagrams dropped because a receive buffer of ours was full (SO_RXQ_OVFL, SO_MEMINFO).
    pub receive_drops: u64,
    /// System calls on streams (read and write).
    pub stream_calls: u64,
    /// Calls that waited for events. With io_uring they also hand over what is sent on streams.
    pub waits: u64,
    /// Waits before which results had not fitted into io_uring's queue; the kernel kept them.
    pub ring_overflows: u64,
    /// Streams that had to wait because all receive buffers of io_uring were full.
    pub buffer_shortages: u64,
    /// Requests to send of which io_uring sent a part.
    pub short_sends: u64,
    /// Connections that could not be accepted, for lack of descriptors mostly.
    pub accepts_failed: u64,
    /// TCP statistics of connections opened from here.
    pub tcp: TcpStats,
    /// Additional counters of AF_XDP.
    pub xdp: xdp::XdpStats,
}

/// CPU time of a thread since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// User and system time.
    pub used: Duration,
    /// Time it was ready to run but had to wait for its CPU.
    pub waited: Duration,
    /// Time on the clock, so that shares of it are of the same span.
    pub passed: Duration,
}

impl CpuTime {
    /// The difference from `earlier`.
    pub fn since(self, earlier: CpuTime) -> CpuTime {
        CpuTime {
            used: self.used.saturating_sub(earlier.used),
            waited: self.waited.saturating_sub(earlier.waited),
            passed: self.passed.saturating_sub(earlier.passed),
        }
    }
}

/// The one interface between workers and the outside.
pub trait Driver {
    /// Reads the clock.
    fn now(&mut self) -> Instant;

    /// The standard library's instant for [`Instant::ZERO`], for QUIC. Only differences matter, so
    /// any instant will do, even in virtual time.
    fn epoch(&self) -> std::time::Instant {
        std::time::Instant::now()
    }

    /// Time since 1970, for TSIG and certificates; virtual in the simulator.
    fn unix_time(&self) -> Duration;

    /// A seed for unpredictable values (message and connection IDs, keys), from the system's random
    /// numbers. The simulator derives it from its own seed.
    fn seed(&self) -> [u8; random::SEED_OCTETS] {
        random::seed()
    }

    /// CPU time of the calling thread; zero in the simulator.
    fn cpu_time(&self) -> CpuTime {
        CpuTime::default()
    }

    /// Opens a datagram socket.
    fn open_udp(&mut self, spec: &SocketSpec) -> io::Result<SocketId>;

    /// Starts to connect a stream; [`Event::Connected`] or [`Event::Failed`] follows.
    fn connect_tcp(&mut self, spec: &SocketSpec) -> Result<SocketId, SocketError>;

    /// Opens a listening stream socket; [`Event::Accepted`] follows for each connection.
    fn listen_tcp(&mut self, spec: &SocketSpec) -> io::Result<SocketId>;

    /// True if the peer accepted our data in the SYN (RFC 7413).
    fn was_fast_opened(&self, _socket: SocketId) -> bool {
        false
    }

    /// The local address of a socket.
    fn local_addr(&self, socket: SocketId) -> io::Result<SocketAddr>;

    /// Sends datagrams on `socket`, in order. Uses offload where it can.
    fn send_datagrams(&mut self, socket: SocketId, outgoing: &Outgoing) -> Accepted;

    /// Appends the new send timestamps of `socket`'s datagrams, in the order in which they became
    /// available. Empty without timestamps ([`StampSource`]).
    fn read_send_stamps(&mut self, _socket: SocketId, _stamps: &mut Vec<SendStamp>) {}

    /// Writes octets to a stream; returns how many were accepted. Fewer than given means that the
    /// stream blocks and [`Event::Writable`] will follow.
    fn send_bytes(&mut self, socket: SocketId, bytes: &[u8]) -> Result<usize, SocketError>;

    /// Stops (`true`) or resumes delivering [`Event::Bytes`] for a stream. While it is stopped the
    /// receive buffer fills up and the peer blocks.
    fn pause_reading(&mut self, socket: SocketId, paused: bool);

    /// Ends sending on a stream (FIN); data from the peer still arrives.
    fn finish_sending(&mut self, socket: SocketId);

    /// Closes a socket at once; no event for it is delivered afterwards.
    fn close(&mut self, socket: SocketId, how: Close);

    /// Fills `received` with the next delivery that is ready, without waiting.
    /// False if there is none until the next [`Driver::wait`].
    fn receive(&mut self, received: &mut Received) -> bool;

    /// Waits until something is ready or `until` has come.
    fn wait(&mut self, until: Instant);

    /// Counters so far.
    fn stats(&self) -> DriverStats;
}
