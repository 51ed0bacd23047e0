//! The client's side of a session: handshakes full, resumed and with early data.

use super::channel::Channel;
use super::client_session::ClientSession;
use super::failure::TlsFailure;
use super::handshake::{EarlyData, Handshake, HandshakeKind, Negotiated};
use super::stream::{PeerState, send, take_records};
use crate::framing::framed_messages;
use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use std::io::Write;
use std::sync::Arc;

/// A client-side session over octets that the caller moves.
///
/// After `handle_bytes` or `write`, drain `poll_transmit` into the socket.
pub struct ClientTls {
    channel: Channel<ClientConnection>,
    /// Given to clients that resume sessions; borrowed by rustls whenever it works.
    memory: Option<ClientSession>,
    /// Until the handshake is over and its last flight taken.
    set_up: Option<Box<SetUp>>,
    handshake: Option<Handshake>,
}

/// What only the set-up of a session needs.
#[derive(Default)]
struct SetUp {
    /// Records taken out of rustls to be counted, that wait for the socket.
    flight: Vec<u8>,
    /// Plaintext written so far, for after the handshake. The first `early_octets` of it have
    /// been sent as early data, too.
    written: Vec<u8>,
    early_octets: usize,
    octets_sent: usize,
    octets_received: usize,
}

impl ClientTls {
    /// Starts a full handshake; the first flight is ready in [`ClientTls::poll_transmit`].
    ///
    /// # Errors
    /// The configuration and name do not go together (rustls' description).
    pub fn new(
        config: Arc<rustls::ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Self, String> {
        let hands_over = config.enable_secret_extraction;
        let mut session = ClientConnection::new(config, name).map_err(|error| error.to_string())?;
        session.set_buffer_limit(None);
        Ok(ClientTls {
            channel: Channel::new(session, hands_over),
            memory: None,
            set_up: Some(Box::default()),
            handshake: None,
        })
    }

    /// Starts a handshake of a client that keeps its tickets in `memory`, of a configuration with
    /// [`resumption`](super::ClientTlsOptions::resumption) and always for the same name.
    ///
    /// With `resume`, the handshake resumes the session in `memory`, if there is one. The memory
    /// comes back from [`ClientTls::take_memory`].
    ///
    /// # Errors
    /// As [`ClientTls::new`].
    pub fn remembering(
        config: Arc<rustls::ClientConfig>,
        name: ServerName<'static>,
        mut memory: ClientSession,
        resume: bool,
    ) -> Result<Self, String> {
        let mut client = memory.remember(resume, || ClientTls::new(config, name))?;
        client.memory = Some(memory);
        Ok(client)
    }

    /// Takes back what the client remembers, for its next connection. Tickets that come later
    /// are forgotten.
    pub fn take_memory(&mut self) -> ClientSession {
        self.memory.take().unwrap_or_default()
    }

    /// True if there is a ticket for the client's next connection.
    pub fn has_ticket(&self) -> bool {
        self.memory.as_ref().is_some_and(ClientSession::has_ticket)
    }

    /// True until both sides have finished the handshake.
    pub fn is_handshaking(&self) -> bool {
        self.channel.is_handshaking()
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
    ) -> Result<PeerState, TlsFailure> {
        // Nothing is remembered any more: tickets are for rustls.
        if let Some(records) = self.channel.own() {
            return records.handle_bytes(bytes, plaintext);
        }
        match self.memory.take() {
            None => self.receive(bytes, plaintext),
            Some(mut memory) => {
                let received = memory.remember(false, || self.receive(bytes, plaintext));
                self.memory = Some(memory);
                received
            }
        }
    }

    fn receive(
        &mut self,
        mut bytes: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<PeerState, TlsFailure> {
        // A record at a time, because the handshake's octets are counted to its very end.
        while !bytes.is_empty() && (self.is_handshaking() || self.channel.is_handing_over()) {
            let (was_handshaking, octets) = (self.is_handshaking(), bytes.len());
            let progress = self.channel.receive_record(&mut bytes, plaintext);
            if let Some(set_up) = self.set_up.as_mut().filter(|_| was_handshaking) {
                set_up.octets_received += octets - bytes.len();
            }
            let progress = progress?;
            if was_handshaking && !self.is_handshaking() {
                self.finish_handshake();
            }
            if progress.peer_closed {
                return Ok(progress);
            }
            self.channel.hand_over_if_due();
        }
        self.channel.receive(bytes, plaintext)
    }

    /// Counts our last flight and sends what has been written so far behind it.
    fn finish_handshake(&mut self) {
        let (Some(set_up), Some(session)) = (&mut self.set_up, self.channel.rustls_mut()) else {
            return;
        };
        set_up.octets_sent += take_records(session, &mut set_up.flight);
        let accepted = session.is_early_data_accepted();
        let early_data = match (set_up.early_octets, accepted) {
            (0, _) => EarlyData::NotSent,
            (_, true) => EarlyData::Accepted,
            (_, false) => EarlyData::Rejected,
        };
        let done = if accepted { set_up.early_octets } else { 0 };
        send(session, &set_up.written[done..]);
        set_up.written = Vec::new();
        let kind = session.handshake_kind();
        self.handshake = Some(Handshake {
            kind: kind.map_or(HandshakeKind::Full, HandshakeKind::from),
            early_data,
            octets_sent: u32::try_from(set_up.octets_sent).unwrap_or(u32::MAX),
            octets_received: u32::try_from(set_up.octets_received).unwrap_or(u32::MAX),
        });
    }

    /// Encrypts `plaintext`; records wait in `poll_transmit`.
    ///
    /// Before the end of the handshake the plaintext goes as early data if it may
    /// ([`ClientTls::can_write_early`]), or else is kept, without a limit, and sent after it.
    /// Early data that the server rejects is sent again after the handshake, before anything
    /// else: the caller has nothing to do in either case. Dropped without a word once the session
    /// has failed or [`ClientTls::close`] has been called.
    pub fn write(&mut self, plaintext: &[u8]) {
        match (&mut self.set_up, self.channel.rustls_mut()) {
            (Some(set_up), Some(session)) if self.handshake.is_none() => {
                let is_next = set_up.written.len() == set_up.early_octets;
                if is_next && write_early(session, set_up, plaintext) {
                    set_up.early_octets += plaintext.len();
                }
                set_up.written.extend_from_slice(plaintext);
            }
            _ => self.channel.write(plaintext),
        }
    }

    /// As [`ClientTls::write`] and [`ClientTls::poll_transmit`]. What is written after the
    /// handshake is sealed where it is sent from, without a buffer in between.
    pub fn write_into(&mut self, plaintext: &[u8], transmit: &mut Vec<u8>) {
        if self.set_up.is_none() {
            return self.channel.write_into(plaintext, transmit);
        }
        self.write(plaintext);
        self.poll_transmit(transmit);
    }

    /// As [`ClientTls::write_into`] for messages with length prefixes (RFC 7858, section 3.3), each
    /// in a record of its own. `stream` is as before afterwards; it is written to meanwhile, so
    /// that each message is sealed from where it is.
    pub fn write_messages(&mut self, stream: &mut Vec<u8>, transmit: &mut Vec<u8>) {
        if self.set_up.is_none() {
            return self.channel.write_messages(stream, transmit);
        }
        for message in framed_messages(stream) {
            self.write(message);
            self.poll_transmit(transmit);
        }
    }

    /// True if `octets` written now go as early data (0-RTT; RFC 8446, section 2.3): they fit into
    /// what the server allowed with the ticket, and nothing waits for the end of the handshake.
    pub fn can_write_early(&mut self, octets: usize) -> bool {
        let (Some(set_up), Some(session)) = (&self.set_up, self.channel.rustls_mut()) else {
            return false;
        };
        set_up.written.len() == set_up.early_octets
            && session
                .early_data()
                .is_some_and(|early| early.bytes_left() >= octets)
    }

    /// Octets of plaintext that have been sent as early data; 0 after the handshake.
    pub fn early_octets(&self) -> usize {
        match (&self.set_up, self.handshake) {
            (Some(set_up), None) => set_up.early_octets,
            _ => 0,
        }
    }

    /// What becomes of early data.
    pub fn early_data(&self) -> EarlyData {
        match self.handshake {
            Some(handshake) => handshake.early_data,
            None if self.early_octets() > 0 => EarlyData::Pending,
            None => EarlyData::NotSent,
        }
    }

    /// Says that nothing more will be written (close_notify).
    pub fn close(&mut self) {
        self.channel.close();
    }

    /// Appends all octets that wait for the socket to `transmit`.
    #[inline]
    pub fn poll_transmit(&mut self, transmit: &mut Vec<u8>) {
        match (&self.set_up, self.channel.own()) {
            (None, Some(records)) => records.poll_transmit(transmit),
            _ => self.poll_any(transmit),
        }
    }

    #[cold]
    fn poll_any(&mut self, transmit: &mut Vec<u8>) {
        if let Some(set_up) = &mut self.set_up {
            transmit.append(&mut set_up.flight);
            if self.handshake.is_none() {
                set_up.octets_sent += self.channel.poll_transmit(transmit);
                return;
            }
            self.set_up = None;
        }
        self.channel.poll_transmit(transmit);
    }

    /// What the handshake agreed on; `None` before that.
    pub fn negotiated(&self) -> Option<Negotiated> {
        self.channel.negotiated()
    }

    /// What the handshake was like; `None` before its end.
    pub fn handshake(&self) -> Option<Handshake> {
        self.handshake
    }

    #[cfg(test)]
    pub(super) fn own_records(&mut self) -> Option<&mut super::record_layer::RecordLayer> {
        self.channel.own()
    }

    #[cfg(test)]
    pub(super) fn rustls(&mut self) -> Option<&mut ClientConnection> {
        self.channel.rustls_mut()
    }
}

/// Sends all of `plaintext` as early data, or nothing of it; true if it did.
fn write_early(session: &mut ClientConnection, set_up: &mut SetUp, plaintext: &[u8]) -> bool {
    let fits = session
        .early_data()
        .is_some_and(|early| early.bytes_left() >= plaintext.len());
    if !fits || plaintext.is_empty() {
        return false;
    }
    set_up.octets_sent += take_records(session, &mut set_up.flight);
    let written = session
        .early_data()
        .is_some_and(|mut early| early.write_all(plaintext).is_ok());
    // Not counted: these are no octets of the handshake.
    take_records(session, &mut set_up.flight);
    written
}
