//! A session on a stream: rustls for the handshake, our own record layer for what follows, or
//! rustls for all of it if the configuration keeps its secrets inside.
//!
//! rustls is handed single records until the handover, so that it holds no octet of what comes
//! after it.

use super::failure::TlsFailure;
use super::handshake::{HandshakeKind, Negotiated};
use super::record_layer::{Handover, HandshakeSecrets, RecordLayer, Version};
use super::records::RecordBoundaries;
use super::stream::{PeerState, Side, receive, receive_piece, send, take_records};
use crate::framing::framed_messages;
use rustls::{ProtocolVersion, SupportedCipherSuite};
use std::io::Write;

/// Records with application data after which a client no longer waits for its ticket. Servers send
/// tickets before they answer, but for responses to early data.
const RECORDS_WITHOUT_TICKET_MAX: u8 = 64;

/// One side of a session.
pub(super) struct Channel<S> {
    layer: Layer<S>,
    boundaries: RecordBoundaries,
    /// Until rustls has handed over; `None` if it never does.
    pending: Option<Box<Pending>>,
    /// What rustls knew, kept when it has gone.
    negotiated: Option<Negotiated>,
    kind: Option<HandshakeKind>,
}

enum Layer<S> {
    Rustls(Box<S>),
    Own(Box<RecordLayer>),
    /// The handover failed.
    Failed(TlsFailure),
}

/// A handover to come.
#[derive(Default)]
struct Pending {
    handshake: Option<HandshakeSecrets>,
    /// Records with application data since the handshake.
    records: u8,
}

impl<S: Side> Channel<S> {
    /// A session that begins. It `hands_over` if the configuration lets secrets out.
    pub(super) fn new(session: S, hands_over: bool) -> Channel<S> {
        Channel {
            layer: Layer::Rustls(Box::new(session)),
            boundaries: RecordBoundaries::default(),
            pending: hands_over.then(Box::default),
            negotiated: None,
            kind: None,
        }
    }

    /// rustls, as long as it has not handed over.
    pub(super) fn rustls(&self) -> Option<&S> {
        match &self.layer {
            Layer::Rustls(session) => Some(session),
            _ => None,
        }
    }

    /// As [`Channel::rustls`].
    pub(super) fn rustls_mut(&mut self) -> Option<&mut S> {
        match &mut self.layer {
            Layer::Rustls(session) => Some(session),
            _ => None,
        }
    }

