//! Held connections: while the modelled server is busy with them, they are neither read nor
//! answered.

use std::cmp::Reverse;

use driver::{Driver, SocketId};
use proto::Instant;
use proto::quic::ConnectionKey;

use super::ResponderWorker;
use crate::service::ServiceCounts;

/// A held connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Held {
    /// A connection over TCP, by index and generation of its socket.
    Stream(u32, u32),
    /// A QUIC connection of a socket, by index and generation of that.
    Quic([u32; 2], ConnectionKey),
}

impl ResponderWorker {
    /// Lets the model of the server count jobs that arrive from `from` until before `until`.
    pub fn observe_service(&mut self, from: Instant, until: Instant) {
        if let Some(service) = &mut self.respondent.service {
            service.observe(from, until);
        }
    }

    /// The counts of the model of the server; `None` without one.
    pub fn service_counts(&self) -> Option<&ServiceCounts> {
        let service = self.respondent.service.as_ref();
        service.map(crate::service::Service::counts)
    }

    /// How many more connections may wait to be accepted, and when there may be more; `None` if
    /// no model limits them.
    pub fn backlog(&mut self, now: Instant) -> Option<(u32, Instant)> {
        self.respondent.service.as_mut()?.backlog(now)
    }

    /// Holds a connection until the modelled server has accepted it.
    pub(super) fn hold_accepted<D: Driver>(
        &mut self,
        driver: &mut D,
        socket: SocketId,
        now: Instant,
    ) {
        let Some(service) = &mut self.respondent.service else {
            return;
        };
        let until = service.accept(now);
        if until <= now {
            return;
        }
        if let Some(connection) = self.sockets.connection(socket) {
            connection.held_until = Some(until);
            connection.reading_paused = true;
            driver.pause_reading(socket, true);
        }
        self.hold(until, Held::Stream(socket.index, socket.generation));
    }

    /// Holds a connection because its handshake has begun.
    pub(super) fn hold_begun(&mut self, socket: SocketId) {
        let connection = self.sockets.connection(socket);
        if let Some(until) = connection.and_then(|connection| connection.held_until) {
            self.hold(until, Held::Stream(socket.index, socket.generation));
        }
    }

    /// Holds the output of a QUIC connection.
    pub(super) fn hold_quic(&mut self, socket: SocketId, key: ConnectionKey, until: Instant) {
        let socket = [socket.index, socket.generation];
        self.hold(until, Held::Quic(socket, key));
    }

    fn hold(&mut self, until: Instant, held: Held) {
        self.held.push(Reverse((until, self.holds, held)));
        self.holds += 1;
    }

    pub(super) fn next_release(&self) -> Instant {
        let first = self.held.peek();
        first.map_or(Instant::FAR_FUTURE, |Reverse((until, ..))| *until)
    }

    /// Reads and answers connections that the modelled server is done with.
    pub(super) fn release_held<D: Driver>(&mut self, driver: &mut D, now: Instant) {
        while self.next_release() <= now {
            match self.held.pop() {
                Some(Reverse((_, _, Held::Stream(index, generation)))) => {
                    let socket = SocketId { index, generation };
                    if let Some(connection) = self.sockets.connection(socket) {
                        connection.held_until = None;
                        self.send_wire(driver, socket);
                    }
                }
                Some(Reverse((_, _, Held::Quic([index, generation], key)))) => {
                    let socket = SocketId { index, generation };
                    if let Some(quic) = self.sockets.quic(socket) {
                        quic.release(key);
                        self.send_quic(driver, socket, now);
                    }
                }
                None => return,
            }
        }
    }
}
