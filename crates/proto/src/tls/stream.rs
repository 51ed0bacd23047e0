//! Octets into and out of a session of rustls, the same for both sides.

use super::failure::TlsFailure;
use super::records::RecordBoundaries;
use rustls::{ClientConnection, ConnectionCommon, Error, ExtractedSecrets, ServerConnection};
use std::io::{BufRead, Read, Write};
use std::ops::DerefMut;

/// What a batch of octets from the peer led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerState {
    /// The peer sent close_notify.
    pub peer_closed: bool,
}

/// One side of a session.
pub(super) trait Side: Sized + DerefMut<Target = ConnectionCommon<Self::Data>> {
    type Data;

    const IS_CLIENT: bool;

    /// Appends early data that was accepted to `plaintext`.
    fn take_early_data(&mut self, plaintext: &mut Vec<u8>);

    /// True if a ticket came in this session of TLS 1.3.
    fn has_ticket(&self) -> bool;

    /// The keys of the session, which ends here.
    fn extract(self) -> Result<ExtractedSecrets, Error>;
}

impl Side for ClientConnection {
    type Data = rustls::client::ClientConnectionData;

    const IS_CLIENT: bool = true;

    /// Servers send none.
    fn take_early_data(&mut self, _plaintext: &mut Vec<u8>) {}

    fn has_ticket(&self) -> bool {
        self.tls13_tickets_received() > 0
    }

    fn extract(self) -> Result<ExtractedSecrets, Error> {
        self.dangerous_extract_secrets()
    }
}

impl Side for ServerConnection {
    type Data = rustls::server::ServerConnectionData;

    const IS_CLIENT: bool = false;

    /// Servers get none.
    fn has_ticket(&self) -> bool {
        false
    }

    fn extract(self) -> Result<ExtractedSecrets, Error> {
        self.dangerous_extract_secrets()
    }

    fn take_early_data(&mut self, plaintext: &mut Vec<u8>) {
        if let Some(mut early) = self.early_data() {
            // Reading from memory has no errors but "nothing to read now".
            let _ = early.read_to_end(plaintext);
        }
    }
}

/// Feeds `bytes` to the session, a buffer of rustls at a time, and drains its plaintext.
pub(super) fn receive(
    session: &mut impl Side,
    boundaries: &mut RecordBoundaries,
    bytes: &[u8],
    plaintext: &mut Vec<u8>,
) -> Result<PeerState, TlsFailure> {
    let mut rest = bytes;
    let mut progress = PeerState { peer_closed: false };
    while !rest.is_empty() && !progress.peer_closed {
        let piece = boundaries.take_piece(&mut rest);
        progress = receive_piece(session, piece, plaintext)?;
    }
    Ok(progress)
}

/// Feeds one piece, which rustls takes in one read unless its buffer is filled by a long record.
///
/// rustls takes a read of nothing for the end of the stream, hence never an empty slice.
pub(super) fn receive_piece(
    session: &mut impl Side,
    mut piece: &[u8],
    plaintext: &mut Vec<u8>,
) -> Result<PeerState, TlsFailure> {
    let mut progress = PeerState { peer_closed: false };
    while !piece.is_empty() && !progress.peer_closed {
        let taken = session.read_tls(&mut piece);
        let processed = session.process_new_packets();
        session.take_early_data(plaintext);
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

fn take_plaintext(session: &mut impl Side, plaintext: &mut Vec<u8>) {
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

/// Encrypts `plaintext`, or keeps it until the session can.
pub(super) fn send(session: &mut impl Side, plaintext: &[u8]) {
    // The one error is that of a session that is over, which `receive` has reported.
    let _ = session.writer().write_all(plaintext);
}

/// Appends the records that wait to `transmit`; returns how many octets they have.
pub(super) fn take_records(session: &mut impl Side, transmit: &mut Vec<u8>) -> usize {
    let before = transmit.len();
    while session.wants_write() {
        session
            .write_tls(transmit)
            .expect("writing to a Vec cannot fail");
    }
    transmit.len() - before
}
