//! The connections of a worker: accepting, moving octets, ending.

use std::cmp::Reverse;

use driver::{Close, Driver, Received, SocketError, SocketId};
use proto::Instant;

use super::ResponderWorker;
use crate::sockets::Role;
use crate::stream::{Connection, Continuation, Expiry};

/// Timers of closed connections are removed once there are more than this number beside one for
/// each open connection.
const DEAD_TIMERS_MAX: usize = 1024;

impl ResponderWorker {
    pub(super) fn accept<D: Driver>(
        &mut self,
        driver: &mut D,
        socket: SocketId,
        listener: SocketId,
        now: Instant,
    ) {
        let Some(&mut Role::Listener { transport, has_tls }) = self.sockets.get_mut(listener)
        else {
            driver.close(socket, Close::Reset);
            return;
        };
        let config = &self.respondent.config;
        let counters = &mut self.respondent.counters;
        let own_max = config.limits.connections_max;
        let max = config
            .behaviour
            .tcp_clients_max
            .map_or(own_max, |max| max.min(own_max));
        if !config.open_connections.admit(max) {
            counters.connections_refused.add(transport, 1);
            let close = match config.behaviour.excess_is_reset {
                true => Close::Reset,
                false => Close::Graceful,
            };
            driver.close(socket, close);
            return;
        }
        match Connection::new((transport, has_tls), &self.settings, now) {
            Ok(connection) => {
                counters.connections_accepted.add(transport, 1);
                self.sockets
                    .insert(socket, Role::Connection(Box::new(connection)));
                self.connections += 1;
                self.count_octets(socket);
                self.watch_idle(socket, now);
                self.hold_accepted(driver, socket, now);
            }
            Err(_) => {
                counters.connections_refused.add(transport, 1);
                config.open_connections.release();
                driver.close(socket, Close::Reset);
            }
        }
    }

    pub(super) fn answer_stream<D: Driver>(&mut self, driver: &mut D, received: &Received) {
        let socket = received.socket;
        let Some(connection) = self.sockets.connection(socket) else {
            return;
        };
        let bytes = received.bytes();
        let counters = &mut self.respondent.counters;
        counters
            .octets_received
            .add(connection.transport, bytes.len() as u64);
        let input = (bytes, received.at);
        let progress =
            connection.handle_bytes(socket, input, &mut self.respondent, &mut self.scratch);
        self.hold_begun(socket);
        self.send_wire(driver, socket);
        if progress == Continuation::Broken {
            // Close gracefully, so that the alert is not lost.
            self.end(driver, socket, Close::Graceful);
        }
    }

    /// Sends the connection's unsent bytes and the scratch buffer, and ends the connection if
    /// nothing more follows.
    pub(super) fn send_wire<D: Driver>(&mut self, driver: &mut D, socket: SocketId) {
        let wire = &mut self.scratch.wire;
        let Some(connection) = self.sockets.connection(socket) else {
            wire.clear();
            return;
        };
        if connection.is_answered() {
            connection.say_goodbye(wire);
        }
        let result = match connection.held_until {
            Some(_) => {
                connection.unsent.extend_from_slice(wire);
                Ok(0)
            }
            None => transmit(driver, socket, &mut connection.unsent, wire),
        };
        wire.clear();
        self.count_octets(socket);
        let Some(connection) = self.sockets.connection(socket) else {
            return;
        };
        match result {
            Ok(octets) => {
                let counters = &mut self.respondent.counters;
                counters
                    .octets_sent
                    .add(connection.transport, octets as u64);
                let pause = connection.wants_pause(self.respondent.config.limits.unsent_octets_max);
                if connection.half_closes_now() {
                    driver.finish_sending(socket);
                } else if let Some(how) = connection.ready_to_close() {
                    self.end(driver, socket, how);
                } else if pause != connection.reading_paused {
                    connection.reading_paused = pause;
                    driver.pause_reading(socket, pause);
                }
            }
            Err(_) => self.end(driver, socket, Close::Reset),
        }
    }

    /// Closes the connection if it is still open.
    pub(super) fn end<D: Driver>(&mut self, driver: &mut D, socket: SocketId, how: Close) {
        let Some(connection) = self.sockets.remove_connection(socket) else {
            return;
        };
        driver.close(socket, how);
        self.connections -= 1;
        self.stream_octets -= connection.counted;
        self.respondent.config.open_connections.release();
        let counters = &mut self.respondent.counters;
        counters.handshakes_failed += u64::from(connection.is_handshaking());
        match how {
            Close::Graceful => counters.connections_closed.add(connection.transport, 1),
            Close::Reset => counters.connections_reset.add(connection.transport, 1),
        }
    }

    fn watch_idle(&mut self, socket: SocketId, now: Instant) {
        if self.idle_timers.len() > 2 * self.connections + DEAD_TIMERS_MAX {
            let sockets = &mut self.sockets;
            self.idle_timers.retain(|Reverse((_, index, generation))| {
                sockets.is_connection(*index, *generation)
            });
        }
        let limits = Expiry::of(&self.respondent.config);
        if let Some(connection) = self.sockets.connection(socket) {
            let (at, _) = connection.expires_at(now, limits);
            self.idle_timers
                .push(Reverse((at, socket.index, socket.generation)));
        }
    }

    pub(super) fn close_idle<D: Driver>(&mut self, driver: &mut D, now: Instant) {
        let limits = Expiry::of(&self.respondent.config);
        while let Some(&Reverse((at, index, generation))) = self.idle_timers.peek()
            && at <= now
        {
            self.idle_timers.pop();
            let socket = SocketId { index, generation };
            let Some(connection) = self.sockets.connection(socket) else {
                continue;
            };
            let (at, is_late) = connection.expires_at(now, limits);
            if at > now {
                self.idle_timers.push(Reverse((at, index, generation)));
                continue;
            }
            match is_late {
                true => self.respondent.counters.handshakes_late += 1,
                false => self.respondent.counters.connections_idle += 1,
            }
            connection.handle_end_of_stream();
            self.send_wire(driver, socket);
            // Do not wait for a client that does not read.
            self.end(driver, socket, Close::Reset);
        }
    }
}

/// Sends the unsent bytes, then `wire`; the rest that the stream does not accept is kept as unsent.
fn transmit<D: Driver>(
    driver: &mut D,
    socket: SocketId,
    unsent: &mut Vec<u8>,
    wire: &[u8],
) -> Result<usize, SocketError> {
    let mut sent = 0;
    if !unsent.is_empty() {
        sent = driver.send_bytes(socket, unsent)?;
        unsent.drain(..sent);
        if unsent.is_empty() {
            *unsent = Vec::new();
        }
    }
    let mut taken = 0;
    if unsent.is_empty() && !wire.is_empty() {
        taken = driver.send_bytes(socket, wire)?;
    }
    unsent.extend_from_slice(&wire[taken..]);
    Ok(sent + taken)
}
