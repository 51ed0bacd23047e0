//! The driver below the kernel's sockets: datagrams through AF_XDP, all else through epoll.
//!
//! A filter on the interface redirects the frames of our ports to rings shared with the kernel;
//! frames to send are written to the same memory. Each worker has its own queues of the interface.
//! Everything but plain datagrams goes to the kernel: each datagram socket has an ordinary one with
//! the same addresses, which reserves the port, receives ICMP errors, and handles fragments.
//! Streams are the kernel's as well.
//!
//! Cost of a query and its response, as designed: one copy of 42 octets of headers and one of the
//! payload, into the frame that is sent; the response is read where the kernel has put it.
//! About 250 instructions (two sums over 50 octets are 60 of them), no system call but one for
//! each 64 frames sent, of which the kernel takes 256 a call, and one when there is nothing to do.
//!
//! Under load a veth interface is read by a timer, see `read_pace`.
//!
//! What it does not do: send fragments, IPv4 options or extension headers, follow a neighbour that
//! changes its link-layer address during a run, or listen on a wildcard address.

mod attachment;
mod bpf;
mod drops;
mod flow;
#[doc(hidden)]
pub mod frame;
mod interface;
mod next_hops;
mod peers;
mod program;
mod read_pace;
pub(crate) mod ring;
mod rss;
mod socket;
mod stats;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use proto::Instant;

use crate::clock::Clock;
use crate::epoll::EpollDriver;
use crate::{
    Accepted, Close, CpuTime, Datagram, Driver, DriverStats, Event, Outgoing, Received,
    SocketError, SocketId, SocketOptions, SocketSpec,
};

use attachment::{Attachment, Letters};
use drops::Drops;
use flow::{Arrived, Flow, Flows};
use frame::{Checksum, Template};
use interface::Interface;
use next_hops::NextHops;
use peers::Peers;
use read_pace::ReadPace;
use socket::XdpSocket;

pub use interface::receive_queues;
pub use settings::InterfaceName;
pub use stats::{InterfaceDrops, XdpStats};

/// Frames read from a queue at a time.
const READ_MAX: usize = 128;
/// Frames queued before the kernel is called, so that it sends while more are written.
const UNSENT_MAX: u32 = 64;
/// Deliveries between two waits, as with the other drivers.
const DELIVERIES_MAX: u32 = 256;
/// Longest wait while the kernel could not send frames: it gives no notice when it can.
const STUCK_WAIT: Duration = Duration::from_micros(50);
/// Preferred ports tried for a socket before any port is accepted: others may be in use.
const PORTS_TRIED: usize = 64;
/// How often the kernel's sockets are polled while datagrams keep coming.
const KERNEL_LOOK: Duration = Duration::from_millis(1);

/// One worker's settings for an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpPlace {
    /// The interface.
    pub interface: InterfaceName,
    /// The worker's number in this process, from 0.
    pub worker: u32,
    /// How many there are, at least 1; queues are divided among them.
    pub workers: u32,
}

/// Sends and receives datagrams through AF_XDP.
pub struct XdpDriver {
    /// Streams, ICMP errors, fragments; and the table of all sockets.
    kernel: EpollDriver,
    shared: Arc<Attachment>,
    interface: Interface,
    worker: u32,
    workers: u32,
    queues: Vec<XdpSocket>,
    /// With the first worker.
    drops: Option<Drops>,
    /// The read pace of the interface under load, if it can be set.
    read_pace: Option<ReadPace>,
    next_hops: NextHops,
    flows: Flows,
    peers: Peers,
    /// Sockets that have datagrams to be delivered, in order of arrival.
    ready: VecDeque<u32>,
    arrived: Vec<Arrived>,
    /// The queue that they came from; none if another worker passed them on.
    arrived_by: Option<usize>,
    arrived_at: Instant,
    letters: Letters,
    /// The queue to read next.
    next_queue: usize,
    /// Sockets that wait for a frame to send with.
    blocked: VecDeque<SocketId>,
    deliveries: u32,
    kernel_looked_at: Instant,
    /// One datagram for the kernel's socket.
    detour: Outgoing,
    stats: DriverStats,
}

