//! The QUIC sockets of a worker: datagrams, timers and output.

use driver::{Close, Driver, Received, SocketId};
use proto::Instant;
use proto::quic::ConnectionKey;

use super::ResponderWorker;

impl ResponderWorker {
    pub(super) fn answer_quic<D: Driver>(&mut self, driver: &mut D, received: &Received) {
        if let Some(quic) = self.sockets.quic(received.socket) {
            quic.handle_datagrams(received, &mut self.respondent);
            for (key, until) in std::mem::take(&mut quic.held) {
                self.hold_quic(received.socket, key, until);
            }
            self.send_quic(driver, received.socket, received.at);
        }
    }

    /// Handles the due timers of all QUIC sockets.
    pub(super) fn handle_quic_timers<D: Driver>(&mut self, driver: &mut D, now: Instant) {
        for index in 0..self.quic_sockets.len() {
            let socket = self.quic_sockets[index];
            let Some(quic) = self.sockets.quic(socket) else {
                continue;
            };
            if quic.timeout() <= now {
                quic.handle_timeout(socket, now, &mut self.respondent);
                self.send_quic(driver, socket, now);
            }
        }
    }

    /// Passes a delayed reply to its connection.
    pub(super) fn collect_quic(
        &mut self,
        slot: u32,
        socket: SocketId,
        stream: (ConnectionKey, u64),
    ) {
        let Some(quic) = self.sockets.quic(socket) else {
            self.respondent.counters.orphaned += 1;
            return;
        };
        let waiting = self.respondent.delayed.take(slot);
        quic.reply_delayed(stream, waiting, &mut self.respondent);
        let buffer = quic.take_buffer();
        self.respondent.delayed.give_back(slot, buffer);
    }

    /// Sends the output of a socket's connections, and ends those that are to end.
    pub(super) fn send_quic<D: Driver>(&mut self, driver: &mut D, socket: SocketId, now: Instant) {
        loop {
            let Some(quic) = self.sockets.quic(socket) else {
                return;
            };
            let transport = quic.transport();
            let mut goes_on = quic.fill(now, &mut self.outgoing);
            if !goes_on {
                goes_on = quic.end_connections(now, &mut self.respondent);
            }
            self.send_outgoing(driver, socket, transport);
            if !goes_on {
                return;
            }
        }
    }

    pub(super) fn close_quic<D: Driver>(&mut self, driver: &mut D, socket: SocketId, how: Close) {
        let now = driver.now();
        if let Some(quic) = self.sockets.quic(socket) {
            quic.end_all(now, how, &mut self.respondent);
            self.send_quic(driver, socket, now);
        }
    }
}
