//! The world itself: time, what is under way, endpoints; and datagrams.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::net::{IpAddr, SocketAddr};

use proto::Instant;

use super::config::WorldConfig;
use super::network::{Network, NetworkStats};
use super::ports::{Bindings, StreamPorts};
use super::socket::{Buffers, DatagramInbox, Endpoint, Kind, Owner, Socket};
use crate::{Accepted, Close, Event, Outgoing, Received, SocketError, SocketId, SocketSpec};

/// The largest datagram: 65,535 octets less the headers of IPv4 and UDP.
const DATAGRAM_OCTETS_MAX: usize = 65_507;

/// Something under way to a socket.
#[derive(Debug)]
pub(super) enum Arrival {
    Datagram {
        from: SocketAddr,
        to: SocketAddr,
        sender: Option<Owner>,
        octets: Vec<u8>,
    },
    /// An ICMP message: port unreachable.
    PortUnreachable {
        to: Owner,
    },
    Syn {
        client: Owner,
        from: SocketAddr,
        to: SocketAddr,
        /// How often it was sent before and found the backlog full.
        repeats: u32,
    },
    SynAck {
        to: Owner,
        server: Owner,
    },
    Segment {
        to: Owner,
        sender: Owner,
        octets: Vec<u8>,
    },
    Fin {
        to: Owner,
    },
    /// The other end has read this number of octets.
    Read {
        to: Owner,
        octets: usize,
    },
    /// A RST, or the end of all retransmissions.
    Failure {
        to: Owner,
        error: SocketError,
    },
}

/// When an arrival is delivered. Those held to one instant keep their order of arrival.
#[derive(Debug)]
struct Scheduled {
    delivered_at: Instant,
    arrived_at: Instant,
    sequence: u64,
    /// Index of the arrival, which is stored separately: it takes a hundred bytes, and the heap
    /// moves its entries.
    slot: u32,
}

impl Scheduled {
    fn key(&self) -> (Instant, Instant, u64) {
        (self.delivered_at, self.arrived_at, self.sequence)
    }
}

impl Ord for Scheduled {
    /// The earliest is the greatest, for [`BinaryHeap`] gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Scheduled {}

/// State shared by the endpoints of one world.
#[derive(Debug)]
pub(super) struct State {
    pub(super) now: Instant,
    pub(super) network: Network,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) listeners: Bindings,
    pub(super) stream_ports: StreamPorts,
    pub(super) buffers: Buffers,
    datagram_sockets: Bindings,
    queue: BinaryHeap<Scheduled>,
    arrivals: Vec<Option<Arrival>>,
    free_slots: Vec<u32>,
    sequence: u64,
}

impl State {
    pub(super) fn new(config: WorldConfig) -> Self {
        State {
            now: Instant::ZERO,
            network: Network::new(config),
            endpoints: Vec::new(),
            listeners: Bindings::default(),
            stream_ports: StreamPorts::default(),
            buffers: Buffers::default(),
            datagram_sockets: Bindings::default(),
            queue: BinaryHeap::new(),
            arrivals: Vec::new(),
            free_slots: Vec::new(),
            sequence: 0,
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    pub(super) fn network_stats(&self) -> NetworkStats {
        self.network.stats
    }

    pub(super) fn add_endpoint(&mut self, address: IpAddr) -> usize {
        self.endpoints.push(Endpoint::new(address, self.now));
        self.endpoints.len() - 1
    }

    pub(super) fn socket(&self, owner: Owner) -> Option<&Socket> {
        self.endpoints[owner.endpoint].get(owner.socket)
    }

    pub(super) fn socket_mut(&mut self, owner: Owner) -> Option<&mut Socket> {
        self.endpoints[owner.endpoint].get_mut(owner.socket)
    }

    pub(super) fn mark_ready(&mut self, owner: Owner) {
        self.endpoints[owner.endpoint].mark_ready(owner.socket);
    }

    /// Where a socket of this endpoint is bound, its port perhaps still 0; `None` if its family
    /// is not that of the peer or, without an address of its own, of the endpoint.
    pub(super) fn local_for(&self, endpoint: usize, spec: &SocketSpec) -> Option<SocketAddr> {
        let own = self.endpoints[endpoint].address;
        let local = match spec.local {
            None => SocketAddr::new(own, 0),
            Some(local) if !local.ip().is_unspecified() => local,
            Some(local) if local.is_ipv4() == own.is_ipv4() => SocketAddr::new(own, local.port()),
            Some(_) => return None,
        };
        let fits = spec
            .peer
            .is_none_or(|peer| peer.is_ipv4() == local.is_ipv4());
        fits.then_some(local)
    }

    /// Queues what arrives at `at` at the address `to`; without one, it never left its host.
    pub(super) fn schedule(&mut self, at: Instant, to: Option<IpAddr>, arrival: Arrival) {
        let arrived_at = at.max(self.now);
        let delivered_at = to.map_or(arrived_at, |to| self.network.held_until(to, arrived_at));
        let sequence = self.sequence;
        self.sequence += 1;
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.arrivals.push(None);
            self.arrivals.len() as u32 - 1
        });
        self.arrivals[slot as usize] = Some(arrival);
        self.queue.push(Scheduled {
            delivered_at,
            arrived_at,
            sequence,
            slot,
        });
    }

