//! The server's side of a session.

use super::channel::Channel;
use super::failure::TlsFailure;
use super::handshake::{HandshakeKind, Negotiated};
use super::stream::PeerState;
use rustls::ServerConnection;
use std::sync::Arc;

/// A server-side session over octets that the caller moves; the mirror of [`super::ClientTls`].
pub struct ServerTls {
    channel: Channel<ServerConnection>,
}

impl ServerTls {
    /// Waits for a handshake.
    ///
    /// # Errors
    /// The configuration is contradictory (rustls' description).
    pub fn new(config: Arc<rustls::ServerConfig>) -> Result<Self, String> {
        let hands_over = config.enable_secret_extraction;
        let mut session = ServerConnection::new(config).map_err(|error| error.to_string())?;
        session.set_buffer_limit(None);
        Ok(ServerTls {
            channel: Channel::new(session, hands_over),
        })
    }

    /// Refuses the early data of this session, whatever the configuration says; the client has to
    /// send it again (RFC 8446, section 4.2.10). To be called before its first octets come.
    pub fn refuse_early_data(&mut self) {
        if let Some(session) = self.channel.rustls_mut() {
            session.reject_early_data();
        }
    }

    /// True until both sides have finished the handshake.
    pub fn is_handshaking(&self) -> bool {
        self.channel.is_handshaking()
    }

    /// Takes octets from the socket; appends the plaintext in them to `plaintext`, early data
    /// included.
    ///
    /// # Errors
    /// As [`super::ClientTls::handle_bytes`].
    pub fn handle_bytes(
        &mut self,
        mut bytes: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<PeerState, TlsFailure> {
        while !bytes.is_empty() && self.channel.is_handing_over() {
            let progress = self.channel.receive_record(&mut bytes, plaintext)?;
            if progress.peer_closed {
                return Ok(progress);
            }
            self.channel.hand_over_if_due();
        }
        self.channel.receive(bytes, plaintext)
    }

    /// Encrypts `plaintext`, as [`super::ClientTls::write`]; before the handshake is over only if
    /// it follows on early data.
    pub fn write(&mut self, plaintext: &[u8]) {
        self.channel.write(plaintext);
    }

    /// As [`ServerTls::write`] and [`ServerTls::poll_transmit`], without a copy.
    pub fn write_into(&mut self, plaintext: &[u8], transmit: &mut Vec<u8>) {
        self.channel.write_into(plaintext, transmit);
    }

    /// Says that nothing more will be written (close_notify).
    pub fn close(&mut self) {
        self.channel.close();
    }

    /// Appends all octets that wait for the socket to `transmit`.
    pub fn poll_transmit(&mut self, transmit: &mut Vec<u8>) {
        self.channel.poll_transmit(transmit);
    }

    /// What the handshake agreed on; `None` before that.
    pub fn negotiated(&self) -> Option<Negotiated> {
        self.channel.negotiated()
    }

    /// Whether the handshake was a full one; `None` before its end.
    pub fn handshake_kind(&self) -> Option<HandshakeKind> {
        self.channel
            .handshake_kind()
            .filter(|_| !self.is_handshaking())
    }

    /// What the handshake is going to be, as soon as the client's first message says it.
    pub fn handshake_begun(&self) -> Option<HandshakeKind> {
        self.channel.handshake_kind()
    }

    /// True if early data of the client was accepted, until the handshake is over.
    pub fn has_early_data(&mut self) -> bool {
        let session = self.channel.rustls_mut();
        session.is_some_and(|session| session.early_data().is_some())
    }

    #[cfg(test)]
    pub(super) fn own_records(&mut self) -> Option<&mut super::record_layer::RecordLayer> {
        self.channel.own()
    }

    #[cfg(test)]
    pub(super) fn rustls(&mut self) -> Option<&mut ServerConnection> {
        self.channel.rustls_mut()
    }
}
