//! One end of the null network: its sockets, and which of them have something to receive.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::socket::{Inbox, Kind, Socket, Stream, StreamEnd};
use crate::table::Table;
use crate::{DriverStats, Outgoing, Received, SocketId, SocketSpec};

/// The first port that is given to a socket which asks for none.
const PORT_FIRST: u16 = 1024;

/// Sockets of one end.
pub(super) struct End {
    sockets: Table<Socket>,
    /// Those with something to receive, in the order in which it came.
    ready: VecDeque<SocketId>,
    datagrams: HashMap<SocketAddr, SocketId>,
    listeners: HashMap<SocketAddr, SocketId>,
    port_next: u16,
    pub(super) stats: DriverStats,
}

impl std::fmt::Debug for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("End")
            .field("ready", &self.ready.len())
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

impl End {
    pub(super) fn new() -> Self {
        End {
            sockets: Table::new(),
            ready: VecDeque::new(),
            datagrams: HashMap::new(),
            listeners: HashMap::new(),
            port_next: PORT_FIRST,
            stats: DriverStats::default(),
        }
    }

    /// True if no socket has anything to receive.
    pub(super) fn is_idle(&self) -> bool {
        self.ready.is_empty()
    }

    pub(super) fn datagrams_at(&self, address: SocketAddr) -> Option<SocketId> {
        self.datagrams.get(&address).copied()
    }

    pub(super) fn listener_at(&self, address: SocketAddr) -> Option<SocketId> {
        self.listeners.get(&address).copied()
    }

