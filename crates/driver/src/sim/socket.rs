//! The sockets of one endpoint and what is ready for each.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use proto::Instant;

use crate::{Datagram, DriverStats, Event, Received, SendStamp, SocketError, SocketId};

/// Most datagrams in one delivery.
pub(super) const DATAGRAMS_MAX: usize = 64;
/// Most octets of a stream in one delivery.
pub(super) const STREAM_OCTETS_MAX: usize = 64 * 1024;

/// A socket of the world: which endpoint has it, and as what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) endpoint: usize,
    pub(super) socket: SocketId,
}

/// One open socket.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) local: SocketAddr,
    pub(super) peer: Option<SocketAddr>,
    pub(super) kind: Kind,
    /// It is in the endpoint's queue of ready sockets.
    queued: bool,
}

/// What a socket is, with what waits to be received.
#[derive(Debug)]
pub(super) enum Kind {
    Datagram(DatagramInbox),
    Listener,
    Stream(Stream),
}

/// Datagrams that arrived, and the last error.
#[derive(Debug, Default)]
pub(super) struct DatagramInbox {
    pub(super) arrived: VecDeque<(SocketAddr, Instant, Vec<u8>)>,
    pub(super) error: Option<SocketError>,
    /// Datagrams sent.
    sent: u32,
    /// How many of them were sent last, and when, until that is asked for.
    left: (u32, Instant),
}

/// State of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamState {
    Opening,
    Open(Owner),
    Broken(SocketError),
}

/// One end of a stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) state: StreamState,
    /// Octets sent that the other end has not yet read, as far as this end knows.
    pub(super) unread_octets: usize,
    /// When the last segment sent arrives; the next one cannot arrive earlier.
    pub(super) last_arrival: Instant,
    /// A segment could not be delivered: data sent from now on is lost.
    pub(super) cut: bool,
    /// The sender was blocked, and waits for room.
    pub(super) blocked: bool,
    /// FIN was sent: this end sends nothing more.
    pub(super) finished: bool,
    /// The owner has paused reading.
    pub(super) paused: bool,
    /// The listener that has not reported this stream to its owner yet.
    pub(super) not_accepted: Option<SocketId>,
    pub(super) inbox: VecDeque<u8>,
    pub(super) connected: bool,
    pub(super) writable: bool,
    pub(super) ended: bool,
    pub(super) failed: bool,
}

impl Stream {
    pub(super) fn new(state: StreamState, not_accepted: Option<SocketId>) -> Self {
        Stream {
            state,
            unread_octets: 0,
            last_arrival: Instant::ZERO,
            cut: false,
            blocked: false,
            finished: false,
            paused: false,
            not_accepted,
            inbox: VecDeque::new(),
            connected: false,
            writable: false,
            ended: false,
            failed: false,
        }
    }

    /// Ends the stream for its owner.
    pub(super) fn fail(&mut self, error: SocketError) {
        self.state = StreamState::Broken(error);
        self.failed = true;
        self.blocked = false;
        self.writable = false;
    }

    /// There is room again, or for the first time.
    pub(super) fn unblock(&mut self) {
        self.writable |= std::mem::take(&mut self.blocked);
    }

    /// The event to deliver next. Octets that arrived come before the end that followed them.
    fn next(&self, peer: Option<SocketAddr>) -> Option<Event> {
        if let (Some(listener), Some(peer)) = (self.not_accepted, peer) {
            return Some(Event::Accepted { listener, peer });
        }
        if self.connected {
            return Some(Event::Connected);
        }
        if !self.paused && !self.inbox.is_empty() {
            return Some(Event::Bytes);
        }
        if self.writable {
            return Some(Event::Writable);
        }
        if self.ended && !self.paused {
            return Some(Event::EndOfStream);
        }
        match self.state {
            StreamState::Broken(error) if self.failed => Some(Event::Failed(error)),
            _ => None,
        }
    }

    /// Delivers `event`, which [`Stream::next`] gave.
    fn take(&mut self, event: Event, received: &mut Received) {
        match event {
            Event::Accepted { .. } => self.not_accepted = None,
            Event::Connected => self.connected = false,
            Event::Writable => self.writable = false,
            Event::EndOfStream => self.ended = false,
            Event::Failed(_) => self.failed = false,
            Event::Bytes => {
                let octets = self.inbox.len().min(STREAM_OCTETS_MAX);
                let (front, back) = self.inbox.as_slices();
                let from_front = octets.min(front.len());
                received.buffer.extend_from_slice(&front[..from_front]);
                received
                    .buffer
                    .extend_from_slice(&back[..octets - from_front]);
                received.stream_octets = octets;
                self.inbox.drain(..octets);
            }
            Event::Datagrams | Event::DatagramError(_) => {}
        }
    }
}

impl DatagramInbox {
    /// Records that datagrams leave: immediately, since in virtual time the host adds no delay.
    pub(super) fn note_sent(&mut self, datagrams: u32, now: Instant) {
        self.sent = self.sent.wrapping_add(datagrams);
        self.left = (datagrams, now);
    }

    /// Returns, once, when the datagrams that were sent last left.
    pub(super) fn take_send_stamps(&mut self, stamps: &mut Vec<SendStamp>) {
        let (datagrams, at) = std::mem::take(&mut self.left);
        let numbers = (1..=datagrams)
            .rev()
            .map(|back| self.sent.wrapping_sub(back));
        stamps.extend(numbers.map(|number| SendStamp { number, at }));
    }

