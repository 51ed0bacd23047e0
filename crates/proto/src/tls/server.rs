//! The server's side of a session.

use super::failure::TlsFailure;
use super::handshake::{HandshakeKind, Negotiated};
use super::records::RecordBoundaries;
use super::stream::{Progress, receive, send, take_records};
use rustls::ServerConnection;
use std::sync::Arc;

/// A server-side session over octets that the caller moves; the mirror of [`super::ClientTls`].
pub struct ServerTls {
    session: ServerConnection,
    boundaries: RecordBoundaries,
}

impl ServerTls {
    /// Waits for a handshake.
    ///
    /// # Errors
    /// The configuration is contradictory (rustls' description).
    pub fn new(config: Arc<rustls::ServerConfig>) -> Result<Self, String> {
        let mut session = ServerConnection::new(config).map_err(|error| error.to_string())?;
        session.set_buffer_limit(None);
        Ok(ServerTls {
            session,
            boundaries: RecordBoundaries::default(),
        })
    }

    /// Refuses the early data of this session, whatever the configuration says; the client has to
    /// send it again (RFC 8446, section 4.2.10). To be called before its first octets come.
    pub fn refuse_early_data(&mut self) {
        self.session.reject_early_data();
    }

    /// True until both sides have finished the handshake.
    pub fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// Takes octets from the socket; appends the plaintext in them to `plaintext`, early data
    /// included.
    ///
    /// # Errors
    /// As [`super::ClientTls::handle_bytes`].
    pub fn handle_bytes(
        &mut self,
        bytes: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<Progress, TlsFailure> {
        receive(&mut self.session, &mut self.boundaries, bytes, plaintext)
    }

    /// Encrypts `plaintext`, as [`super::ClientTls::write`]; before the handshake is over only if
    /// it follows on early data.
    pub fn write(&mut self, plaintext: &[u8]) {
        send(&mut self.session, plaintext);
    }

    /// Says that nothing more will be written (close_notify).
    pub fn close(&mut self) {
        self.session.send_close_notify();
    }

    /// Appends all octets that wait for the socket to `transmit`.
    pub fn poll_transmit(&mut self, transmit: &mut Vec<u8>) {
        take_records(&mut self.session, transmit);
    }

    /// What the handshake agreed on; `None` before that.
    pub fn negotiated(&self) -> Option<Negotiated> {
        Negotiated::of(&self.session)
    }

    /// Whether the handshake was a full one; `None` before its end.
    pub fn handshake_kind(&self) -> Option<HandshakeKind> {
        if self.session.is_handshaking() {
            return None;
        }
        self.session.handshake_kind().map(HandshakeKind::from)
    }

    /// What the handshake is going to be, as soon as the client's first message says it.
    pub fn handshake_begun(&self) -> Option<HandshakeKind> {
        self.session.handshake_kind().map(HandshakeKind::from)
    }

    /// True if early data of the client was accepted.
    pub fn has_early_data(&mut self) -> bool {
        self.session.early_data().is_some()
    }
}
