//! Streams: opening, order, windows and the ways in which they end (RFC 9293).

use std::net::{IpAddr, SocketAddr};

use proto::Instant;

use super::network::{GaveUp, Retransmission};
use super::socket::{Kind, Owner, Socket, Stream, StreamState};
use super::state::{Arrival, State};
use crate::{Close, SocketError, SocketId, SocketSpec};

/// Octets of one segment: an Ethernet frame less the headers of IPv4 and TCP. Each is lost or
/// delayed by itself.
const SEGMENT_OCTETS: usize = 1_460;

impl State {
    pub(super) fn connect(
        &mut self,
        endpoint: usize,
        spec: &SocketSpec,
    ) -> Result<SocketId, SocketError> {
        let to = spec.peer.ok_or(SocketError::Other(libc::EDESTADDRREQ))?;
        let wanted = self
            .local_for(endpoint, spec)
            .ok_or(SocketError::Unreachable)?;
        let from = self
            .stream_ports
            .claim(wanted, to)
            .ok_or(SocketError::NoLocalPort)?;
        let stream = Kind::Stream(Stream::new(StreamState::Opening, None));
        let id = self.endpoints[endpoint].insert(Socket::new(from, Some(to), stream));
        let client = Owner {
            endpoint,
            socket: id,
        };
        match self.network.segment(self.now, to.ip(), Retransmission::SYN) {
            Ok(at) => self.schedule_syn(at, client, (from, to), 0),
            Err(gave_up) => self.schedule_give_up(client, gave_up),
        }
        Ok(id)
    }

    fn schedule_syn(
        &mut self,
        at: Instant,
        client: Owner,
        (from, to): (SocketAddr, SocketAddr),
        repeats: u32,
    ) {
        let arrival = Arrival::Syn {
            client,
            from,
            to,
            repeats,
        };
        self.schedule(at, Some(to.ip()), arrival);
    }

    /// A SYN arrived: a stream for the listener's owner, a refusal, or nothing.
    pub(super) fn deliver_syn(
        &mut self,
        client: Owner,
        (from, to): (SocketAddr, SocketAddr),
        repeats: u32,
    ) {
        if repeats > 0 && self.socket(client).is_none() {
            // The sender is gone and cannot repeat it.
            return;
        }
        let Some(listener) = self.listeners.receiver(from, to) else {
            self.send_failure(client, from.ip(), SocketError::Refused);
            return;
        };
        match &mut self.endpoints[listener.endpoint].backlog_room {
            Some(0) => return self.repeat_syn(client, (from, to), repeats),
            Some(room) => *room -= 1,
            None => {}
        }
        let stream = Stream::new(StreamState::Open(client), Some(listener.socket));
        let socket = Socket::new(to, Some(from), Kind::Stream(stream));
        let endpoint = listener.endpoint;
        let id = self.endpoints[endpoint].insert(socket);
        let server = Owner {
            endpoint,
            socket: id,
        };
        self.mark_ready(server);
        if let Some(at) = self.next_arrival_of(server, from.ip()) {
            self.schedule(at, Some(from.ip()), Arrival::SynAck { to: client, server });
        }
    }

    /// The listener's backlog is full: the SYN is dropped silently.
    fn repeat_syn(&mut self, client: Owner, (from, to): (SocketAddr, SocketAddr), repeats: u32) {
        self.network.stats.syns_dropped += 1;
        match self.network.repeated_syn(self.now, to.ip(), repeats) {
            Ok((at, repeats)) => self.schedule_syn(at, client, (from, to), repeats),
            Err(gave_up) => self.schedule_give_up(client, gave_up),
        }
    }

    /// The SYN,ACK arrived: the client is connected, unless it has closed the socket.
    pub(super) fn deliver_syn_ack(&mut self, client: Owner, server: Owner) {
        if self.socket(client).is_none() {
            self.refuse_segment_of(server);
            return;
        }
        self.change_stream(client, |stream| {
            stream.state = StreamState::Open(server);
            stream.connected = true;
            stream.unblock();
        });
    }

