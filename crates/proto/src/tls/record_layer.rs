//! Our own record layer, for sessions whose handshake rustls has made (RFC 8446, sections 4.6, 5
//! and 6; RFC 5246, section 6.2).
//!
//! rustls copies each record into and out of buffers of the session, and keeps these. Here a record
//! is opened from where it was received to where its content is wanted, and sealed where it is
//! sent from; a session keeps its keys and what came of a record that a read has cut off.
//!
//! What a peer may do is what rustls lets it do, with the same limits, and failures are rustls'
//! own errors. Tickets are not for this layer: the handover waits for them (`channel.rs`), and
//! those that come later still are skipped.

use super::failure::TlsFailure;
use super::stream::PeerState;
use crate::framing::framed_messages;
use rustls::{
    AlertDescription, ContentType, Error, ExtractedSecrets, HandshakeType, InvalidMessage,
    PeerMisbehaved,
};
use std::cell::RefCell;
use traffic_key::TrafficKey;

mod contexts;
mod key_schedule;
mod traffic_key;

pub(super) use key_schedule::{HandshakeSecrets, Listener};

/// Octets of a record header: type, version, length.
const HEADER_OCTETS: usize = 5;

/// The content of one record, at most (RFC 8446, section 5.1).
const CONTENT_OCTETS_MAX: usize = 1 << 14;

/// What follows the header is shorter than this (RFC 5246, section 6.2.3).
const BODY_OCTETS_END: usize = CONTENT_OCTETS_MAX + 2_048;

const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
const HEARTBEAT: u8 = 24;

const HELLO_REQUEST: u8 = 0;
const CLIENT_HELLO: u8 = 1;
const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;

const WARNING: u8 = 1;
const FATAL: u8 = 2;

/// The longest handshake message that rustls takes.
const HANDSHAKE_OCTETS_MAX: usize = 0xffff;

/// A sequence number must not wrap (RFC 8446, section 5.3).
const SEQUENCE_END: u64 = 0xffff_ffff_ffff_0000;

/// Empty records in a row, key updates without application data in between, warnings and requests
/// to renegotiate that a peer is allowed: as many as rustls allows.
const EMPTY_RECORDS_MAX: u8 = 32;
const KEY_UPDATES_MAX: u8 = 32;
const WARNINGS_MAX: u8 = 4;
const RENEGOTIATIONS_MAX: u8 = 1;

/// Partial records that a thread keeps room for when they are whole.
const SPARE_MAX: usize = 64;

thread_local! {
    /// Buffers for partial records that no session uses.
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// The version of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Tls12,
    Tls13,
}

/// What rustls hands over.
pub(super) struct Handover {
    pub(super) secrets: ExtractedSecrets,
    /// What TLS 1.3 makes further keys from.
    pub(super) handshake: Option<HandshakeSecrets>,
    pub(super) version: Version,
    pub(super) is_client: bool,
    /// Records that one key may seal.
    pub(super) records_max: u64,
    /// Octets that rustls has not sent yet.
    pub(super) waiting: Vec<u8>,
}

/// A record that ends the session, and the alert sent to the peer.
#[derive(Debug)]
struct InvalidRecord {
    error: Error,
    alert: Option<AlertDescription>,
}

impl InvalidRecord {
    fn new(error: impl Into<Error>, alert: AlertDescription) -> Self {
        let (error, alert) = (error.into(), Some(alert));
        InvalidRecord { error, alert }
    }
}

impl From<Error> for InvalidRecord {
    fn from(error: Error) -> Self {
        let alert = match &error {
            Error::AlertReceived(_) => None,
            Error::InvalidMessage(_) => Some(AlertDescription::DecodeError),
            Error::PeerSentOversizedRecord => Some(AlertDescription::RecordOverflow),
            Error::DecryptError => Some(AlertDescription::BadRecordMac),
            Error::General(_) => Some(AlertDescription::InternalError),
            _ => Some(AlertDescription::UnexpectedMessage),
        };
        InvalidRecord { error, alert }
    }
}

impl From<InvalidMessage> for InvalidRecord {
    fn from(error: InvalidMessage) -> Self {
        Error::from(error).into()
    }
}

