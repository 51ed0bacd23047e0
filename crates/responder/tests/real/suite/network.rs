//! A driver whose network is in memory, and a worker on it.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use driver::{
    Accepted, Close, Datagram, Driver, DriverStats, Event, Outgoing, Received, SocketError,
    SocketId, SocketSpec,
};
use proto::query::{Edns, QueryOptions, write_query};
use proto::{Instant, Transport, name};
use responder::{ResponderConfig, ResponderWorker, WorkerPlace};

/// One end of a stream, as the client sees it.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    pub(crate) received: Vec<u8>,
    pub(crate) closed: Option<Close>,
    pub(crate) paused: bool,
    pub(crate) finished: bool,
    /// Octets that the stream still takes before it blocks.
    pub(crate) room: Option<usize>,
}

#[derive(Debug, Default)]
pub(crate) struct Network {
    pub(crate) clock: Instant,
    events: VecDeque<Received>,
    sockets: BTreeMap<u32, SocketAddr>,
    next_socket: u32,
    /// Datagrams sent: when, to whom, what.
    pub(crate) sent: Vec<(Instant, SocketAddr, Vec<u8>)>,
    /// Calls that sent datagrams.
    pub(crate) send_calls: usize,
    /// Datagrams taken in one call.
    pub(crate) datagrams_max: Option<usize>,
    pub(crate) streams: BTreeMap<u32, Stream>,
    /// Number of TCP ports that will be reported as taken.
    pub(crate) ports_taken: usize,
}

impl Network {
    fn open(&mut self, local: Option<SocketAddr>) -> SocketId {
        let index = self.next_socket;
        self.next_socket += 1;
        let mut address = local.unwrap();
        if address.port() == 0 {
            address.set_port(40_000 + index as u16);
        }
        self.sockets.insert(index, address);
        SocketId {
            index,
            generation: 7,
        }
    }

    fn deliver(&mut self, socket: SocketId, event: Event, bytes: &[u8]) {
        let mut received = Received::new();
        received.socket = socket;
        received.event = event;
        received.at = self.clock;
        received.buffer.extend_from_slice(bytes);
        received.stream_octets = bytes.len();
        self.events.push_back(received);
    }
}

impl Driver for Network {
    fn now(&mut self) -> Instant {
        self.clock
    }

    fn unix_time(&self) -> Duration {
        Duration::from_secs(1_700_000_000)
    }

    fn open_udp(&mut self, spec: &SocketSpec) -> io::Result<SocketId> {
        Ok(self.open(spec.local))
    }

    fn connect_tcp(&mut self, _: &SocketSpec) -> Result<SocketId, SocketError> {
        Err(SocketError::Refused)
    }

    fn listen_tcp(&mut self, spec: &SocketSpec) -> io::Result<SocketId> {
        if self.ports_taken > 0 {
            self.ports_taken -= 1;
            return Err(io::ErrorKind::AddrInUse.into());
        }
        Ok(self.open(spec.local))
    }

    fn local_addr(&self, socket: SocketId) -> io::Result<SocketAddr> {
        Ok(self.sockets[&socket.index])
    }

    fn send_datagrams(&mut self, socket: SocketId, outgoing: &Outgoing) -> Accepted {
        assert!(
            self.sockets.contains_key(&socket.index),
            "sent on a closed socket"
        );
        self.send_calls += 1;
        let accepted = outgoing
            .datagrams
            .len()
            .min(self.datagrams_max.unwrap_or(usize::MAX));
        let mut start = 0;
        for datagram in &outgoing.datagrams[..accepted] {
            let octets = &outgoing.octets[start..][..datagram.length as usize];
            start += octets.len();
            self.sent
                .push((self.clock, datagram.to.unwrap(), octets.to_vec()));
        }
        Accepted {
            accepted,
            error: None,
        }
    }

    fn send_bytes(&mut self, socket: SocketId, bytes: &[u8]) -> Result<usize, SocketError> {
        let stream = self.streams.get_mut(&socket.index).unwrap();
        assert_eq!(stream.closed, None, "sent on a closed stream");
        let taken = bytes.len().min(stream.room.unwrap_or(usize::MAX));
        stream.received.extend_from_slice(&bytes[..taken]);
        stream.room = stream.room.map(|room| room - taken);
        Ok(taken)
    }

    fn finish_sending(&mut self, socket: SocketId) {
        self.streams.get_mut(&socket.index).unwrap().finished = true;
    }

    fn pause_reading(&mut self, socket: SocketId, paused: bool) {
        self.streams.get_mut(&socket.index).unwrap().paused = paused;
    }

    fn close(&mut self, socket: SocketId, how: Close) {
        self.sockets.remove(&socket.index);
        if let Some(stream) = self.streams.get_mut(&socket.index) {
            assert_eq!(stream.closed.replace(how), None, "closed twice");
        }
    }

    fn receive(&mut self, received: &mut Received) -> bool {
        match self.events.pop_front() {
            Some(event) => {
                *received = event;
                true
            }
            None => false,
        }
    }

    fn wait(&mut self, until: Instant) {
        self.clock = until;
    }

    fn stats(&self) -> DriverStats {
        DriverStats::default()
    }
}

/// A worker, the network it is on, and its listeners.
pub(crate) struct Target {
    config: Arc<ResponderConfig>,
    pub(crate) network: Network,
    pub(crate) worker: ResponderWorker,
    listeners: BTreeMap<&'static str, SocketId>,
    /// When the worker's next step is due.
    pub(crate) next_turn: Instant,
}