    /// Our own record layer, once rustls has handed over.
    #[inline]
    pub(super) fn own(&mut self) -> Option<&mut RecordLayer> {
        match &mut self.layer {
            Layer::Own(records) => Some(records),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn is_handshaking(&self) -> bool {
        self.rustls()
            .is_some_and(|session| session.is_handshaking())
    }

    /// True until rustls has handed over, if it will.
    #[inline]
    pub(super) fn is_handing_over(&self) -> bool {
        self.pending.is_some()
    }

    /// Hands rustls the next record of `bytes`, or as much of it as there is.
    pub(super) fn receive_record(
        &mut self,
        bytes: &mut &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<PeerState, TlsFailure> {
        let Layer::Rustls(session) = &mut self.layer else {
            return self.receive(std::mem::take(bytes), plaintext);
        };
        let record = self.boundaries.take_record(bytes);
        let (was_handshaking, start) = (session.is_handshaking(), plaintext.len());
        let progress = receive_piece(&mut **session, record, plaintext);
        if let Some(pending) = &mut self.pending {
            pending.handshake = HandshakeSecrets::take().or(pending.handshake);
            let has_data = !was_handshaking && plaintext.len() > start;
            pending.records = pending.records.saturating_add(has_data.into());
        }
        if !matches!(progress, Ok(PeerState { peer_closed: false })) {
            self.pending = None;
        }
        progress
    }

    /// Takes octets from the socket, as [`super::ClientTls::handle_bytes`].
    #[inline]
    pub(super) fn receive(
        &mut self,
        bytes: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<PeerState, TlsFailure> {
        match &mut self.layer {
            Layer::Own(records) => records.handle_bytes(bytes, plaintext),
            Layer::Rustls(session) => {
                receive(&mut **session, &mut self.boundaries, bytes, plaintext)
            }
            Layer::Failed(failure) => Err(failure.clone()),
        }
    }

    /// Hands over if nothing is left to do for rustls.
    pub(super) fn hand_over_if_due(&mut self) {
        let (Layer::Rustls(session), Some(pending)) = (&self.layer, &self.pending) else {
            return;
        };
        if !session.is_handshaking()
            && self.boundaries.is_between_records()
            && pending.is_due(&**session)
            && let Some(version) = version_of(&**session)
        {
            self.hand_over(version);
        }
    }

    fn hand_over(&mut self, version: Version) {
        let pending = self.pending.take();
        let nothing = Layer::Failed(TlsFailure::Protocol("the handover failed".to_owned()));
        let Layer::Rustls(mut session) = std::mem::replace(&mut self.layer, nothing) else {
            return;
        };
        let mut waiting = Vec::new();
        // The answer to a key update would wait for something to be written.
        let _ = session.writer().write(&[]);
        take_records(&mut *session, &mut waiting);
        self.negotiated = Negotiated::of(&session);
        self.kind = session.handshake_kind().map(HandshakeKind::from);
        let records_max = session.negotiated_cipher_suite().map_or(0, records_max);
        let handed_over = session.extract().and_then(|secrets| {
            RecordLayer::new(Handover {
                secrets,
                handshake: pending.and_then(|pending| pending.handshake),
                version,
                is_client: S::IS_CLIENT,
                records_max,
                waiting,
            })
        });
        self.layer = match handed_over {
            Ok(records) => Layer::Own(Box::new(records)),
            Err(error) => Layer::Failed(error.into()),
        };
    }

    /// Encrypts `plaintext`, or keeps it until the session can.
    pub(super) fn write(&mut self, plaintext: &[u8]) {
        match &mut self.layer {
            Layer::Own(records) => records.write(plaintext),
            Layer::Rustls(session) => send(&mut **session, plaintext),
            Layer::Failed(_) => {}
        }
    }

    /// As [`Channel::write`] and [`Channel::poll_transmit`].
    #[inline]
    pub(super) fn write_into(&mut self, plaintext: &[u8], transmit: &mut Vec<u8>) {
        match &mut self.layer {
            Layer::Own(records) => records.write_into(plaintext, transmit),
            Layer::Rustls(session) => {
                send(&mut **session, plaintext);
                take_records(&mut **session, transmit);
            }
            Layer::Failed(_) => {}
        }
    }

    /// As [`Channel::write_into`], with a record for each framed message of `stream`, which is as
    /// before afterwards.
    #[inline]
    pub(super) fn write_messages(&mut self, stream: &mut Vec<u8>, transmit: &mut Vec<u8>) {
        if let Layer::Own(records) = &mut self.layer {
            return records.write_messages(stream, transmit);
        }
        for message in framed_messages(stream) {
            self.write_into(message, transmit);
        }
    }

    /// Says that nothing more will be written (close_notify).
    pub(super) fn close(&mut self) {
        // What is to be closed is not worth a handover.
        self.pending = None;
        match &mut self.layer {
            Layer::Own(records) => records.close(),
            Layer::Rustls(session) => session.send_close_notify(),
            Layer::Failed(_) => {}
        }
    }

    /// Appends all octets that wait for the socket to `transmit`; returns how many there are.
    pub(super) fn poll_transmit(&mut self, transmit: &mut Vec<u8>) -> usize {
        match &mut self.layer {
            Layer::Own(records) => {
                let before = transmit.len();
                records.poll_transmit(transmit);
                transmit.len() - before
            }
            Layer::Rustls(session) => take_records(&mut **session, transmit),
            Layer::Failed(_) => 0,
        }
    }

    /// What the handshake agreed on; `None` before that.
    pub(super) fn negotiated(&self) -> Option<Negotiated> {
        match self.rustls() {
            Some(session) => Negotiated::of(session),
            None => self.negotiated,
        }
    }

    /// What the handshake is going to be, or was.
    pub(super) fn handshake_kind(&self) -> Option<HandshakeKind> {
        match self.rustls() {
            Some(session) => session.handshake_kind().map(HandshakeKind::from),
            None => self.kind,
        }
    }
}

impl Pending {
    /// A server has nothing to wait for, and with TLS 1.2 neither has a client. With TLS 1.3 a
    /// client that remembers its sessions waits until the tickets are in: they are behind it when
    /// something else follows on one.
    fn is_due<S: Side>(&self, session: &S) -> bool {
        if session.protocol_version() != Some(ProtocolVersion::TLSv1_3) {
            return true;
        }
        let Some(secrets) = self.handshake else {
            return false;
        };
        let waits = S::IS_CLIENT && secrets.remembers;
        !waits
            || self.records >= RECORDS_WITHOUT_TICKET_MAX
            || (self.records > 0 && session.has_ticket())
    }
}

fn version_of<S: Side>(session: &S) -> Option<Version> {
    match session.protocol_version()? {
        ProtocolVersion::TLSv1_2 => Some(Version::Tls12),
        ProtocolVersion::TLSv1_3 => Some(Version::Tls13),
        _ => None,
    }
}

/// Records that may be sealed with one key of `suite` (RFC 8446, section 5.5).
fn records_max(suite: SupportedCipherSuite) -> u64 {
    match suite {
        SupportedCipherSuite::Tls13(suite) => suite.common.confidentiality_limit,
        SupportedCipherSuite::Tls12(suite) => suite.common.confidentiality_limit,
    }
}
