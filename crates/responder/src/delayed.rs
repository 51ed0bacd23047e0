//! Responses that are due later, in order of due instant, then of decision.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

use driver::SocketId;
use proto::Instant;
use proto::quic::ConnectionKey;

/// Buffers longer than this are freed once their response is sent.
const BUFFER_OCTETS_KEPT: usize = 2048;

/// Most memory that the buffers of free slots may keep together.
const SPARE_OCTETS_MAX: usize = 8 << 20;

/// Memory of a waiting response beside its message.
const SLOT_OCTETS: usize = 128;

/// Where a response goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Datagram {
        socket: SocketId,
        to: SocketAddr,
    },
    /// A stream of a QUIC connection.
    Quic {
        socket: SocketId,
        connection: ConnectionKey,
        stream: u64,
    },
    /// `stream` is the query's own one within the connection, where it has one.
    Stream {
        socket: SocketId,
        stream: u64,
    },
}

/// A kind of reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// A DNS message.
    Message,
    /// A DNS message in an HTTP response with the media type `application/dns`.
    Mistyped,
    /// An HTTP status without content.
    Status(u16),
    /// A reset of the query's stream.
    Reset,
    /// A reset of a DoQ stream whose message is no query (RFC 9250, section 4.3.3).
    Malformed,
}

impl Destination {
    pub(crate) fn socket(self) -> SocketId {
        match self {
            Destination::Datagram { socket, .. }
            | Destination::Quic { socket, .. }
            | Destination::Stream { socket, .. } => socket,
        }
    }
}

/// One response that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) destination: Destination,
    pub(crate) reply: Reply,
    /// Empty unless the reply has a message.
    pub(crate) message: Vec<u8>,
}

/// The waiting responses, bounded in number and bytes.
#[derive(Debug)]
pub(crate) struct Delayed {
    order: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    slots: Vec<Waiting>,
    free: Vec<u32>,
    sequence: u64,
    octets: usize,
    /// Capacity of the buffers in free slots.
    spare_octets: usize,
    responses_max: usize,
    octets_max: usize,
}

impl Delayed {
    pub(crate) fn new(responses_max: usize, octets_max: usize) -> Self {
        Delayed {
            order: BinaryHeap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            sequence: 0,
            octets: 0,
            spare_octets: 0,
            responses_max: responses_max.min(u32::MAX as usize),
            octets_max,
        }
    }

    /// Octets of the responses that wait.
    pub(crate) fn held_octets(&self) -> usize {
        self.octets + self.order.len() * SLOT_OCTETS
    }

    /// Sets the limits of waiting messages and of held memory, in bytes.
    pub(crate) fn set_octets_max(&mut self, octets_max: usize, held_max: usize) {
        let slots = self.order.len() * SLOT_OCTETS;
        self.octets_max = octets_max.min(held_max.saturating_sub(slots));
    }

    /// When the next response is due; far in the future if none waits.
    #[inline]
    pub(crate) fn next_due(&self) -> Instant {
        self.order
            .peek()
            .map_or(Instant::FAR_FUTURE, |Reverse((due, ..))| *due)
    }

    /// Keeps a copy of `message` until `due`; false if there is no room.
    pub(crate) fn push(
        &mut self,
        due: Instant,
        destination: Destination,
        reply: Reply,
        message: &[u8],
    ) -> bool {
        let full = self.order.len() >= self.responses_max;
        if full || self.octets + message.len() > self.octets_max {
            return false;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Waiting {
                destination,
                reply,
                message: Vec::new(),
            });
            self.slots.len() as u32 - 1
        });
        let waiting = &mut self.slots[slot as usize];
        self.spare_octets -= waiting.message.capacity();
        waiting.destination = destination;
        waiting.reply = reply;
        waiting.message.extend_from_slice(message);
        self.octets += message.len();
        self.order.push(Reverse((due, self.sequence, slot)));
        self.sequence += 1;
        true
    }

    /// Takes the next response that is due at `now` out of the order; release it after use.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<u32> {
        if self.next_due() > now {
            return None;
        }
        self.order.pop().map(|Reverse((_, _, slot))| slot)
    }

    /// A response that was taken and not released yet.
    pub(crate) fn get(&self, slot: u32) -> &Waiting {
        &self.slots[slot as usize]
    }

    /// Takes the message out; [`Delayed::give_back`] the buffer.
    pub(crate) fn take(&mut self, slot: u32) -> Waiting {
        let waiting = &mut self.slots[slot as usize];
        Waiting {
            destination: waiting.destination,
            reply: waiting.reply,
            message: std::mem::take(&mut waiting.message),
        }
    }

    /// Puts the buffer of [`Delayed::take`] back, whatever is in it now.
    pub(crate) fn give_back(&mut self, slot: u32, message: Vec<u8>) {
        self.slots[slot as usize].message = message;
    }

    /// Makes room for another response.
    pub(crate) fn release(&mut self, slot: u32) {
        let message = &mut self.slots[slot as usize].message;
        self.octets -= message.len();
        message.clear();
        let is_full = self.spare_octets + message.capacity() > SPARE_OCTETS_MAX;
        if is_full || message.capacity() > BUFFER_OCTETS_KEPT {
            *message = Vec::new();
        }
        self.spare_octets += message.capacity();
        self.free.push(slot);
    }
}
