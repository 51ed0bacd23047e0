//! The memory of a server's connections, in octets: a simple sum.
//!
//! quinn-proto does not report its memory. Its part is estimated from outside: by datagrams and
//! octets read for received data, by open streams for sent data.

use super::QuicServer;
use super::connection::{Connection, Step};
use crate::Instant;
use crate::quic::server::ServerProtocol;
use crate::quic::slab::ConnectionKey;
use crate::quic::streams::Octets;
use crate::quic::transport::SERVER_WINDOW_OCTETS;
use quinn_proto::StreamId;

/// Memory of a connection without queries, rounded up: state machine, maps and TLS session.
const CONNECTION_OCTETS: usize = 32 * 1024;

/// Memory of an open stream beside its octets.
const STREAM_OCTETS: usize = 640;

/// Octets of a datagram that are not of streams, as a rule: header, tag, acknowledgements.
const DATAGRAM_OVERHEAD_OCTETS: usize = 48;

/// Octets that one connection may have of queries that are not whole: further ones are refused,
/// for their streams have got their credit back when they were read.
const PARTIAL_OCTETS_MAX: usize = 1 << 20;

/// The octets of one connection that change.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Of queries that are not whole.
    pub(super) received: usize,
    /// Of responses that flow control holds back.
    pub(super) unsent: usize,
    /// Received and not read, at most: what has come out of order.
    unread: usize,
    /// The longest response since no stream was open.
    longest_sent: usize,
    /// This connection's part of the total.
    counted: usize,
}

impl Memory {
    /// Octets of streams were read.
    pub(super) fn count_read(&mut self, octets: usize) {
        self.unread = self.unread.saturating_sub(octets);
    }

    /// A response is handed to quinn-proto, which keeps it until it is acknowledged.
    pub(super) fn count_sent(&mut self, octets: usize) {
        self.longest_sent = self.longest_sent.max(octets);
    }
}

impl Connection {
    /// Counts a datagram of this length that the client sent.
    pub(super) fn count_datagram(&mut self, octets: usize) {
        let unread = self.memory.unread + octets.saturating_sub(DATAGRAM_OVERHEAD_OCTETS);
        self.memory.unread = unread.min(SERVER_WINDOW_OCTETS as usize);
    }

    /// Brings the account of all connections, `total`, up to date.
    pub(super) fn count(&mut self, total: &mut usize) {
        let streams = self.streams_open();
        if streams == 0 && !self.is_handshaking {
            (self.memory.unread, self.memory.longest_sent) = (0, 0);
        }
        let memory = &mut self.memory;
        let in_flight = streams * memory.longest_sent;
        let held = CONNECTION_OCTETS
            + memory.received
            + memory.unsent
            + memory.unread
            + streams * STREAM_OCTETS
            + in_flight.min(SERVER_WINDOW_OCTETS as usize);
        *total = *total + held - memory.counted;
        memory.counted = held;
    }

    pub(super) fn counted_octets(&self) -> usize {
        self.memory.counted
    }

    /// Keeps the beginning of a query until more comes, if there is room.
    pub(super) fn keep(
        &mut self,
        id: StreamId,
        octets: Octets,
        protocol: &ServerProtocol,
    ) -> Option<Step> {
        let stream = id.index();
        if self.memory.received + octets.as_slice().len() > PARTIAL_OCTETS_MAX {
            self.refuse(id, protocol.excessive_load());
            return Some(Step::Excessive { stream });
        }
        let octets = octets.into_vec();
        self.memory.received += octets.capacity();
        self.received.insert(stream, octets);
        None
    }

    /// Keeps the rest of a response until flow control allows it.
    pub(super) fn keep_unsent(&mut self, stream: u64, octets: Vec<u8>) {
        self.memory.unsent += octets.len();
        self.unsent.insert(stream, octets);
    }

    /// Takes the rest of a response.
    pub(super) fn drop_unsent(&mut self, stream: u64) -> Option<Vec<u8>> {
        let octets = self.unsent.remove(&stream)?;
        self.memory.unsent -= octets.len();
        Some(octets)
    }

    /// The connection is over: nothing is received or sent any more.
    pub(super) fn forget_octets(&mut self) {
        self.received = Default::default();
        self.unsent = Default::default();
        (self.memory.received, self.memory.unsent) = (0, 0);
    }
}

impl QuicServer {
    /// Octets that a connection takes which holds nothing.
    pub const CONNECTION_OCTETS: usize = CONNECTION_OCTETS;

    /// Octets that all connections hold, by an account that rounds up.
    pub fn held_octets(&self) -> usize {
        self.held_octets
    }

    /// Each connection with the octets it holds, and when it was accepted, established or last had
    /// a query.
    pub fn holdings(&self) -> impl Iterator<Item = (ConnectionKey, usize, Instant)> {
        let connections = self.connections.iter();
        connections.map(|(key, it)| (key, it.counted_octets(), it.progress_at))
    }

    /// Responses that were not sent because the client does not read, since the last call.
    pub fn take_unread(&mut self) -> u64 {
        std::mem::take(&mut self.unread)
    }
}