impl XdpDriver {
    /// A driver without sockets, on `clock`'s epoch; attaches the filter if it is the first.
    ///
    /// # Errors
    /// Why the interface cannot be used, with the cure if there is one.
    pub fn new(clock: Clock, options: SocketOptions, place: XdpPlace) -> io::Result<Self> {
        let shared = Attachment::of(place.interface, place.workers)?;
        let kernel = EpollDriver::new(clock, options)?;
        kernel.watch(shared.letter_box(place.worker).bell())?;
        let own = |queue: &u32| queue % place.workers == place.worker;
        let queues = (0..shared.interface.queues).filter(own);
        let queues: Vec<XdpSocket> = queues
            .map(|queue| shared.socket(queue))
            .collect::<io::Result<_>>()?;
        for queue in &queues {
            kernel.watch(queue.fd())?;
        }
        let is_first = place.worker == 0;
        let drops = is_first.then(|| Drops::of(shared.interface.device));
        Ok(XdpDriver {
            kernel,
            drops: drops.transpose()?,
            worker: place.worker,
            workers: place.workers,
            read_pace: shared.read_pace(queues.len(), place.worker),
            queues,
            next_hops: NextHops::new()?,
            flows: Flows::new(),
            peers: Peers::default(),
            ready: VecDeque::new(),
            arrived: Vec::with_capacity(READ_MAX),
            arrived_by: None,
            arrived_at: Instant::ZERO,
            letters: Letters::default(),
            next_queue: 0,
            blocked: VecDeque::new(),
            deliveries: 0,
            kernel_looked_at: Instant::ZERO,
            detour: Outgoing::default(),
            stats: DriverStats::default(),
            interface: shared.interface.clone(),
            shared,
        })
    }

    /// Interface and mode, as text for the record.
    pub fn words(&self) -> String {
        let words = self.shared.words(self.queues.len());
        match &self.read_pace {
            Some(_) => format!("{words}, read every {} us under load", read_pace::TIMER_US),
            None => words,
        }
    }