impl From<PeerMisbehaved> for InvalidRecord {
    fn from(error: PeerMisbehaved) -> Self {
        Error::from(error).into()
    }
}

/// The records of an established session, both ways.
pub(super) struct RecordLayer {
    sending: TrafficKey,
    receiving: TrafficKey,
    records_max: u64,
    is_client: bool,
    /// The peer sent close_notify.
    peer_closed: bool,
    /// We sent close_notify or a fatal alert.
    closed: bool,
    /// The peer waits for a key update in return.
    owes_key_update: bool,
    empty_records: u8,
    key_updates: u8,
    warnings: u8,
    renegotiations: u8,
    failure: Option<Box<TlsFailure>>,
    /// The beginning of a record.
    partial: Vec<u8>,
    /// The beginning of a handshake message.
    handshake: Vec<u8>,
    /// Sealed, for the socket.
    waiting: Vec<u8>,
}

impl RecordLayer {
    /// Goes on where rustls stopped.
    ///
    /// # Errors
    /// The cipher is not known here.
    pub(super) fn new(handover: Handover) -> Result<RecordLayer, Error> {
        let Handover {
            version, is_client, ..
        } = handover;
        let secrets = handover.handshake.unwrap_or_default();
        let (ours, theirs) = match is_client {
            true => (secrets.client, secrets.server),
            false => (secrets.server, secrets.client),
        };
        Ok(RecordLayer {
            sending: TrafficKey::new(version, handover.secrets.tx, ours)?,
            receiving: TrafficKey::new(version, handover.secrets.rx, theirs)?,
            records_max: handover.records_max.min(SEQUENCE_END),
            is_client,
            peer_closed: false,
            closed: false,
            owes_key_update: false,
            empty_records: 0,
            key_updates: 0,
            warnings: 0,
            renegotiations: 0,
            failure: None,
            partial: Vec::new(),
            handshake: Vec::new(),
            waiting: handover.waiting,
        })
    }

