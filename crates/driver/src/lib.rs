//! Moving octets and time. No policy: a driver never decides what to send or when.
//!
//! [`Driver`] is the interface; [`epoll`] and [`uring`] speak to the kernel's sockets, and
//! [`kernel`] chooses between them; [`xdp`] sends and receives datagrams below them; [`sim`] speaks
//! to a network that exists only in memory and in virtual time, [`null`] to one that costs nothing.
//! The only crate in which `unsafe` is allowed.
//!
//! One driver belongs to one worker thread. A worker's turn is: for each [`Driver::receive`] that
//! returns true, handle what is in [`Received`]; fire timers; send; then [`Driver::wait`].
//! Nothing is called back, so the worker may send from within the receive loop.
//!
//! # Where to look
//!
//! * `epoll`: the kernel's sockets by readiness.
//! * `uring`: the kernel's sockets by completion, through io_uring. `uring::stream` is what
//!   becomes of requests, `uring::sends` what is on its way out, `uring::buffers` the memory that
//!   all streams receive into, `uring::ring` the queues and why a host may not have them.
//! * `xdp`: datagrams as frames of an interface, through AF_XDP; streams, and what is no plain
//!   datagram, through epoll. `xdp::program` assembles the filter, `xdp::bpf` loads and attaches
//!   it, `xdp::attachment` is what the workers of a process share. `xdp::ring` and `xdp::socket`
//!   are the memory shared with the kernel, `xdp::frame` headers and checksums. `xdp::hops` and
//!   `xdp::peers` know link-layer addresses, of targets from the kernel and of clients from their
//!   queries. `xdp::drops` counts what the interface and the other end of a veth pair drop.
//!   `xdp::rss` knows which queue a card puts a response into, `xdp::read_pace` how often a veth
//!   interface is read.
//! * `kernel`: which of these a run gets (`--driver`), and why.
//! * `datagram` batches with sendmmsg and recvmmsg, and with UDP GSO and GRO where the load
//!   allows it; `socket` is the only place that fills socket addresses; `table` gives sockets
//!   their numbers.
//! * `sim`: a network in memory and in virtual time, with seeded delay, loss, reordering,
//!   duplication, outages and stalls. `sim::run` gives each worker its turns and moves the time
//!   between them.
//! * `control`: the control messages that come with datagrams and errors.
//! * `timestamps`: when datagrams left and arrived (SO_TIMESTAMPING), on the driver's clock.
//! * `card`: network cards that stamp datagrams themselves, and their clocks. No card that we
//!   could try has one: the tests cover what is refused, and how times are converted.
//! * `netlink`, `ethtool`: what the kernel knows of interfaces, routes and neighbours, and what
//!   the driver of an interface does.
//! * `ways`: whether anything can leave this host for a target, watched by a thread of its own.
//! * `tun`: an interface whose packets this process reads and writes.
//! * `hops`: a UDP socket whose datagrams go only so far, and that hears of those who dropped
//!   them.
//! * `null`: a network that costs nothing, two ends in memory that are stepped in turn on one
//!   thread, so that what a turn of the generator costs can be measured by itself.
//! * `memory`: an allocator that says so when the system gives no more.
//! * `clock`, `cpu`, `namespace`: the clock; CPUs, limits, thread times; the network that a
//!   thread is in.

pub mod card;
pub mod clock;
mod control;
pub mod cpu;
mod datagram;
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

/// What tests of this crate and those beside it share names it so.
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
/// small and dense (use it as an array index), `generation` tells successive owners apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SocketId {
    /// Position in the driver's table; reused after a close.
    pub index: u32,
    /// Counts the owners of that position.
    pub generation: u32,
}

/// Where a socket is bound and what it talks to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketSpec {
    /// Local address; port 0 lets the kernel choose.
    pub local: Option<SocketAddr>,
    /// The one peer (client sockets), or `None` for a server's socket.
    pub peer: Option<SocketAddr>,
    /// Several workers share the local port (SO_REUSEPORT); server sockets only.
    pub shared_port: bool,
    /// A stream sends its first octets with the SYN, or takes them from it (RFC 7413), if kernel
    /// and peer can. A client's stream is then connected at once as far as one can see.
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
    /// ECONNREFUSED: nobody listens, or an ICMP port unreachable came back.
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
    /// What an error of the system means for the record.
    pub fn of(error: &io::Error) -> SocketError {
        SocketError::of_errno(error.raw_os_error().unwrap_or(libc::EIO))
    }

    /// What an errno means for the record.
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
    /// A datagram socket reported an error (an ICMP message); it goes on working.
    DatagramError(SocketError),
}