    /// Access to the parts needed for sending.
    fn flow(&mut self, id: SocketId, spec: &SocketSpec) -> io::Result<Flow> {
        let local = self.kernel.local_addr(id)?;
        if local.ip().is_unspecified() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("AF_XDP needs the address to listen on, {local} is any; give one"),
            ));
        }
        let interface = &self.interface;
        let template = match spec.peer {
            None => None,
            Some(peer) => {
                let hop = self.next_hops.find(interface, local, peer)?;
                Some(Template::new(hop, local, peer))
            }
        };
        let queue = match spec.peer.and_then(|peer| self.arrival_queue(peer, local)) {
            // The queues of a worker are this far apart.
            Some(queue) if self.is_own(queue) => (queue / self.workers) as usize,
            _ => id.index as usize % self.queues.len(),
        };
        Ok(Flow::new(id, (local, spec.peer), template, queue))
    }

    /// The card's queue for datagrams from `peer`; none if it is not known.
    fn arrival_queue(&self, peer: SocketAddr, local: SocketAddr) -> Option<u32> {
        self.shared.rss.get()?.queue(peer, local)
    }

    fn is_own(&self, queue: u32) -> bool {
        queue % self.workers == self.worker
    }

    /// Opens the kernel's socket: if no port was requested, on one whose responses the card puts
    /// into a queue of ours.
    fn open_by_kernel(&mut self, spec: &SocketSpec) -> io::Result<SocketId> {
        let any = self.kernel.open_udp(spec)?;
        let local = self.kernel.local_addr(any)?;
        let is_chosen = spec.local.is_some_and(|local| local.port() != 0);
        let peer = spec.peer.filter(|_| !is_chosen);
        let (Some(peer), Some(rss)) = (peer, self.shared.rss.get()) else {
            return Ok(any);
        };
        if rss
            .queue(peer, local)
            .is_none_or(|queue| self.is_own(queue))
        {
            return Ok(any);
        }
        let (worker, workers) = (self.worker, self.workers);
        let is_own = move |queue| queue % workers == worker;
        for local in rss.ports(peer, local, is_own).take(PORTS_TRIED) {
            let local = Some(local);
            // Another socket has it, mostly.
            if let Ok(better) = self.kernel.open_udp(&SocketSpec { local, ..*spec }) {
                self.kernel.close(any, Close::Graceful);
                return Ok(better);
            }
        }
        Ok(any)
    }

    /// Reads one queue, or the mailbox; true if something is ready.
    fn read(&mut self, received: &Received) -> bool {
        self.arrived.clear();
        let count = self.queues.len();
        for _ in 0..count {
            let queue = self.next_queue;
            self.next_queue = (queue + 1) % count;
            self.queues[queue].recycle(received);
            if self.queues[queue].has_received() {
                self.arrived_at = self.kernel.now();
                self.arrived_by = Some(queue);
                self.read_queue(queue);
                if !self.ready.is_empty() {
                    return true;
                }
            }
        }
        self.read_letters();
        !self.ready.is_empty()
    }

    fn read_queue(&mut self, queue: usize) {
        let frames = Arc::clone(self.queues[queue].frames());
        let mut taken = 0;
        while taken < READ_MAX {
            let Some((start, octets)) = self.queues[queue].take() else {
                break;
            };
            taken += 1;
            let frame = frames.slice(start, octets);
            let Some(parsed) = frame::parse(frame) else {
                self.stats.xdp.stray += 1;
                continue;
            };
            match parsed.checksum {
                Checksum::Right => {}
                Checksum::Unfinished if self.interface.is_virtual => {
                    self.stats.xdp.checksums_unfinished += 1;
                }
                Checksum::Unfinished | Checksum::Wrong => {
                    self.stats.xdp.checksums_wrong += 1;
                    continue;
                }
            }
            let Some(place) = self.flows.find(parsed.to) else {
                self.pass_on(
                    &frame[parsed.start..][..parsed.octets],
                    (parsed.from, parsed.to),
                );
                continue;
            };
            let flow = self.flows.at(place);
            if flow.peer.is_none() {
                self.peers
                    .learn(&self.interface, frame, (flow.local, parsed.from));
            }
            let datagram = Datagram {
                start: (start + parsed.start) as u32,
                length: parsed.octets as u32,
                from: parsed.from,
            };
            self.arrive(place, datagram);
        }
        if let Some(read_pace) = &mut self.read_pace {
            read_pace.note_read(taken);
        }
    }

    /// Queues a datagram behind those of the same socket.
    #[inline]
    fn arrive(&mut self, place: u32, datagram: Datagram) {
        let is_first = self.flows.line_up(place, datagram, &mut self.arrived);
        if is_first {
            self.ready.push_back(place);
        }
    }

    /// Gives a datagram to the worker whose socket it is for.
    fn pass_on(&mut self, datagram: &[u8], (from, to): (SocketAddr, SocketAddr)) {
        let Some(owner) = self.shared.other_owner(to.port(), self.worker) else {
            self.stats.xdp.stray += 1;
            return;
        };
        match self.shared.letter_box(owner).leave(datagram, from, to) {
            true => self.stats.xdp.forwarded += 1,
            false => self.stats.xdp.forward_drops += 1,
        }
    }

    fn read_letters(&mut self) {
        let letter_box = self.shared.letter_box(self.worker);
        if !letter_box.has_some() {
            return;
        }
        letter_box.empty_into(&mut self.letters);
        self.arrived_at = self.kernel.now();
        self.arrived_by = None;
        let letters = std::mem::take(&mut self.letters.letters);
        for letter in &letters {
            match self.flows.find(letter.to) {
                Some(place) => {
                    let datagram = Datagram {
                        start: letter.start as u32,
                        length: letter.octets as u32,
                        from: letter.from,
                    };
                    self.arrive(place, datagram);
                }
                None => self.stats.xdp.stray += 1,
            }
        }
        self.letters.letters = letters;
    }

    /// Fills `received` with all that has arrived for the next socket; false if there is none.
    fn deliver(&mut self, received: &mut Received) -> bool {
        while let Some(place) = self.ready.pop_front() {
            received.datagrams.clear();
            let id = self
                .flows
                .hand_over(place, &self.arrived, &mut received.datagrams);
            // Closed while its datagrams waited.
            let Some(id) = id else {
                continue;
            };
            match self.arrived_by {
                Some(queue) => {
                    self.flows.send_back_by(place, queue);
                    received.lend(self.queues[queue].frames());
                }
                None => received.keep(&self.letters.octets),
            }
            received.socket = id;
            received.event = Event::Datagrams;
            received.is_from_peer = false;
            received.at = self.arrived_at;
            received.stream_octets = 0;
            self.stats.datagrams_received += received.datagrams.len() as u64;
            self.deliveries += 1;
            return true;
        }
        false
    }

    /// Reports a waiting socket as writable once there are frames again.
    fn unblock(&mut self, received: &mut Received) -> bool {
        while let Some(&id) = self.blocked.front() {
            let Some(flow) = self.flows.get_mut(id) else {
                self.blocked.pop_front();
                continue;
            };
            if !self.queues[flow.queue].reclaim() {
                return false;
            }
            flow.blocked = false;
            self.blocked.pop_front();
            received.datagrams.clear();
            received.stream_octets = 0;
            received.socket = id;
            received.event = Event::Writable;
            received.at = self.kernel.now();
            self.deliveries += 1;
            return true;
        }
        false
    }

    fn flush(&mut self) {
        for queue in &mut self.queues {
            self.stats.send_calls += queue.flush();
        }
    }

    /// Sends one datagram through the kernel's socket.
    fn send_by_kernel(
        &mut self,
        socket: SocketId,
        payload: &[u8],
        to: Option<SocketAddr>,
    ) -> Accepted {
        self.detour.clear();
        self.detour.octets.extend_from_slice(payload);
        self.detour.finish(0, to);
        let outcome = self.kernel.send_datagrams(socket, &self.detour);
        self.stats.xdp.sent_by_kernel += outcome.accepted as u64;
        outcome
    }

    /// Lets the socket wait for frames; it is reported as writable once there are some.
    fn block(&mut self, socket: SocketId) {
        self.stats.xdp.transmit_full += 1;
        if let Some(flow) = self.flows.get_mut(socket)
            && !std::mem::replace(&mut flow.blocked, true)
        {
            self.blocked.push_back(socket);
        }
    }

    /// Sends as many datagrams as it can; returns how many.
    fn send_all(&mut self, socket: SocketId, outgoing: &Outgoing) -> Accepted {
        let mut start = 0;
        for (accepted, datagram) in outgoing.datagrams.iter().enumerate() {
            let payload = &outgoing.octets[start..][..datagram.length as usize];
            start += payload.len();
            let Some(flow) = self.flows.get_mut(socket) else {
                let error = Some(SocketError::Other(libc::EBADF));
                return Accepted { accepted, error };
            };
            let queue = &mut self.queues[flow.queue];
            let to = datagram.to.or(flow.peer);
            let template = match (&flow.template, to) {
                (Some(template), _) => Some(template),
                (None, Some(to)) => self.peers.template(flow.local, to.ip()),
                (None, None) => None,
            };
            let fits = |it: &&Template| it.frame_octets(payload.len()) <= queue.frame_octets();
            let (Some(template), Some(to)) = (template.filter(fits), to) else {
                let outcome = self.send_by_kernel(socket, payload, datagram.to);
                if outcome.accepted == 0 {
                    return Accepted {
                        accepted,
                        ..outcome
                    };
                }
                continue;
            };
            let Some((place, frame)) = queue.frame() else {
                self.block(socket);
                let error = None;
                return Accepted { accepted, error };
            };
            template.write(payload, to.port(), frame);
            queue.send(place, template.frame_octets(payload.len()));
            self.stats.datagrams_sent += 1;
            if queue.unsent() >= UNSENT_MAX {
                self.stats.send_calls += queue.flush();
            }
        }
        Accepted {
            accepted: outgoing.datagrams.len(),
            error: None,
        }
    }
}