    /// When the next arrival is due.
    pub(super) fn next_arrival(&self) -> Option<Instant> {
        self.queue.peek().map(|next| next.delivered_at)
    }

    pub(super) fn advance_to(&mut self, at: Instant) {
        while self.next_arrival().is_some_and(|next| next <= at) {
            let Some(next) = self.queue.pop() else { break };
            self.now = self.now.max(next.delivered_at);
            self.free_slots.push(next.slot);
            if let Some(arrival) = self.arrivals[next.slot as usize].take() {
                self.deliver(arrival);
            }
        }
        self.now = self.now.max(at);
    }

    fn deliver(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Datagram {
                from,
                to,
                sender,
                octets,
            } => match self.datagram_sockets.receiver(from, to) {
                Some(receiver) => self.put_datagram(receiver, from, octets),
                None => self.bounce_datagram((from, to), sender, octets),
            },
            Arrival::PortUnreachable { to } => {
                if let Some(Kind::Datagram(inbox)) = self.socket_mut(to).map(|s| &mut s.kind) {
                    inbox.error = Some(SocketError::Refused);
                    self.mark_ready(to);
                }
            }
            Arrival::Syn {
                client,
                from,
                to,
                repeats,
            } => self.deliver_syn(client, (from, to), repeats),
            Arrival::SynAck { to, server } => self.deliver_syn_ack(to, server),
            Arrival::Segment { to, sender, octets } => self.deliver_segment(to, sender, octets),
            Arrival::Fin { to } => self.change_stream(to, |stream| stream.ended = true),
            Arrival::Read { to, octets } => self.change_stream(to, |stream| {
                stream.unread_octets -= octets;
                stream.unblock();
            }),
            Arrival::Failure { to, error } => self.change_stream(to, |stream| stream.fail(error)),
        }
    }

    fn put_datagram(&mut self, receiver: Owner, from: SocketAddr, octets: Vec<u8>) {
        let now = self.now;
        if let Some(Kind::Datagram(inbox)) = self.socket_mut(receiver).map(|s| &mut s.kind) {
            inbox.arrived.push_back((from, now, octets));
            self.mark_ready(receiver);
        }
    }

    /// No socket is bound where the datagram arrived: an ICMP message goes back to its sender,
    /// which learns of it only on a connected socket (RFC 1122, section 4.1.3.3).
    fn bounce_datagram(
        &mut self,
        (from, to): (SocketAddr, SocketAddr),
        sender: Option<Owner>,
        octets: Vec<u8>,
    ) {
        self.network.stats.datagrams_unreachable += 1;
        self.buffers.give_back(octets);
        let Some(sender) = sender else { return };
        if self
            .socket(sender)
            .is_none_or(|socket| socket.peer != Some(to))
        {
            return;
        }
        if let [Some(at), _] = self.network.datagram(self.now, from.ip()) {
            self.schedule(at, Some(from.ip()), Arrival::PortUnreachable { to: sender });
        }
    }

    pub(super) fn inject_datagram(
        &mut self,
        from: SocketAddr,
        to: SocketAddr,
        octets: &[u8],
        at: Instant,
    ) {
        let octets = self.buffers.copy(octets);
        self.schedule(
            at,
            Some(to.ip()),
            Arrival::Datagram {
                from,
                to,
                sender: None,
                octets,
            },
        );
    }

    /// Opens a datagram socket; `None` if the address is taken or no port is free.
    pub(super) fn bind_datagram(
        &mut self,
        endpoint: usize,
        wanted: SocketAddr,
        spec: &SocketSpec,
    ) -> Option<SocketId> {
        let local = self.datagram_sockets.choose(wanted, spec.shared_port)?;
        let socket = Socket::new(local, spec.peer, Kind::Datagram(DatagramInbox::default()));
        let id = self.endpoints[endpoint].insert(socket);
        self.datagram_sockets.bind(
            local,
            Owner {
                endpoint,
                socket: id,
            },
            spec.shared_port,
        );
        Some(id)
    }

    /// Opens a listener; `None` if the address is taken or no port is free.
    pub(super) fn bind_listener(
        &mut self,
        endpoint: usize,
        wanted: SocketAddr,
        spec: &SocketSpec,
    ) -> Option<SocketId> {
        let local = self.listeners.choose(wanted, spec.shared_port)?;
        let id = self.endpoints[endpoint].insert(Socket::new(local, None, Kind::Listener));
        self.listeners.bind(
            local,
            Owner {
                endpoint,
                socket: id,
            },
            spec.shared_port,
        );
        Some(id)
    }

    pub(super) fn send_datagrams(&mut self, from: Owner, outgoing: &Outgoing) -> Accepted {
        let socket = self
            .socket(from)
            .filter(|s| matches!(s.kind, Kind::Datagram(_)));
        let Some((local, peer)) = socket.map(|socket| (socket.local, socket.peer)) else {
            return Accepted {
                accepted: 0,
                error: Some(SocketError::Other(libc::EBADF)),
            };
        };
        let mut start = 0;
        let mut accepted = 0;
        let mut error = None;
        for datagram in &outgoing.datagrams {
            let octets = &outgoing.octets[start..][..datagram.length as usize];
            match sendable(local, datagram.to.or(peer), octets.len()) {
                Ok(to) => self.send_datagram(from, (local, to), octets),
                Err(cause) => {
                    error = Some(cause);
                    break;
                }
            }
            start += octets.len();
            accepted += 1;
        }
        let now = self.now;
        if let Some(Kind::Datagram(inbox)) = self.socket_mut(from).map(|s| &mut s.kind) {
            inbox.note_sent(accepted as u32, now);
        }
        let stats = &mut self.endpoints[from.endpoint].stats;
        stats.send_calls += 1;
        stats.datagrams_sent += accepted as u64;
        Accepted { accepted, error }
    }

    fn send_datagram(
        &mut self,
        sender: Owner,
        (from, to): (SocketAddr, SocketAddr),
        octets: &[u8],
    ) {
        for at in self
            .network
            .datagram(self.now, to.ip())
            .into_iter()
            .flatten()
        {
            let octets = self.buffers.copy(octets);
            let arrival = Arrival::Datagram {
                from,
                to,
                sender: Some(sender),
                octets,
            };
            self.schedule(at, Some(to.ip()), arrival);
        }
    }

    /// Closes a socket of any kind; nothing happens if it is closed already.
    pub(super) fn close(&mut self, owner: Owner, how: Close) {
        let Some(socket) = self.endpoints[owner.endpoint].remove(owner.socket) else {
            return;
        };
        match socket.kind {
            Kind::Datagram(inbox) => {
                self.datagram_sockets.unbind(socket.local, owner);
                for (.., octets) in inbox.arrived {
                    self.buffers.give_back(octets);
                }
            }
            Kind::Listener => {
                self.listeners.unbind(socket.local, owner);
                self.reset_not_accepted(owner);
            }
            Kind::Stream(stream) => {
                if let Some(peer) = socket.peer {
                    self.stream_ports.release(socket.local, peer);
                    self.end_stream(peer.ip(), &stream, how);
                }
            }
        }
    }

    /// Closes all sockets of an endpoint whose driver is gone.
    pub(super) fn close_endpoint(&mut self, endpoint: usize) {
        let open: Vec<_> = self.endpoints[endpoint]
            .open_sockets()
            .map(|(id, _)| id)
            .collect();
        for socket in open {
            self.close(Owner { endpoint, socket }, Close::Graceful);
        }
    }

    pub(super) fn receive(&mut self, endpoint: usize, received: &mut Received) -> bool {
        if !self.endpoints[endpoint].receive(self.now, received, &mut self.buffers) {
            return false;
        }
        if received.event == Event::Bytes {
            let reader = Owner {
                endpoint,
                socket: received.socket,
            };
            self.report_read(reader, received.stream_octets);
        }
        true
    }
}

/// The receiver of a datagram, if it can be delivered.
fn sendable(
    local: SocketAddr,
    to: Option<SocketAddr>,
    octets: usize,
) -> Result<SocketAddr, SocketError> {
    let to = to.ok_or(SocketError::Other(libc::EDESTADDRREQ))?;
    if octets > DATAGRAM_OCTETS_MAX {
        return Err(SocketError::Other(libc::EMSGSIZE));
    }
    if to.is_ipv4() != local.is_ipv4() {
        return Err(SocketError::Unreachable);
    }
    Ok(to)
}