    fn next(&self) -> Option<Event> {
        match self.error {
            Some(error) => Some(Event::DatagramError(error)),
            None => (!self.arrived.is_empty()).then_some(Event::Datagrams),
        }
    }

    fn take(&mut self, event: Event, received: &mut Received, buffers: &mut Buffers) {
        if matches!(event, Event::DatagramError(_)) {
            self.error = None;
            return;
        }
        let count = self.arrived.len().min(DATAGRAMS_MAX);
        for (from, at, octets) in self.arrived.drain(..count) {
            received.arrived.push(at);
            let start = received.buffer.len() as u32;
            received.buffer.extend_from_slice(&octets);
            received.datagrams.push(Datagram {
                start,
                length: octets.len() as u32,
                from,
            });
            buffers.give_back(octets);
        }
    }
}

impl Socket {
    pub(super) fn new(local: SocketAddr, peer: Option<SocketAddr>, kind: Kind) -> Self {
        Socket {
            local,
            peer,
            kind,
            queued: false,
        }
    }

    fn next(&self) -> Option<Event> {
        match &self.kind {
            Kind::Datagram(inbox) => inbox.next(),
            Kind::Listener => None,
            Kind::Stream(stream) => stream.next(self.peer),
        }
    }

    pub(super) fn stream_mut(&mut self) -> Option<&mut Stream> {
        match &mut self.kind {
            Kind::Stream(stream) => Some(stream),
            _ => None,
        }
    }
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    socket: Option<Socket>,
}

/// One worker's side of the world.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) address: IpAddr,
    pub(super) stats: DriverStats,
    /// When its worker's next turn is due even if nothing arrives.
    pub(super) wake_up: Instant,
    /// Connections that its listeners may still accept; none for no limit.
    pub(super) backlog_room: Option<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Sockets with something to deliver, each once. May hold closed ones.
    ready: VecDeque<SocketId>,
}

impl Endpoint {
    pub(super) fn new(address: IpAddr, wake_up: Instant) -> Self {
        Endpoint {
            address,
            stats: DriverStats::default(),
            wake_up,
            backlog_room: None,
            slots: Vec::new(),
            free: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    pub(super) fn insert(&mut self, socket: Socket) -> SocketId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                socket: None,
            });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.socket = Some(socket);
        SocketId {
            index,
            generation: slot.generation,
        }
    }

    pub(super) fn get(&self, id: SocketId) -> Option<&Socket> {
        let slot = self.slots.get(id.index as usize)?;
        slot.socket
            .as_ref()
            .filter(|_| slot.generation == id.generation)
    }

    pub(super) fn get_mut(&mut self, id: SocketId) -> Option<&mut Socket> {
        let slot = self.slots.get_mut(id.index as usize)?;
        slot.socket
            .as_mut()
            .filter(|_| slot.generation == id.generation)
    }

    pub(super) fn remove(&mut self, id: SocketId) -> Option<Socket> {
        let slot = self.slots.get_mut(id.index as usize)?;
        if slot.generation != id.generation {
            return None;
        }
        let socket = slot.socket.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.index);
        Some(socket)
    }

    /// The open sockets in order of their index.
    pub(super) fn open_sockets(&self) -> impl Iterator<Item = (SocketId, &Socket)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let id = SocketId {
                index: index as u32,
                generation: slot.generation,
            };
            slot.socket.as_ref().map(|socket| (id, socket))
        })
    }

    /// Queues the socket if it has something to deliver and is not queued yet.
    pub(super) fn mark_ready(&mut self, id: SocketId) {
        let Some(socket) = self.get_mut(id) else {
            return;
        };
        if !socket.queued && socket.next().is_some() {
            socket.queued = true;
            self.ready.push_back(id);
        }
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Fills `received` with the next delivery; false if there is none.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        received: &mut Received,
        buffers: &mut Buffers,
    ) -> bool {
        while let Some(id) = self.ready.pop_front() {
            let Some(socket) = self.get_mut(id) else {
                continue;
            };
            socket.queued = false;
            let Some(event) = socket.next() else { continue };
            received.socket = id;
            received.event = event;
            received.at = now;
            received.buffer.clear();
            received.datagrams.clear();
            received.is_from_peer = false;
            received.arrived.clear();
            received.stream_octets = 0;
            match &mut socket.kind {
                Kind::Datagram(inbox) => inbox.take(event, received, buffers),
                Kind::Listener => {}
                Kind::Stream(stream) => stream.take(event, received),
            }
            self.mark_ready(id);
            self.count(received);
            return true;
        }
        false
    }

    fn count(&mut self, received: &Received) {
        match received.event {
            Event::Datagrams => {
                self.stats.receive_calls += 1;
                self.stats.datagrams_received += received.datagrams.len() as u64;
            }
            Event::Bytes => self.stats.stream_calls += 1,
            _ => {}
        }
    }
}

/// Memory of datagrams and segments that were delivered, for those to come: after a while a
/// world allocates nothing for what it carries.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    free: Vec<Vec<u8>>,
}

impl Buffers {
    const COUNT_MAX: usize = 4_096;
    const OCTETS_MAX: usize = 16 * 1024;

    /// A buffer that holds `octets`.
    pub(super) fn copy(&mut self, octets: &[u8]) -> Vec<u8> {
        let mut buffer = self.free.pop().unwrap_or_default();
        buffer.extend_from_slice(octets);
        buffer
    }

    pub(super) fn give_back(&mut self, mut buffer: Vec<u8>) {
        if self.free.len() < Self::COUNT_MAX && buffer.capacity() <= Self::OCTETS_MAX {
            buffer.clear();
            self.free.push(buffer);
        }
    }
}