impl Driver for XdpDriver {
    #[inline]
    fn now(&mut self) -> Instant {
        self.kernel.now()
    }

    fn unix_time(&self) -> Duration {
        self.kernel.unix_time()
    }

    fn cpu_time(&self) -> CpuTime {
        self.kernel.cpu_time()
    }

    fn open_udp(&mut self, spec: &SocketSpec) -> io::Result<SocketId> {
        let id = self.open_by_kernel(spec)?;
        let added = self.flow(id, spec).and_then(|flow| {
            self.shared.open_port(flow.local.port(), self.worker)?;
            self.flows.insert(flow);
            Ok(id)
        });
        if added.is_err() {
            self.kernel.close(id, Close::Graceful);
        }
        added
    }

    fn connect_tcp(&mut self, spec: &SocketSpec) -> Result<SocketId, SocketError> {
        self.kernel.connect_tcp(spec)
    }

    fn listen_tcp(&mut self, spec: &SocketSpec) -> io::Result<SocketId> {
        self.kernel.listen_tcp(spec)
    }

    fn was_fast_opened(&self, socket: SocketId) -> bool {
        self.kernel.was_fast_opened(socket)
    }

    fn local_addr(&self, socket: SocketId) -> io::Result<SocketAddr> {
        match self.flows.get(socket) {
            Some(flow) => Ok(flow.local),
            None => self.kernel.local_addr(socket),
        }
    }