/// One delivery: an event of one socket, with its octets. Reused for every call.
///
/// One that is kept while others are filled keeps the driver's memory that it was lent.
#[derive(Debug)]
pub struct Received {
    /// The socket it belongs to.
    pub socket: SocketId,
    /// What happened.
    pub event: Event,
    /// When the driver learned of it, read after the octets were there.
    pub at: Instant,
    /// Octets received, unless the driver has lent memory of its own.
    pub buffer: Vec<u8>,
    /// Memory of the driver that the datagrams are in, until the next delivery.
    frames: Option<Arc<Frames>>,
    /// Datagrams in `buffer` or in the driver's memory, in order of arrival.
    pub datagrams: Vec<Datagram>,
    /// The datagrams are all from the socket's one peer; the driver, or the kernel, has seen to it.
    pub is_from_peer: bool,
    /// How many octets at the start of `buffer` are a stream's.
    pub stream_octets: usize,
    /// Where datagrams are stamped: when each of `datagrams` arrived, zero if that is not known.
    pub arrived: Vec<Instant>,
}

/// When a datagram left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendStamp {
    /// Which of the datagrams that the socket has accepted, from 0; wraps around.
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
    /// Forgets all datagrams, keeps the memory.
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

/// What became of [`Outgoing`] datagrams: the first `accepted` went to the network; the rest did
/// not, because of `error` or, without one, because the socket's send buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// How many datagrams, from the first, were taken.
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
    /// What TCP did for the connections that were opened from here.
    pub tcp: TcpStats,
    /// What AF_XDP counts beside.
    pub xdp: xdp::XdpStats,
}

/// What a thread has used of its CPU, since it started.
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
    /// What came after `earlier`.
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

    /// An instant of the standard library to stand for [`Instant::ZERO`]: QUIC counts in these.
    /// Only their differences matter, so that any will do, also where time is virtual.
    fn epoch(&self) -> std::time::Instant {
        std::time::Instant::now()
    }

    /// Time since 1970, for TSIG and certificates; virtual in the simulator.
    fn unix_time(&self) -> Duration;

    /// A seed for what nobody may foretell (message and connection IDs, keys): the system's random
    /// numbers. The simulator's follows from its own seed.
    fn seed(&self) -> [u8; random::SEED_OCTETS] {
        random::seed()
    }

    /// What the calling thread has used of its CPU; zero in the simulator.
    fn cpu_time(&self) -> CpuTime {
        CpuTime::default()
    }

    /// Opens a datagram socket.
    fn open_udp(&mut self, spec: &SocketSpec) -> io::Result<SocketId>;

    /// Starts to connect a stream; [`Event::Connected`] or [`Event::Failed`] follows.
    fn connect_tcp(&mut self, spec: &SocketSpec) -> Result<SocketId, SocketError>;

    /// Opens a listening stream socket; [`Event::Accepted`] follows for each connection.
    fn listen_tcp(&mut self, spec: &SocketSpec) -> io::Result<SocketId>;

    /// True if the peer took octets of ours from the SYN (RFC 7413).
    fn was_fast_opened(&self, _socket: SocketId) -> bool {
        false
    }

    /// The local address of a socket.
    fn local_addr(&self, socket: SocketId) -> io::Result<SocketAddr>;

    /// Sends datagrams on `socket`, in order. Uses offload where it can.
    fn send_datagrams(&mut self, socket: SocketId, outgoing: &Outgoing) -> Accepted;

    /// Appends when datagrams of `socket` left of which that was not known yet, in the order in
    /// which it became known. Empty unless they are stamped ([`StampSource`]).
    fn read_send_stamps(&mut self, _socket: SocketId, _stamps: &mut Vec<SendStamp>) {}

    /// Writes octets to a stream; returns how many were taken. Fewer than given means that the
    /// stream blocks and [`Event::Writable`] will follow.
    fn send_bytes(&mut self, socket: SocketId, bytes: &[u8]) -> Result<usize, SocketError>;

    /// Stops (`true`) or resumes delivering [`Event::Bytes`] for a stream. While it is stopped the
    /// receive buffer fills up and the peer blocks.
    fn pause_reading(&mut self, socket: SocketId, paused: bool);

    /// Says that nothing more will be sent on a stream (FIN); what the peer sends still arrives.
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
