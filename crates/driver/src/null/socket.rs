//! One socket of the null network.

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::{Datagram, Event, Outgoing, Received, SocketError, SocketId};

/// A socket and what has arrived at it.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) local: SocketAddr,
    /// It is in its end's queue of ready sockets.
    pub(super) is_queued: bool,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Datagrams {
        inbox: Inbox,
        /// The socket that it is connected to.
        peer: Option<SocketId>,
    },
    Listener {
        accepted: VecDeque<(SocketId, SocketAddr)>,
    },
    Stream(Stream),
}

/// Datagrams that have arrived, in order.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    pub(super) octets: Vec<u8>,
    pub(super) datagrams: Vec<Datagram>,
}

impl Inbox {
    /// Appends one datagram.
    pub(super) fn put(&mut self, octets: &[u8], from: SocketAddr) {
        self.datagrams.push(Datagram {
            start: self.octets.len() as u32,
            length: octets.len() as u32,
            from,
        });
        self.octets.extend_from_slice(octets);
    }

    /// Appends all that one call sends.
    #[inline]
    pub(super) fn put_all(&mut self, outgoing: &Outgoing, from: SocketAddr) {
        let mut start = self.octets.len() as u32;
        self.octets.extend_from_slice(&outgoing.octets);
        self.datagrams.extend(outgoing.datagrams.iter().map(|it| {
            let datagram = Datagram {
                start,
                length: it.length,
                from,
            };
            start += it.length;
            datagram
        }));
    }
}

/// One end of a stream.
#[derive(Debug)]
pub(super) struct Stream {
    /// The other end, until either is closed.
    pub(super) other: Option<SocketId>,
    /// Octets that have arrived.
    pub(super) inbox: Vec<u8>,
    /// The connection has not been reported yet.
    is_new: bool,
    is_paused: bool,
    end: Option<StreamEnd>,
}

/// How the other end has stopped to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamEnd {
    Finished,
    Reset,
    /// That has been reported.
    Told,
}

impl Stream {
    pub(super) fn connecting() -> Self {
        Stream {
            other: None,
            inbox: Vec::new(),
            is_new: true,
            is_paused: false,
            end: None,
        }
    }

    pub(super) fn accepted(other: SocketId) -> Self {
        Stream {
            other: Some(other),
            is_new: false,
            ..Stream::connecting()
        }
    }

    pub(super) fn pause(&mut self, paused: bool) {
        self.is_paused = paused;
    }

    /// The other end stops; after a reset nothing more is delivered and nothing can be sent.
    pub(super) fn end(&mut self, how: StreamEnd) {
        if how == StreamEnd::Reset {
            self.inbox.clear();
            self.other = None;
        }
        if how == StreamEnd::Reset || self.end.is_none() {
            self.end = Some(how);
        }
    }

    fn has_bytes(&self) -> bool {
        !self.inbox.is_empty() && !self.is_paused
    }

    fn has_end(&self) -> bool {
        matches!(self.end, Some(StreamEnd::Finished | StreamEnd::Reset)) && self.inbox.is_empty()
    }

    fn take(&mut self, received: &mut Received) -> Option<Event> {
        if std::mem::take(&mut self.is_new) {
            return Some(Event::Connected);
        }
        if self.has_bytes() {
            std::mem::swap(&mut received.buffer, &mut self.inbox);
            received.stream_octets = received.buffer.len();
            self.inbox.clear();
            return Some(Event::Bytes);
        }
        if !self.has_end() {
            return None;
        }
        match self.end.replace(StreamEnd::Told)? {
            StreamEnd::Reset => Some(Event::Failed(SocketError::Reset)),
            _ => Some(Event::EndOfStream),
        }
    }
}

impl Socket {
    /// True if [`Socket::take`] would return something.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        match &self.kind {
            Kind::Datagrams { inbox, .. } => !inbox.datagrams.is_empty(),
            Kind::Listener { accepted } => !accepted.is_empty(),
            Kind::Stream(stream) => stream.is_new || stream.has_bytes() || stream.has_end(),
        }
    }

    /// Moves the next delivery of socket `id` into `received`; returns its event.
    pub(super) fn take(&mut self, id: SocketId, received: &mut Received) -> Option<Event> {
        received.socket = id;
        received.datagrams.clear();
        received.stream_octets = 0;
        match &mut self.kind {
            Kind::Datagrams { inbox, peer } => {
                if inbox.datagrams.is_empty() {
                    return None;
                }
                // A connected socket has only one sender.
                received.is_from_peer = peer.is_some();
                // Reuse the memory of the last delivery.
                std::mem::swap(&mut received.buffer, &mut inbox.octets);
                std::mem::swap(&mut received.datagrams, &mut inbox.datagrams);
                inbox.octets.clear();
                Some(Event::Datagrams)
            }
            Kind::Listener { accepted } => {
                let (socket, peer) = accepted.pop_front()?;
                received.socket = socket;
                Some(Event::Accepted { listener: id, peer })
            }
            Kind::Stream(stream) => stream.take(received),
        }
    }
}
