//! TLS for DNS (RFC 7858, RFC 8310): the one module that knows rustls.
//!
//! [`ClientTls`] and [`ServerTls`] wrap a rustls connection in "feed octets, take octets": after
//! each `handle_bytes`, `write` or `close`, drain `poll_transmit` into the socket. rustls 0.24
//! changes its interface; nothing outside this module names a rustls type except through the
//! re-exports here. Certificates are checked against the time of rustls' time provider, which
//! `client_config` lets the caller set; nothing else here looks at a clock.

use rustls::{ClientConnection, CommonState, ConnectionCommon, ServerConnection};
use std::io::{BufRead, Write};
use std::sync::Arc;

pub use config::{ClientTlsOptions, Roots, TlsVersions, client_config, server_config};
pub use failure::TlsFailure;
pub use rustls;

mod config;
mod failure;
mod records;

use records::RecordBoundaries;

/// A client-side session over octets that the caller moves.
///
/// After `handle_bytes` or `write`, drain `poll_transmit` into the socket.
pub struct ClientTls {
    session: ClientConnection,
    boundaries: RecordBoundaries,
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
        let mut session = ClientConnection::new(config, name).map_err(|error| error.to_string())?;
        session.set_buffer_limit(None);
        Ok(ClientTls {
            session,
            boundaries: RecordBoundaries::default(),
        })
    }

    /// True until both sides have finished the handshake.
    pub fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// Takes octets from the socket; appends the plaintext in them to `plaintext`.
    ///
    /// All of `bytes` is taken, up to a close_notify or an error.
    ///
    /// # Errors
    /// The session is over; an alert for the peer may be waiting in `poll_transmit`. Plaintext
    /// from before the error has been appended.
    pub fn handle_bytes(
        &mut self,
        bytes: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<Progress, TlsFailure> {
        receive(&mut self.session, &mut self.boundaries, bytes, plaintext)
    }

    /// Encrypts `plaintext`; records wait in `poll_transmit`.
    ///
    /// During the handshake the plaintext is kept, without a limit, and sent after it. Dropped
    /// without a word once the session has failed or [`ClientTls::close`] has been called.
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
}

/// A server-side session over octets that the caller moves; the mirror of [`ClientTls`].
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

    /// True until both sides have finished the handshake.
    pub fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// Takes octets from the socket; appends the plaintext in them to `plaintext`.
    ///
    /// # Errors
    /// As [`ClientTls::handle_bytes`].
    pub fn handle_bytes(
        &mut self,
        bytes: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<Progress, TlsFailure> {
        receive(&mut self.session, &mut self.boundaries, bytes, plaintext)
    }

    /// Encrypts `plaintext`, as [`ClientTls::write`].
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
}

/// What a batch of octets from the peer led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The peer sent close_notify.
    pub peer_closed: bool,
}

/// What a handshake agreed on, by the names of the IANA registries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Negotiated {
    /// `TLS 1.2` or `TLS 1.3`.
    pub version: &'static str,
    /// `TLS_AES_256_GCM_SHA384` and the like.
    pub cipher_suite: &'static str,
    /// `X25519` and the like.
    pub key_exchange_group: &'static str,
}

impl Negotiated {
    pub(crate) fn of(session: &CommonState) -> Option<Negotiated> {
        let version = match session.protocol_version()? {
            rustls::ProtocolVersion::TLSv1_2 => "TLS 1.2",
            rustls::ProtocolVersion::TLSv1_3 => "TLS 1.3",
            _ => "unknown",
        };
        let cipher_suite = match session.negotiated_cipher_suite()?.suite() {
            rustls::CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
            rustls::CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
            rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
            suite => suite.as_str().unwrap_or("unknown"),
        };
        let group = session.negotiated_key_exchange_group()?.name();
        let key_exchange_group = group.as_str().unwrap_or("unknown");
        Some(Negotiated {
            version,
            cipher_suite,
            key_exchange_group,
        })
    }
}

/// Feeds `bytes` to the session, a buffer of rustls at a time, and drains its plaintext.
fn receive<Data>(
    session: &mut ConnectionCommon<Data>,
    boundaries: &mut RecordBoundaries,
    bytes: &[u8],
    plaintext: &mut Vec<u8>,
) -> Result<Progress, TlsFailure> {
    let mut rest = bytes;
    let mut progress = Progress { peer_closed: false };
    while !rest.is_empty() && !progress.peer_closed {
        let piece = boundaries.take_piece(&mut rest);
        progress = receive_piece(session, piece, plaintext)?;
    }
    Ok(progress)
}

/// Feeds one piece, which rustls takes in one read unless its buffer is filled by a long record.
///
/// rustls takes a read of nothing for the end of the stream, hence never an empty slice.
fn receive_piece<Data>(
    session: &mut ConnectionCommon<Data>,
    mut piece: &[u8],
    plaintext: &mut Vec<u8>,
) -> Result<Progress, TlsFailure> {
    let mut progress = Progress { peer_closed: false };
    while !piece.is_empty() && !progress.peer_closed {
        let taken = session.read_tls(&mut piece);
        let processed = session.process_new_packets();
        take_plaintext(session, plaintext);
        progress.peer_closed = processed?.peer_has_closed();
        let octets = taken.map_err(|error| TlsFailure::Protocol(error.to_string()))?;
        if octets == 0 && !progress.peer_closed {
            return Err(TlsFailure::Protocol(
                "the record is too long to be read".to_owned(),
            ));
        }
    }
    Ok(progress)
}

fn take_plaintext<Data>(session: &mut ConnectionCommon<Data>, plaintext: &mut Vec<u8>) {
    let mut reader = session.reader();
    // An error here means "nothing to read now"; failures come from process_new_packets.
    while let Ok(chunk) = reader.fill_buf() {
        if chunk.is_empty() {
            break;
        }
        plaintext.extend_from_slice(chunk);
        let octets = chunk.len();
        reader.consume(octets);
    }
}

fn send<Data>(session: &mut ConnectionCommon<Data>, plaintext: &[u8]) {
    // The one error is that of a session that is over, which `receive` has reported.
    let _ = session.writer().write_all(plaintext);
}

fn take_records<Data>(session: &mut ConnectionCommon<Data>, transmit: &mut Vec<u8>) {
    while session.wants_write() {
        session
            .write_tls(transmit)
            .expect("writing to a Vec cannot fail");
    }
}

#[cfg(test)]
mod tests;