/// Source address of the client's datagrams.
pub(crate) fn client(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

pub(crate) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(crate) fn at_ms(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

impl Target {
    /// A worker with the behaviour that `change` makes, listening for all transports.
    pub(crate) fn new(change: impl FnOnce(&mut ResponderConfig)) -> Target {
        Target::sharing(1, change)
    }

    /// As [`Target::new`], the first one of `workers`.
    pub(crate) fn sharing(workers: u32, change: impl FnOnce(&mut ResponderConfig)) -> Target {
        let mut config = ResponderConfig::default();
        change(&mut config);
        if config.tls.is_some() {
            let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            config.listen.push((Transport::Dot, local));
            config.listen.push((Transport::Doh2, local));
        }
        let (index, count) = (0, workers);
        Target::on(Arc::new(config), WorkerPlace { index, count })
    }

    /// Another worker with the same configuration, on a network of its own.
    pub(crate) fn sibling(&self) -> Target {
        Target::on(Arc::clone(&self.config), WorkerPlace::ONLY)
    }

    fn on(config: Arc<ResponderConfig>, place: WorkerPlace) -> Target {
        let mut network = Network::default();
        let mut worker = ResponderWorker::new(Arc::clone(&config), place).unwrap();
        worker.open(&mut network).unwrap();
        let names = worker
            .addresses()
            .iter()
            .map(|(transport, _)| transport.name());
        let listeners = names
            .zip(0..)
            .map(|(name, index)| {
                (
                    name,
                    SocketId {
                        index,
                        generation: 7,
                    },
                )
            })
            .collect();
        Target {
            config,
            network,
            worker,
            listeners,
            next_turn: Instant::FAR_FUTURE,
        }
    }

    /// Delivers datagrams from `client(port)`, in one batch, and lets the worker have its turn.
    pub(crate) fn send_datagrams(&mut self, port: u16, queries: &[Vec<u8>]) {
        self.send_datagrams_to(Transport::Udp, port, queries);
    }

    /// As [`Target::send_datagrams`], to the listener of another transport.
    pub(crate) fn send_datagrams_to(
        &mut self,
        transport: Transport,
        port: u16,
        queries: &[Vec<u8>],
    ) {
        let mut received = Received::new();
        received.socket = self.listeners[transport.name()];
        received.at = self.network.clock;
        for query in queries {
            received.datagrams.push(Datagram {
                start: received.buffer.len() as u32,
                length: query.len() as u32,
                from: client(port),
            });
            received.buffer.extend_from_slice(query);
        }
        self.network.events.push_back(received);
        self.step();
    }

    pub(crate) fn step(&mut self) {
        self.next_turn = self.worker.step(&mut self.network);
    }

    /// Moves the clock to each due step of the worker, up to `end`, and then to `end`.
    pub(crate) fn run_until(&mut self, end: Instant) {
        for _ in 0..1_000_000 {
            if self.next_turn > end {
                self.network.wait(end);
                return;
            }
            assert!(
                self.next_turn >= self.network.clock,
                "wants a turn in the past"
            );
            self.network.wait(self.next_turn);
            self.step();
        }
        panic!("no end of turns");
    }

    /// Opens a connection.
    pub(crate) fn connect(&mut self, transport: Transport) -> SocketId {
        let socket = SocketId {
            index: self.network.next_socket,
            generation: 7,
        };
        self.network.next_socket += 1;
        self.network.streams.insert(socket.index, Stream::default());
        let listener = self.listeners[transport.name()];
        let event = Event::Accepted {
            listener,
            peer: client(1),
        };
        self.event(socket, event);
        socket
    }

    pub(crate) fn event(&mut self, socket: SocketId, event: Event) {
        self.network.deliver(socket, event, &[]);
        self.step();
    }

    pub(crate) fn send_bytes(&mut self, socket: SocketId, bytes: &[u8]) {
        self.network.deliver(socket, Event::Bytes, bytes);
        self.step();
    }

    pub(crate) fn stream(&mut self, socket: SocketId) -> &mut Stream {
        self.network.streams.get_mut(&socket.index).unwrap()
    }

    /// The messages that have come back on a TCP connection; nothing may be left over.
    pub(crate) fn messages(&mut self, socket: SocketId) -> Vec<Vec<u8>> {
        let octets = std::mem::take(&mut self.stream(socket).received);
        unframe(&octets)
    }
}

pub(crate) fn unframe(octets: &[u8]) -> Vec<Vec<u8>> {
    let mut deframer = proto::framing::Deframer::default();
    let mut messages = Vec::new();
    deframer.handle_bytes(octets, |message| messages.push(message.to_vec()));
    assert_eq!(deframer.partial_octets(), 0);
    messages
}

/// A query, from `www.example. A` with an ID.
pub(crate) fn query(id: u16, question: &str) -> Vec<u8> {
    query_with(id, question, None)
}

pub(crate) fn query_with(id: u16, question: &str, edns: Option<Edns>) -> Vec<u8> {
    let (owner, qtype) = question.split_once(' ').unwrap();
    let mut qname = Vec::new();
    name::parse(owner, &mut qname).unwrap();
    let options = QueryOptions {
        edns,
        ..QueryOptions::default()
    };
    let mut message = Vec::new();
    let qtype = proto::rr::type_from_text(qtype).unwrap();
    write_query(&qname, qtype, 1, &options, &mut message).unwrap();
    message[..2].copy_from_slice(&id.to_be_bytes());
    message
}

pub(crate) fn framed(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut stream = Vec::new();
    for message in messages {
        proto::framing::write_message(message, &mut stream);
    }
    stream
}

pub(crate) fn id(message: &[u8]) -> u16 {
    u16::from_be_bytes([message[0], message[1]])
}