    /// The address asked for, with a port if it named none: one of which `is_taken` is false.
    fn local(
        &mut self,
        spec: &SocketSpec,
        is_taken: impl Fn(&End, SocketAddr) -> bool,
    ) -> io::Result<SocketAddr> {
        let any = match spec.peer {
            Some(SocketAddr::V6(_)) => IpAddr::V6(Ipv6Addr::LOCALHOST),
            _ => IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        let asked = spec.local.unwrap_or(SocketAddr::new(any, 0));
        if asked.port() != 0 {
            return match is_taken(self, asked) {
                true => Err(io::Error::from_raw_os_error(libc::EADDRINUSE)),
                false => Ok(asked),
            };
        }
        for _ in PORT_FIRST..=u16::MAX {
            let free = SocketAddr::new(asked.ip(), self.port_next);
            self.port_next = self.port_next.checked_add(1).unwrap_or(PORT_FIRST);
            if !is_taken(self, free) {
                return Ok(free);
            }
        }
        Err(io::Error::from_raw_os_error(libc::EADDRNOTAVAIL))
    }

    /// The address of a client's stream. It is never looked up, so ports may repeat.
    pub(super) fn local_of_stream(&mut self, spec: &SocketSpec) -> SocketAddr {
        let free = self.local(spec, |_, _| false);
        free.expect("an address that is never taken is free")
    }

    pub(super) fn open_datagrams(
        &mut self,
        spec: &SocketSpec,
        peer: Option<SocketId>,
    ) -> io::Result<SocketId> {
        let local = self.local(spec, |end, address| end.datagrams.contains_key(&address))?;
        let kind = Kind::Datagrams {
            inbox: Inbox::default(),
            peer,
        };
        let id = self.insert(local, kind);
        self.datagrams.insert(local, id);
        Ok(id)
    }

    pub(super) fn listen(&mut self, spec: &SocketSpec) -> io::Result<SocketId> {
        let local = self.local(spec, |end, address| end.listeners.contains_key(&address))?;
        let accepted = VecDeque::new();
        let id = self.insert(local, Kind::Listener { accepted });
        self.listeners.insert(local, id);
        Ok(id)
    }

    pub(super) fn open_stream(&mut self, local: SocketAddr, stream: Stream) -> SocketId {
        let id = self.insert(local, Kind::Stream(stream));
        self.queue(id);
        id
    }

    fn insert(&mut self, local: SocketAddr, kind: Kind) -> SocketId {
        self.sockets.insert(Socket {
            local,
            is_queued: false,
            kind,
        })
    }

    pub(super) fn local_addr(&self, socket: SocketId) -> io::Result<SocketAddr> {
        let socket = self.sockets.get(socket);
        let closed = || io::Error::from_raw_os_error(libc::EBADF);
        socket.map(|socket| socket.local).ok_or_else(closed)
    }

    fn stream(&mut self, socket: SocketId) -> Option<&mut Stream> {
        match &mut self.sockets.get_mut(socket)?.kind {
            Kind::Stream(stream) => Some(stream),
            _ => None,
        }
    }

    /// The other end of a stream, while there is one.
    pub(super) fn other(&mut self, socket: SocketId) -> Option<SocketId> {
        self.stream(socket)?.other
    }

    pub(super) fn set_other(&mut self, socket: SocketId, other: SocketId) {
        if let Some(stream) = self.stream(socket) {
            stream.other = Some(other);
        }
    }

    pub(super) fn accept(&mut self, listener: SocketId, socket: SocketId, peer: SocketAddr) {
        if let Some(Socket {
            kind: Kind::Listener { accepted },
            ..
        }) = self.sockets.get_mut(listener)
        {
            accepted.push_back((socket, peer));
        }
        self.queue(listener);
    }

    /// Puts a socket into the queue if it has something to receive.
    #[inline]
    fn queue(&mut self, id: SocketId) {
        if let Some(socket) = self.sockets.get_mut(id)
            && !socket.is_queued
            && socket.is_ready()
        {
            socket.is_queued = true;
            self.ready.push_back(id);
        }
    }

    /// From where a socket sends, and to which socket of the other end if it is connected. Counts.
    pub(super) fn sends_from(
        &mut self,
        socket: SocketId,
        outgoing: &Outgoing,
    ) -> Option<(SocketAddr, Option<SocketId>)> {
        let socket = self.sockets.get(socket)?;
        let Kind::Datagrams { peer, .. } = &socket.kind else {
            return None;
        };
        self.stats.send_calls += 1;
        self.stats.datagrams_sent += outgoing.datagrams.len() as u64;
        Some((socket.local, *peer))
    }

    /// Takes datagrams of the other end, from its socket at `from`: all are for the socket that it
    /// is `connected` to, or each has its receiver. Those without a receiving socket are dropped.
    pub(super) fn deliver(
        &mut self,
        outgoing: &Outgoing,
        (from, connected): (SocketAddr, Option<SocketId>),
    ) {
        if let Some(to) = connected {
            let Some(socket) = self.sockets.get_mut(to) else {
                return;
            };
            if let Kind::Datagrams { inbox, .. } = &mut socket.kind {
                inbox.put_all(outgoing, from);
            }
            if !socket.is_queued && !outgoing.datagrams.is_empty() {
                socket.is_queued = true;
                self.ready.push_back(to);
            }
            return;
        }
        let mut rest = &outgoing.octets[..];
        for datagram in &outgoing.datagrams {
            let (octets, after) = rest.split_at(datagram.length as usize);
            rest = after;
            let Some(to) = datagram.to.and_then(|to| self.datagrams_at(to)) else {
                continue;
            };
            if let Some(inbox) = self.inbox(to) {
                inbox.put(octets, from);
            }
            self.queue(to);
        }
    }

    #[inline]
    fn inbox(&mut self, socket: SocketId) -> Option<&mut Inbox> {
        match &mut self.sockets.get_mut(socket)?.kind {
            Kind::Datagrams { inbox, .. } => Some(inbox),
            _ => None,
        }
    }

    /// Takes octets of the other end; false if the stream is closed here.
    pub(super) fn deliver_bytes(&mut self, socket: SocketId, bytes: &[u8]) -> bool {
        let Some(stream) = self.stream(socket) else {
            return false;
        };
        stream.inbox.extend_from_slice(bytes);
        self.queue(socket);
        true
    }

    pub(super) fn end_stream(&mut self, socket: SocketId, how: StreamEnd) {
        if let Some(stream) = self.stream(socket) {
            stream.end(how);
        }
        self.queue(socket);
    }

    pub(super) fn pause(&mut self, socket: SocketId, paused: bool) {
        if let Some(stream) = self.stream(socket) {
            stream.pause(paused);
        }
        self.queue(socket);
    }

    pub(super) fn close(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.remove(id) else {
            return;
        };
        match socket.kind {
            Kind::Datagrams { .. } => drop(self.datagrams.remove(&socket.local)),
            Kind::Listener { .. } => drop(self.listeners.remove(&socket.local)),
            Kind::Stream(_) => {}
        }
    }

    /// The next delivery of any socket, without its instant.
    pub(super) fn receive(&mut self, received: &mut Received) -> bool {
        while let Some(&id) = self.ready.front() {
            let Some(socket) = self.sockets.get_mut(id) else {
                self.ready.pop_front();
                continue;
            };
            let event = socket.take(id, received);
            socket.is_queued = socket.is_ready();
            // The socket's further deliveries come before those of others, in order.
            if !socket.is_queued || event.is_none() {
                self.ready.pop_front();
            }
            if let Some(event) = event {
                received.event = event;
                self.stats.receive_calls += 1;
                self.stats.datagrams_received += received.datagrams.len() as u64;
                return true;
            }
        }
        false
    }
}
