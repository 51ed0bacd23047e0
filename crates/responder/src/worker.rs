//! The responder on a driver: one worker, its sockets and connections.
//!
//! Order of calls: [`ResponderWorker::new`], `open` (worker 0) or `open_shared` (the others, with
//! the addresses of worker 0), then `step` and the driver's `wait` in turn.

mod connections;
mod held;
mod memory;
mod quic;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use driver::{Close, Driver, Event, Outgoing, Received, SocketId};
use proto::{Instant, Transport};

use self::held::Held;
use self::memory::OctetsMax;
use crate::config::{ConfigError, ResponderConfig};
use crate::counters::Counters;
use crate::delayed::Destination;
use crate::listen;
use crate::octets::Octets;
use crate::place::WorkerPlace;
use crate::quic::Quic;
use crate::respond::{Fate, Respondent};
use crate::sockets::{Role, Sockets};
use crate::stream::{Delivery, Scratch, Settings};

/// Most deliveries handled in one step, so that a step ends under any load.
const DELIVERIES_PER_STEP_MAX: usize = 65_536;
/// Delayed datagrams sent in one call of the driver.
const DATAGRAMS_PER_SEND_MAX: usize = 1024;

/// One worker of a responder.
///
/// Sends and receives through the driver that each call is given, always the same one. Does not
/// allocate for a query that is answered at once, after buffers have grown to their size.
pub struct ResponderWorker {
    respondent: Respondent,
    place: WorkerPlace,
    addresses: Vec<(Transport, SocketAddr)>,
    sockets: Sockets,
    received: Received,
    outgoing: Outgoing,
    scratch: Scratch,
    settings: Settings,
    /// When to look whether a connection is idle: instant, index, generation.
    idle_timers: BinaryHeap<Reverse<(Instant, u32, u32)>>,
    connections: usize,
    /// Counted memory of connections over TCP.
    stream_octets: Octets,
    /// This worker's share of the memory.
    octets_max: OctetsMax,
    /// When the modelled server is done with a connection: instant, order, connection.
    held: BinaryHeap<Reverse<(Instant, u64, Held)>>,
    /// Connections that were held so far.
    holds: u64,
    /// Sockets of DoQ and DoH/3.
    quic_sockets: Vec<SocketId>,
}

impl ResponderWorker {
    /// A worker that has no sockets yet.
    ///
    /// # Errors
    /// The configuration contradicts itself.
    ///
    /// # Panics
    /// If `place` is not among the workers it counts.
    pub fn new(config: Arc<ResponderConfig>, place: WorkerPlace) -> Result<Self, ConfigError> {
        assert!(
            place.index < place.count,
            "a worker's index is below their count"
        );
        config.validate()?;
        let settings = Settings::of(&config);
        let octets_max = OctetsMax::of_worker(&config.limits, place.count);
        Ok(ResponderWorker {
            respondent: Respondent::new(config, place),
            settings,
            place,
            addresses: Vec::new(),
            sockets: Sockets::default(),
            received: Received::new(),
            outgoing: Outgoing::default(),
            scratch: Scratch::default(),
            idle_timers: BinaryHeap::new(),
            connections: 0,
            stream_octets: Octets::default(),
            octets_max,
            held: BinaryHeap::new(),
            holds: 0,
            quic_sockets: Vec::new(),
        })
    }

    /// Opens the sockets that the configuration names; stalls are counted from now.
    ///
    /// # Errors
    /// The system's error, with transport and address in its message; nothing stays open.
    pub fn open<D: Driver>(&mut self, driver: &mut D) -> io::Result<()> {
        let config = Arc::clone(&self.respondent.config);
        let http = config.listen_http.iter();
        let mut addresses = config.listen.clone();
        addresses.extend(http.map(|address| (Transport::Doh2, *address)));
        self.open_shared(driver, &addresses)
    }

    /// Opens sockets on `addresses`, those of worker 0 ([`ResponderWorker::addresses`]).
    ///
    /// # Errors
    /// As for [`ResponderWorker::open`].
    pub fn open_shared<D: Driver>(
        &mut self,
        driver: &mut D,
        addresses: &[(Transport, SocketAddr)],
    ) -> io::Result<()> {
        // Those without TLS come last, as in `open`.
        let with_tls = self.respondent.config.listen.len();
        let opened = listen::open(driver, addresses, self.place.count > 1)?;
        for (index, listening) in opened.into_iter().enumerate() {
            self.addresses
                .push((listening.transport, listening.address));
            let role = match listening.transport {
                Transport::Udp => Role::Datagrams,
                transport if transport.is_quic() => {
                    self.quic_sockets.push(listening.socket);
                    let config = &self.respondent.config;
                    let quic = Quic::new(config, transport, driver.seed(), self.place.count);
                    Role::Quic(Box::new(quic.map_err(io::Error::other)?))
                }
                transport => Role::Listener {
                    transport,
                    has_tls: transport.has_tls() && index < with_tls,
                },
            };
            self.sockets.insert(listening.socket, role);
        }
        self.respondent.start = driver.now();
        Ok(())
    }