    fn send_datagrams(&mut self, socket: SocketId, outgoing: &Outgoing) -> Accepted {
        self.send_all(socket, outgoing)
    }

    fn send_bytes(&mut self, socket: SocketId, bytes: &[u8]) -> Result<usize, SocketError> {
        self.kernel.send_bytes(socket, bytes)
    }

    fn pause_reading(&mut self, socket: SocketId, paused: bool) {
        self.kernel.pause_reading(socket, paused);
    }

    fn finish_sending(&mut self, socket: SocketId) {
        self.kernel.finish_sending(socket);
    }

    fn close(&mut self, socket: SocketId, how: Close) {
        if let Some(flow) = self.flows.remove(socket) {
            self.shared.close_port(flow.local.port());
        }
        self.kernel.close(socket, how);
    }

    fn receive(&mut self, received: &mut Received) -> bool {
        if self.deliveries < DELIVERIES_MAX {
            if self.deliver(received) {
                return true;
            }
            if self.read(received) && self.deliver(received) {
                return true;
            }
            if self.unblock(received) {
                return true;
            }
        }
        self.flush();
        received.keep(&[]);
        self.kernel.receive(received)
    }

    fn wait(&mut self, until: Instant) {
        self.deliveries = 0;
        self.flush();
        let has_received = self.queues.iter().any(XdpSocket::has_received);
        let has_letters = self.shared.letter_box(self.worker).has_some();
        if !self.ready.is_empty() || has_received || has_letters {
            let now = self.kernel.now();
            if now >= self.kernel_looked_at + KERNEL_LOOK {
                self.kernel_looked_at = now;
                self.kernel.wait(now);
            }
            return;
        }
        let mut is_stuck = !self.blocked.is_empty();
        for queue in &mut self.queues {
            self.stats.send_calls += queue.nudge();
            is_stuck |= queue.is_stuck();
        }
        let until = match is_stuck {
            true => until.min(self.kernel.now() + STUCK_WAIT),
            false => until,
        };
        self.kernel.wait(until);
    }

    fn stats(&self) -> DriverStats {
        let mut stats = self.kernel.stats();
        stats.send_calls += self.stats.send_calls;
        stats.datagrams_sent += self.stats.datagrams_sent;
        stats.datagrams_received += self.stats.datagrams_received;
        stats.xdp = self.stats.xdp;
        stats.xdp.interface = self.drops.as_ref().map(Drops::so_far).unwrap_or_default();
        for queue in &self.queues {
            let kernel = queue.statistics();
            stats.xdp.receive_ring_full += kernel.rx_ring_full;
            stats.xdp.receive_dropped += kernel.rx_dropped;
            stats.xdp.fill_ring_empty += kernel.rx_fill_ring_empty_descs;
            stats.xdp.transmit_invalid += kernel.tx_invalid_descs;
        }
        let xdp = stats.xdp;
        stats.receive_drops += xdp.receive_ring_full + xdp.receive_dropped + xdp.forward_drops;
        stats
    }
}

impl Drop for XdpDriver {
    fn drop(&mut self) {
        for port in self.flows.ports() {
            self.shared.close_port(port);
        }
    }
}

#[cfg(test)]
mod tests;