    /// Octets arrived: those for a closed socket are answered with a RST (RFC 9293, 3.10.7.1).
    pub(super) fn deliver_segment(&mut self, to: Owner, sender: Owner, octets: Vec<u8>) {
        if self.socket(to).is_none() {
            self.refuse_segment_of(sender);
        }
        self.change_stream(to, |stream| stream.inbox.extend(&octets));
        self.buffers.give_back(octets);
    }

    /// Changes a stream that is neither closed nor broken, and queues what its owner has to
    /// learn of it.
    pub(super) fn change_stream(&mut self, owner: Owner, change: impl FnOnce(&mut Stream)) {
        let Some(stream) = self.socket_mut(owner).and_then(Socket::stream_mut) else {
            return;
        };
        if !matches!(stream.state, StreamState::Broken(_)) {
            change(stream);
            self.mark_ready(owner);
        }
    }

    /// Lets the owner of a stream stop or resume reading.
    pub(super) fn pause_stream(&mut self, owner: Owner, paused: bool) {
        if let Some(stream) = self.socket_mut(owner).and_then(Socket::stream_mut) {
            stream.paused = paused;
            self.mark_ready(owner);
        }
    }

    pub(super) fn send_bytes(&mut self, from: Owner, bytes: &[u8]) -> Result<usize, SocketError> {
        let window = self.network.config.stream_window_octets;
        let socket = self
            .socket_mut(from)
            .ok_or(SocketError::Other(libc::EBADF))?;
        let peer = socket.peer;
        let stream = socket
            .stream_mut()
            .ok_or(SocketError::Other(libc::ENOTCONN))?;
        if stream.finished {
            return Err(SocketError::Reset);
        }
        let room = match stream.state {
            StreamState::Opening => 0,
            StreamState::Open(_) => window - stream.unread_octets,
            StreamState::Broken(error) => return Err(error),
        };
        let taken = bytes.len().min(room);
        stream.blocked = taken < bytes.len();
        stream.unread_octets += taken;
        let state = stream.state;
        self.endpoints[from.endpoint].stats.stream_calls += 1;
        if let (StreamState::Open(to), Some(peer)) = (state, peer) {
            self.send_segments((from, to), peer.ip(), &bytes[..taken]);
        }
        Ok(taken)
    }

    /// Sends octets that fit the window; neighbours that arrive together travel as one.
    fn send_segments(&mut self, (sender, to): (Owner, Owner), address: IpAddr, bytes: &[u8]) {
        let mut scheduled = 0;
        let mut last = None;
        for (index, segment) in bytes.chunks(SEGMENT_OCTETS).enumerate() {
            let start = index * SEGMENT_OCTETS;
            let at = self.next_arrival_of(sender, address);
            if let Some(earlier) = last.filter(|_| at != last) {
                let octets = self.buffers.copy(&bytes[scheduled..start]);
                let arrival = Arrival::Segment { to, sender, octets };
                self.schedule(earlier, Some(address), arrival);
                scheduled = start;
            }
            last = at;
            let Some(at) = at else { return };
            if start + segment.len() == bytes.len() {
                let octets = self.buffers.copy(&bytes[scheduled..]);
                self.schedule(at, Some(address), Arrival::Segment { to, sender, octets });
            }
        }
    }

    /// When the next segment of this socket arrives, after all before it; `None` if it never
    /// does, which the socket learns when it has given up.
    fn next_arrival_of(&mut self, sender: Owner, address: IpAddr) -> Option<Instant> {
        let now = self.now;
        let stream = self.endpoints[sender.endpoint]
            .get_mut(sender.socket)?
            .stream_mut()?;
        if stream.cut {
            return None;
        }
        match self.network.segment(now, address, Retransmission::SEGMENT) {
            Ok(at) => {
                stream.last_arrival = stream.last_arrival.max(at);
                Some(stream.last_arrival)
            }
            Err(gave_up) => {
                stream.cut = true;
                self.schedule_give_up(sender, gave_up);
                None
            }
        }
    }