    /// Counts stalls from `start` instead of from the opening of the sockets.
    pub fn set_start(&mut self, start: Instant) {
        self.respondent.start = start;
    }

    /// Where it listens, in the order of the configuration, DoH/2 without TLS last, with the
    /// ports it got.
    pub fn addresses(&self) -> &[(Transport, SocketAddr)] {
        &self.addresses
    }

    /// Where it listens for `transport` (the first such socket).
    pub fn address(&self, transport: Transport) -> Option<SocketAddr> {
        let listening = self
            .addresses
            .iter()
            .find(|(listening, _)| *listening == transport);
        listening.map(|(_, address)| *address)
    }

    /// What was counted so far.
    pub fn counters(&self) -> &Counters {
        &self.respondent.counters
    }

    /// Connections open now.
    pub fn connections(&self) -> usize {
        let quic = self.quic_sockets.iter();
        let quic = quic.filter_map(|&socket| self.sockets.quic_ref(socket));
        self.connections + quic.map(Quic::connections).sum::<usize>()
    }

    /// Responses that wait to be sent later.
    pub fn has_delayed(&self) -> bool {
        self.respondent.delayed.next_due() != Instant::FAR_FUTURE
    }

    /// Closes all sockets, connections in the given way; their delayed responses are counted as
    /// orphaned. The worker can open sockets again.
    pub fn close<D: Driver>(&mut self, driver: &mut D, how: Close) {
        for socket in std::mem::take(&mut self.quic_sockets) {
            self.close_quic(driver, socket, how);
        }
        for socket in self.sockets.all() {
            match self.sockets.connection(socket) {
                Some(_) => self.end(driver, socket, how),
                None => driver.close(socket, Close::Graceful),
            }
        }
        self.sockets = Sockets::default();
        self.addresses.clear();
        self.idle_timers.clear();
        self.held.clear();
    }

    /// Handles all deliveries and sends all due responses; returns when the next step is due even
    /// if nothing arrives ([`Instant::FAR_FUTURE`] if never).
    pub fn step<D: Driver>(&mut self, driver: &mut D) -> Instant {
        let mut received = std::mem::take(&mut self.received);
        let mut deliveries = 0;
        while deliveries < DELIVERIES_PER_STEP_MAX && driver.receive(&mut received) {
            deliveries += 1;
            self.handle(driver, &received);
            self.keep_within_memory(driver, received.at);
            if self.respondent.delayed.next_due() <= received.at {
                self.send_due(driver, received.at);
            }
        }
        self.received = received;
        if self.next_turn() != Instant::FAR_FUTURE {
            let now = driver.now();
            self.send_due(driver, now);
            self.release_held(driver, now);
            self.close_idle(driver, now);
            self.handle_quic_timers(driver, now);
            self.keep_within_memory(driver, now);
        }
        match deliveries == DELIVERIES_PER_STEP_MAX {
            true => driver.now(),
            false => self.next_turn(),
        }
    }

    fn next_turn(&self) -> Instant {
        let idle = self
            .idle_timers
            .peek()
            .map_or(Instant::FAR_FUTURE, |Reverse((at, ..))| *at);
        let quic = self.quic_sockets.iter();
        let quic = quic.filter_map(|&socket| self.sockets.quic_ref(socket));
        let quic = quic.map(Quic::timeout).min();
        let due = self.respondent.delayed.next_due().min(idle);
        let due = due.min(self.next_release());
        due.min(quic.unwrap_or(Instant::FAR_FUTURE))
    }

    fn handle<D: Driver>(&mut self, driver: &mut D, received: &Received) {
        match received.event {
            Event::Datagrams if self.sockets.quic(received.socket).is_some() => {
                self.answer_quic(driver, received);
            }
            Event::Datagrams => self.answer_datagrams(driver, received),
            Event::Bytes => self.answer_stream(driver, received),
            Event::Accepted { listener, .. } => {
                self.accept(driver, received.socket, listener, received.at);
            }
            Event::EndOfStream => {
                if let Some(connection) = self.sockets.connection(received.socket) {
                    connection.handle_end_of_stream();
                    self.send_wire(driver, received.socket);
                }
            }
            Event::Writable => self.send_wire(driver, received.socket),
            Event::Failed(_) => self.end(driver, received.socket, Close::Reset),
            // A server's socket does not connect; an ICMP message says that a client has gone.
            Event::Connected | Event::DatagramError(_) => {}
        }
    }

