//! Handshakes that clients leave unfinished, and clients that have not proved their address.

use super::QuicServer;
use super::connection::Connection;
use crate::Instant;
use crate::quic::{ConnectionKey, LostReason};

impl Connection {
    /// The client has proved its address, or is gone.
    pub(super) fn validate(&mut self, unvalidated: &mut usize) {
        *unvalidated -= usize::from(std::mem::take(&mut self.is_unvalidated));
    }
}

impl QuicServer {
    /// Connections whose client has not proved its address (RFC 9000, section 8.1).
    pub fn unvalidated(&self) -> usize {
        self.unvalidated
    }

    pub(super) fn is_full_of_unvalidated(&self) -> bool {
        self.unvalidated >= self.options.unvalidated_max
    }

    /// Remembers when a handshake began, and forgets the oldest ones that are over.
    pub(super) fn begin_handshake(&mut self, key: ConnectionKey) {
        while let Some((_, oldest)) = self.handshakes.front()
            && !self
                .connections
                .get(*oldest)
                .is_some_and(|it| it.is_handshaking)
        {
            self.handshakes.pop_front();
        }
        self.handshakes.push_back((self.now, key));
    }

    /// When the oldest handshake is to be checked.
    pub(super) fn handshake_due(&self) -> Option<Instant> {
        let (begun_at, _) = self.handshakes.front()?;
        Some(*begun_at + self.options.handshake_timeout?)
    }

    /// Gives up the handshakes that take too long.
    pub(super) fn end_late_handshakes(&mut self) {
        while self.handshake_due().is_some_and(|due| due <= self.now)
            && let Some((_, key)) = self.handshakes.pop_front()
        {
            let Some(connection) = self.connections.get_mut(key) else {
                continue;
            };
            if connection.is_handshaking {
                connection.give_up(LostReason::HandshakeTimeout);
                self.mark(key);
            }
        }
    }
}