    /// Tells the sender that `octets` more were read, so that its window opens by them.
    pub(super) fn report_read(&mut self, reader: Owner, octets: usize) {
        let Some(socket) = self.socket_mut(reader) else {
            return;
        };
        let Some(peer) = socket.peer else { return };
        let Some(StreamState::Open(to)) = socket.stream_mut().map(|stream| stream.state) else {
            return;
        };
        // A lost acknowledgement comes when the sender repeats what it believes unreceived.
        if let Ok(at) = self
            .network
            .segment(self.now, peer.ip(), Retransmission::SEGMENT)
        {
            self.schedule(at, Some(peer.ip()), Arrival::Read { to, octets });
        }
    }

    /// Sends FIN after the data; the stream stays open for what the other end sends.
    pub(super) fn finish_sending(&mut self, owner: Owner) {
        let Some(socket) = self.socket_mut(owner) else {
            return;
        };
        let peer = socket.peer;
        let Some((peer, stream)) = peer.zip(socket.stream_mut()) else {
            return;
        };
        if stream.finished {
            return;
        }
        stream.finished = true;
        let (state, cut, last_arrival) = (stream.state, stream.cut, stream.last_arrival);
        let (StreamState::Open(to), false) = (state, cut) else {
            return;
        };
        if let Ok(at) = self
            .network
            .segment(self.now, peer.ip(), Retransmission::SEGMENT)
        {
            self.schedule(at.max(last_arrival), Some(peer.ip()), Arrival::Fin { to });
        }
    }

    /// What the other end learns of a close: FIN after the data, or RST; the latter also if
    /// octets were left unread (RFC 2525, section 2.17).
    pub(super) fn end_stream(&mut self, peer: IpAddr, stream: &Stream, how: Close) {
        let StreamState::Open(to) = stream.state else {
            return;
        };
        let reset = how == Close::Reset || !stream.inbox.is_empty();
        if stream.cut || (stream.finished && !reset) {
            return;
        }
        let (at, arrival) = if reset {
            let arrival = Arrival::Failure {
                to,
                error: SocketError::Reset,
            };
            (self.network.unrepeated_segment(self.now, peer), arrival)
        } else {
            let at = self
                .network
                .segment(self.now, peer, Retransmission::SEGMENT);
            (at.ok(), Arrival::Fin { to })
        };
        if let Some(at) = at {
            self.schedule(at.max(stream.last_arrival), Some(peer), arrival);
        }
    }

    /// Resets the streams that a closed listener has not reported to its owner.
    pub(super) fn reset_not_accepted(&mut self, listener: Owner) {
        let orphans: Vec<_> = self.endpoints[listener.endpoint]
            .open_sockets()
            .filter(|(_, socket)| match &socket.kind {
                Kind::Stream(stream) => stream.not_accepted == Some(listener.socket),
                _ => false,
            })
            .map(|(id, _)| id)
            .collect();
        for socket in orphans {
            self.close(
                Owner {
                    endpoint: listener.endpoint,
                    socket,
                },
                Close::Reset,
            );
        }
    }

    /// Answers a segment of `sender` for a closed socket with a RST.
    fn refuse_segment_of(&mut self, sender: Owner) {
        if let Some(address) = self.socket(sender).map(|socket| socket.local.ip()) {
            self.send_failure(sender, address, SocketError::Reset);
        }
    }

    /// Sends a RST that is repeated as often as the segment that it answers.
    fn send_failure(&mut self, to: Owner, address: IpAddr, error: SocketError) {
        match self
            .network
            .segment(self.now, address, Retransmission::SEGMENT)
        {
            Ok(at) => self.schedule(at, Some(address), Arrival::Failure { to, error }),
            Err(gave_up) => self.schedule_give_up(to, gave_up),
        }
    }

    fn schedule_give_up(&mut self, owner: Owner, GaveUp(at): GaveUp) {
        let arrival = Arrival::Failure {
            to: owner,
            error: SocketError::TimedOut,
        };
        self.schedule(at, None, arrival);
    }
}