    // Datagrams.

    fn answer_datagrams<D: Driver>(&mut self, driver: &mut D, received: &Received) {
        let Some(Role::Datagrams) = self.sockets.get_mut(received.socket) else {
            return;
        };
        let context = (received.at, Transport::Udp);
        self.outgoing.clear();
        let mut octets = 0;
        for &datagram in &received.datagrams {
            octets += u64::from(datagram.length);
            let start = self.outgoing.octets.len();
            let destination = Destination::Datagram {
                socket: received.socket,
                to: datagram.from,
            };
            let query = received.datagram(datagram);
            let out = &mut self.outgoing.octets;
            if let Fate::Now(copies) = self.respondent.handle(context, destination, query, out) {
                self.outgoing.finish(start, Some(datagram.from));
                for _ in 1..copies {
                    let end = self.outgoing.octets.len();
                    let length = self.outgoing.datagrams[self.outgoing.datagrams.len() - 1].length;
                    self.outgoing
                        .octets
                        .extend_from_within(end - length as usize..);
                    self.outgoing.finish(end, Some(datagram.from));
                }
            }
        }
        self.respondent
            .counters
            .octets_received
            .add(Transport::Udp, octets);
        self.send_outgoing(driver, received.socket, Transport::Udp);
    }

    fn send_outgoing<D: Driver>(&mut self, driver: &mut D, socket: SocketId, transport: Transport) {
        let count = self.outgoing.datagrams.len();
        if count == 0 {
            return;
        }
        let accepted = driver
            .send_datagrams(socket, &self.outgoing)
            .accepted
            .min(count);
        let octets = match accepted == count {
            true => self.outgoing.octets.len() as u64,
            false => {
                let taken = &self.outgoing.datagrams[..accepted];
                taken
                    .iter()
                    .map(|datagram| u64::from(datagram.length))
                    .sum()
            }
        };
        let counters = &mut self.respondent.counters;
        // Over QUIC, responses are counted by stream.
        if transport == Transport::Udp {
            counters.responses.add(transport, accepted as u64);
        }
        counters.octets_sent.add(transport, octets);
        counters.send_dropped += (count - accepted) as u64;
        self.outgoing.clear();
    }

    // Delayed responses.

    fn send_due<D: Driver>(&mut self, driver: &mut D, now: Instant) {
        // The collected responses go to the socket of this destination.
        let mut collected: Option<Destination> = None;
        while let Some(slot) = self.respondent.delayed.take_due(now) {
            let destination = self.respondent.delayed.get(slot).destination;
            let full = self.outgoing.datagrams.len() >= DATAGRAMS_PER_SEND_MAX;
            if let Some(previous) = collected
                && (full || previous.socket() != destination.socket())
            {
                self.flush(driver, previous);
            }
            self.collect(slot);
            self.respondent.delayed.release(slot);
            collected = Some(destination);
        }
        if let Some(last) = collected {
            self.flush(driver, last);
        }
    }

    fn collect(&mut self, slot: u32) {
        if let Destination::Quic {
            socket,
            connection,
            stream,
        } = self.respondent.delayed.get(slot).destination
        {
            self.collect_quic(slot, socket, (connection, stream));
            return;
        }
        let Respondent {
            config,
            counters,
            delayed,
            ..
        } = &mut self.respondent;
        let waiting = delayed.get(slot);
        let role = self.sockets.get_mut(waiting.destination.socket());
        match (waiting.destination, role) {
            (Destination::Datagram { to, .. }, Some(Role::Datagrams)) => {
                let start = self.outgoing.octets.len();
                self.outgoing.octets.extend_from_slice(&waiting.message);
                self.outgoing.finish(start, Some(to));
            }
            (Destination::Stream { .. }, Some(Role::Connection(connection))) => {
                let unsent_max = config.limits.unsent_octets_max;
                match connection.write_delayed(waiting, unsent_max, &mut self.scratch) {
                    Delivery::Sent => counters.count_reply(connection.transport, waiting.reply),
                    Delivery::Unread => counters.unread_dropped += 1,
                    Delivery::Gone => counters.orphaned += 1,
                }
            }
            _ => counters.orphaned += 1,
        }
    }

    fn flush<D: Driver>(&mut self, driver: &mut D, destination: Destination) {
        match destination {
            Destination::Datagram { socket, .. } => {
                self.send_outgoing(driver, socket, Transport::Udp);
            }
            Destination::Quic { socket, .. } => {
                let now = driver.now();
                self.send_quic(driver, socket, now);
            }
            Destination::Stream { socket, .. } => self.send_wire(driver, socket),
        }
    }
}
