//! The unidirectional streams of an HTTP/3 connection, ours and the peer's (RFC 9114, section 6.2).

use super::streams::{ReadTo, read, write};
use crate::http3::{Http3Error, PeerStreams, Role, StreamEnd, UniStep, write_control_stream};
use quinn_proto::{Connection, Dir, StreamId, VarInt};

/// State of a connection of either side beside its requests.
pub(super) struct Http3Streams {
    pub(super) peer: PeerStreams,
    /// Our control stream, once the peer has allowed one.
    control: Option<StreamId>,
    /// Octets for it that flow control has held back.
    unsent: Vec<u8>,
}

impl Http3Streams {
    pub(super) fn new(role: Role) -> Self {
        Http3Streams {
            peer: PeerStreams::new(role),
            control: None,
            unsent: Vec::new(),
        }
    }

    /// True if our control stream is open.
    pub(super) fn has_control(&self) -> bool {
        self.control.is_some()
    }

    /// Opens our control stream with SETTINGS, as soon as that is possible.
    pub(super) fn ensure_control(&mut self, quic: &mut Connection) {
        if self.control.is_some() {
            return;
        }
        self.control = quic.streams().open(Dir::Uni);
        if self.control.is_some() {
            let mut start = Vec::new();
            write_control_stream(&mut start);
            self.write_control(quic, &start);
        }
    }

    /// Sends octets on our control stream, at once or when flow control allows it.
    pub(super) fn write_control(&mut self, quic: &mut Connection, octets: &[u8]) {
        self.unsent.extend_from_slice(octets);
        if let Some(id) = self.control {
            self.send_rest(quic, id);
        }
    }

    /// Goes on with what was held back, if `id` is our control stream.
    pub(super) fn send_rest(&mut self, quic: &mut Connection, id: StreamId) {
        if self.control == Some(id) {
            let left = write(quic, id, &self.unsent).map_or(0, <[u8]>::len);
            let sent = self.unsent.len() - left;
            self.unsent.drain(..sent);
        }
    }

    /// The server has rejected early data: our streams are as if they had never been.
    pub(super) fn forget_ours(&mut self) {
        self.control = None;
        self.unsent.clear();
    }

    /// Reads one of the peer's streams.
    ///
    /// # Errors
    /// Close the connection with the error's code.
    pub(super) fn read(
        &mut self,
        quic: &mut Connection,
        id: StreamId,
    ) -> Result<UniStep, Http3Error> {
        let (octets, read_to) = read(quic, id, Vec::new());
        let end = match read_to {
            ReadTo::Open => StreamEnd::Open,
            ReadTo::Finished | ReadTo::Reset(_) => StreamEnd::Closed,
            ReadTo::Gone => return Ok(UniStep::None),
        };
        let step = self.peer.handle_octets(id.into(), octets.as_slice(), end)?;
        if let UniStep::Stop(code) = step {
            let code = VarInt::from_u64(code.0).unwrap_or(VarInt::MAX);
            // Fails only if the stream is gone already.
            let _ = quic.recv_stream(id).stop(code);
        }
        Ok(step)
    }
}