    /// Takes octets from the socket; appends the plaintext in them to `plaintext`.
    ///
    /// # Errors
    /// As [`super::ClientTls::handle_bytes`].
    pub(super) fn handle_bytes(
        &mut self,
        bytes: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<PeerState, TlsFailure> {
        if let Some(failure) = &self.failure {
            return Err(TlsFailure::clone(failure));
        }
        let mut rest = bytes;
        while !rest.is_empty() && !self.peer_closed {
            let taken = match self.partial.is_empty() {
                true => self.take_record(rest, plaintext),
                false => self.take_rest_of_record(rest, plaintext),
            };
            match taken {
                Ok(octets) => rest = &rest[octets..],
                Err(invalid) => return Err(self.fail(invalid)),
            }
        }
        Ok(PeerState {
            peer_closed: self.peer_closed,
        })
    }

    /// Opens the first record of `bytes`, or keeps them if there is only a part of it; returns the
    /// octets taken.
    #[inline]
    fn take_record(
        &mut self,
        bytes: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<usize, InvalidRecord> {
        let Some(record) = record_octets(bytes)?.and_then(|octets| bytes.get(..octets)) else {
            let spare = SPARE.with_borrow_mut(Vec::pop);
            self.partial = spare.unwrap_or_default();
            self.partial.extend_from_slice(bytes);
            return Ok(bytes.len());
        };
        self.open(record, plaintext)?;
        Ok(record.len())
    }

    /// Adds to the record that was cut off, and opens it if it is whole now.
    fn take_rest_of_record(
        &mut self,
        bytes: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<usize, InvalidRecord> {
        let octets = record_octets(&self.partial)?.unwrap_or(HEADER_OCTETS);
        let taken = bytes.len().min(octets - self.partial.len());
        self.partial.extend_from_slice(&bytes[..taken]);
        if record_octets(&self.partial)? == Some(self.partial.len()) {
            let mut record = std::mem::take(&mut self.partial);
            let opened = self.open(&record, plaintext);
            record.clear();
            SPARE.with_borrow_mut(|spare| {
                if spare.len() < SPARE_MAX {
                    spare.push(record);
                }
            });
            opened?;
        }
        Ok(taken)
    }

    fn open(&mut self, record: &[u8], plaintext: &mut Vec<u8>) -> Result<(), InvalidRecord> {
        let Some((header, body)) = record.split_first_chunk() else {
            return Ok(());
        };
        // Between the parts of a message there is none.
        if header[0] == CHANGE_CIPHER_SPEC && self.handshake.is_empty() {
            return Err(match body {
                [1] => self.unexpected(CHANGE_CIPHER_SPEC),
                _ => InvalidMessage::InvalidCcs.into(),
            });
        }
        let start = plaintext.len();
        let kind = self.receiving.open(header, body, plaintext)?;
        if !self.handshake.is_empty() && kind != HANDSHAKE {
            plaintext.truncate(start);
            return Err(PeerMisbehaved::MessageInterleavedWithHandshakeMessage.into());
        }
        self.count_empty(plaintext.len() == start)?;
        if kind == APPLICATION_DATA {
            self.key_updates = 0;
            return Ok(());
        }
        // Rare enough to be copied.
        let content = plaintext.split_off(start);
        match kind {
            ALERT => self.handle_alert(&content),
            HANDSHAKE => self.handle_handshake(&content),
            CHANGE_CIPHER_SPEC => Err(PeerMisbehaved::IllegalMiddleboxChangeCipherSpec.into()),
            _ => Err(InvalidMessage::InvalidContentType.into()),
        }
    }

    #[inline]
    fn count_empty(&mut self, is_empty: bool) -> Result<(), InvalidRecord> {
        if !is_empty {
            self.empty_records = 0;
            return Ok(());
        }
        if self.empty_records == EMPTY_RECORDS_MAX {
            return Err(PeerMisbehaved::TooManyEmptyFragments.into());
        }
        self.empty_records += 1;
        Ok(())
    }

    /// RFC 8446, section 6; RFC 5246, section 7.2.
    fn handle_alert(&mut self, content: &[u8]) -> Result<(), InvalidRecord> {
        let [level, description] = match content {
            [level, description] => [*level, *description],
            [] | [_] => return Err(InvalidMessage::MissingData("AlertMessagePayload").into()),
            _ => return Err(InvalidMessage::TrailingData("AlertMessagePayload").into()),
        };
        let description = AlertDescription::from(description);
        let received = Error::AlertReceived(description);
        if !matches!(level, WARNING | FATAL) {
            return Err(InvalidRecord::new(
                received,
                AlertDescription::IllegalParameter,
            ));
        }
        if description == AlertDescription::CloseNotify {
            self.peer_closed = true;
            return Ok(());
        }
        if level == FATAL {
            return Err(received.into());
        }
        if self.warnings == WARNINGS_MAX {
            return Err(PeerMisbehaved::TooManyWarningAlertsReceived.into());
        }
        self.warnings += 1;
        if self.is_tls13() && description != AlertDescription::UserCanceled {
            return Err(InvalidRecord::new(received, AlertDescription::DecodeError));
        }
        Ok(())
    }

    /// Takes a fragment of handshake messages.
    fn handle_handshake(&mut self, fragment: &[u8]) -> Result<(), InvalidRecord> {
        let mut messages = std::mem::take(&mut self.handshake);
        messages.extend_from_slice(fragment);
        let mut rest = &messages[..];
        while let Some(([kind, length @ ..], after)) = rest.split_first_chunk::<4>() {
            let octets = length
                .iter()
                .fold(0, |octets, octet| octets << 8 | usize::from(*octet));
            if octets > HANDSHAKE_OCTETS_MAX {
                return Err(InvalidMessage::HandshakePayloadTooLarge.into());
            }
            let Some((message, after)) = after.split_at_checked(octets) else {
                break;
            };
            self.handle_message(*kind, message, after.is_empty())?;
            rest = after;
        }
        self.handshake = rest.to_vec();
        Ok(())
    }

    /// RFC 8446, section 4.6; of TLS 1.2 there is only the wish to renegotiate.
    fn handle_message(
        &mut self,
        kind: u8,
        message: &[u8],
        is_last: bool,
    ) -> Result<(), InvalidRecord> {
        match (self.is_tls13(), kind) {
            (true, KEY_UPDATE) => self.handle_key_update(message, is_last),
            (true, NEW_SESSION_TICKET) if self.is_client => Ok(()),
            (false, HELLO_REQUEST) if self.is_client => self.refuse_renegotiation(),
            (false, CLIENT_HELLO) if !self.is_client => self.refuse_renegotiation(),
            (is_tls13, _) => {
                let expect_types = match (is_tls13, self.is_client) {
                    (true, true) => vec![HandshakeType::NewSessionTicket, HandshakeType::KeyUpdate],
                    (true, false) => vec![HandshakeType::KeyUpdate],
                    (false, _) => return Err(self.unexpected(HANDSHAKE)),
                };
                let error = Error::InappropriateHandshakeMessage {
                    expect_types,
                    got_type: HandshakeType::from(kind),
                };
                Err(error.into())
            }
        }
    }

    /// RFC 8446, section 4.6.3.
    fn handle_key_update(&mut self, message: &[u8], is_last: bool) -> Result<(), InvalidRecord> {
        let is_requested = match message {
            [0] => Ok(false),
            [1] => Ok(true),
            [_] => Err(InvalidRecord::new(
                InvalidMessage::InvalidKeyUpdate,
                AlertDescription::IllegalParameter,
            )),
            [] => Err(InvalidMessage::MissingData("KeyUpdateRequest").into()),
            _ => Err(InvalidMessage::TrailingData("KeyUpdate").into()),
        }?;
        if !is_last {
            return Err(PeerMisbehaved::KeyEpochWithPendingFragment.into());
        }
        if self.key_updates == KEY_UPDATES_MAX {
            return Err(PeerMisbehaved::TooManyKeyUpdateRequests.into());
        }
        self.key_updates += 1;
        self.receiving.update()?;
        self.owes_key_update |= is_requested;
        Ok(())
    }

    /// RFC 5746, section 4.2 and 4.5: refused with a warning, once.
    fn refuse_renegotiation(&mut self) -> Result<(), InvalidRecord> {
        if self.renegotiations == RENEGOTIATIONS_MAX {
            return Err(PeerMisbehaved::TooManyRenegotiationRequests.into());
        }
        self.renegotiations += 1;
        self.send_alert(WARNING, AlertDescription::NoRenegotiation);
        Ok(())
    }

    fn unexpected(&self, kind: u8) -> InvalidRecord {
        let expect_types = match self.is_tls13() {
            true => vec![ContentType::ApplicationData, ContentType::Handshake],
            false => vec![ContentType::ApplicationData],
        };
        let got_type = ContentType::from(kind);
        Error::InappropriateMessage {
            expect_types,
            got_type,
        }
        .into()
    }

    fn fail(&mut self, invalid: InvalidRecord) -> TlsFailure {
        if let Some(alert) = invalid.alert {
            self.send_alert(FATAL, alert);
        }
        self.closed = true;
        let failure = TlsFailure::from(invalid.error);
        self.failure = Some(Box::new(failure.clone()));
        failure
    }

    /// Seals `plaintext`, which waits for [`RecordLayer::poll_transmit`].
    pub(super) fn write(&mut self, plaintext: &[u8]) {
        let mut waiting = std::mem::take(&mut self.waiting);
        self.write_into(plaintext, &mut waiting);
        self.waiting = waiting;
    }

    /// Appends what waits and the records of `plaintext` to `wire`.
    pub(super) fn write_into(&mut self, plaintext: &[u8], wire: &mut Vec<u8>) {
        self.poll_transmit(wire);
        for content in plaintext.chunks(CONTENT_OCTETS_MAX) {
            if self.sending.sequence >= self.records_max && !self.closed {
                self.end_key(wire);
            }
            if self.closed {
                return;
            }
            self.sending.seal(APPLICATION_DATA, content, wire);
        }
    }

    /// Appends what waits, and a record for each framed message of `stream`, to `wire`; `stream` is
    /// as before afterwards.
    pub(super) fn write_messages(&mut self, stream: &mut Vec<u8>, wire: &mut Vec<u8>) {
        self.poll_transmit(wire);
        let records_left = self.records_max.saturating_sub(self.sending.sequence);
        // There are fewer messages than octets.
        let is_simple = self.is_tls13() && !self.closed && records_left > stream.len() as u64;
        let sealed = match is_simple {
            true => self.sending.seal_messages(stream, wire),
            false => 0,
        };
        for message in framed_messages(&stream[sealed..]) {
            self.write_into(message, wire);
        }
    }

    /// Does not use a key for more records than it is safe for (RFC 8446, section 5.5): goes on
    /// with another, or closes where there is none.
    #[cold]
    fn end_key(&mut self, wire: &mut Vec<u8>) {
        if self.is_tls13() {
            self.send_key_update(1, wire);
        } else {
            self.close();
            wire.append(&mut self.waiting);
        }
    }

    fn send_key_update(&mut self, is_requested: u8, wire: &mut Vec<u8>) {
        let message = [KEY_UPDATE, 0, 0, 1, is_requested];
        self.sending.seal(HANDSHAKE, &message, wire);
        if self.sending.update().is_err() {
            // Not known how to go on; the peer has a new key now.
            self.closed = true;
        }
    }

    fn send_alert(&mut self, level: u8, description: AlertDescription) {
        if !self.closed {
            let alert = [level, description.into()];
            self.sending.seal(ALERT, &alert, &mut self.waiting);
        }
    }

    /// Says that nothing more will be written (close_notify).
    pub(super) fn close(&mut self) {
        self.send_alert(WARNING, AlertDescription::CloseNotify);
        self.closed = true;
    }

    /// Appends what waits for the socket to `wire`.
    #[inline]
    pub(super) fn poll_transmit(&mut self, wire: &mut Vec<u8>) {
        if !self.waiting.is_empty() || self.owes_key_update {
            self.transmit_own(wire);
        }
    }

    #[cold]
    fn transmit_own(&mut self, wire: &mut Vec<u8>) {
        if !self.waiting.is_empty() {
            wire.append(&mut std::mem::take(&mut self.waiting));
        }
        if self.owes_key_update && !self.closed {
            self.owes_key_update = false;
            self.send_key_update(0, wire);
        }
    }

    fn is_tls13(&self) -> bool {
        self.receiving.version == Version::Tls13
    }

    /// Lets one key seal this number of records.
    #[cfg(test)]
    pub(super) fn limit_records(&mut self, records_max: u64) {
        self.records_max = records_max;
    }

    /// Asks the peer for a key update.
    #[cfg(test)]
    pub(super) fn request_key_update(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        self.send_key_update(1, &mut waiting);
        self.waiting = waiting;
    }

    /// Sends a record as it should never be sent.
    #[cfg(test)]
    pub(super) fn send_record(&mut self, kind: u8, content: &[u8]) {
        self.sending.seal(kind, content, &mut self.waiting);
    }
}

/// The header of a record (RFC 8446, section 5.1).
fn record_header(kind: u8, body_octets: usize) -> [u8; HEADER_OCTETS] {
    // A body has at most 2^14 + 256 octets.
    let [high, low] = (body_octets as u16).to_be_bytes();
    [kind, 3, 3, high, low]
}

/// The octets of the record that begins with `bytes`; none before its header is whole.
#[inline]
fn record_octets(bytes: &[u8]) -> Result<Option<usize>, InvalidRecord> {
    let Some(header) = bytes.first_chunk() else {
        return Ok(None);
    };
    Ok(Some(HEADER_OCTETS + body_octets(header)?))
}

/// The octets that follow a header.
#[inline]
fn body_octets(header: &[u8; HEADER_OCTETS]) -> Result<usize, InvalidRecord> {
    let [kind, major, _, high, low] = *header;
    let octets = usize::from(u16::from_be_bytes([high, low]));
    let invalid = match kind {
        CHANGE_CIPHER_SPEC..=HEARTBEAT if major != 3 => InvalidMessage::UnknownProtocolVersion,
        CHANGE_CIPHER_SPEC..=HEARTBEAT if octets == 0 && kind != APPLICATION_DATA => {
            InvalidMessage::InvalidEmptyPayload
        }
        CHANGE_CIPHER_SPEC..=HEARTBEAT if octets >= BODY_OCTETS_END => {
            InvalidMessage::MessageTooLarge
        }
        CHANGE_CIPHER_SPEC..=HEARTBEAT => return Ok(octets),
        _ => InvalidMessage::InvalidContentType,
    };
    Err(invalid.into())
}
