//! Streams of one connection, found by stream ID.

use bytes::Bytes;
use quinn_proto::{Connection, ReadError, StreamId, WriteError};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from stream IDs, which count up: multiplying spreads them well enough.
pub(super) type StreamMap<T> = HashMap<u64, T, BuildHasherDefault<IdHasher>>;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, id: u64) {
        // The odd number nearest to 2^64 divided by the golden ratio; the map uses the upper bits.
        let product = (self.0 ^ id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }
}

/// How far a stream has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadTo {
    /// More may come.
    Open,
    /// The peer has sent FIN, and everything before it has been read.
    Finished,
    /// The peer has reset the stream with this code; what came before is void.
    Reset(u64),
    /// The stream is not there (any more).
    Gone,
}

/// Octets of a stream: those that came earlier, and what has come since.
#[derive(Debug)]
pub(super) enum Octets {
    /// In one piece, where quinn-proto has decrypted them.
    Whole(Bytes),
    /// Put together from several.
    Joined(Vec<u8>),
}

impl Octets {
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Octets::Whole(bytes) => bytes,
            Octets::Joined(octets) => octets,
        }
    }

    /// The same octets to keep, or to hand out in part.
    pub(super) fn into_bytes(self) -> Bytes {
        match self {
            Octets::Whole(bytes) => bytes,
            Octets::Joined(octets) => Bytes::from(octets),
        }
    }

    /// The same octets to be added to.
    pub(super) fn into_vec(self) -> Vec<u8> {
        match self {
            // A copy on purpose: keeping the piece would keep the buffer that it lies in.
            Octets::Whole(bytes) => bytes.to_vec(),
            Octets::Joined(octets) => octets,
        }
    }
}

/// Reads all that has come on stream `id` in order, and joins it to `earlier`.
///
/// The stream's receive window bounds what one call can add.
pub(super) fn read(quic: &mut Connection, id: StreamId, earlier: Vec<u8>) -> (Octets, ReadTo) {
    read_while(quic, id, earlier, |_| usize::MAX)
}

/// As [`read`], and no further than the end of a message with its length before it: FIN stays
/// unread.
pub(super) fn read_message(
    quic: &mut Connection,
    id: StreamId,
    earlier: Vec<u8>,
) -> (Octets, ReadTo) {
    read_while(quic, id, earlier, |octets| {
        match octets.split_first_chunk() {
            Some((length, rest)) => {
                usize::from(u16::from_be_bytes(*length)).saturating_sub(rest.len())
            }
            None => 2 - octets.len(),
        }
    })
}

/// Reads available octets, as many as `wanted` asks for, until that is none.
fn read_while(
    quic: &mut Connection,
    id: StreamId,
    earlier: Vec<u8>,
    wanted: impl Fn(&[u8]) -> usize,
) -> (Octets, ReadTo) {
    let mut octets = if earlier.is_empty() {
        Octets::Whole(Bytes::new())
    } else {
        Octets::Joined(earlier)
    };
    let mut stream = quic.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else {
        return (octets, ReadTo::Gone);
    };
    let read_to = loop {
        let octets_max = wanted(octets.as_slice());
        if octets_max == 0 {
            break ReadTo::Open;
        }
        match chunks.next(octets_max) {
            Ok(Some(chunk)) => octets = join(octets, chunk.bytes),
            Ok(None) => break ReadTo::Finished,
            Err(ReadError::Blocked) => break ReadTo::Open,
            Err(ReadError::Reset(code)) => break ReadTo::Reset(code.into_inner()),
        }
    };
    // Whether flow control has something to say is seen at the next transmit anyway.
    let _ = chunks.finalize();
    (octets, read_to)
}

fn join(octets: Octets, more: Bytes) -> Octets {
    match octets {
        Octets::Whole(bytes) if bytes.is_empty() => Octets::Whole(more),
        octets => {
            let mut joined = octets.into_vec();
            joined.extend_from_slice(&more);
            Octets::Joined(joined)
        }
    }
}

/// Writes as much of `octets` as flow control allows.
///
/// Returns the octets that are left; `None` if the stream is not there (any more).
pub(super) fn write<'a>(quic: &mut Connection, id: StreamId, octets: &'a [u8]) -> Option<&'a [u8]> {
    let mut rest = octets;
    let mut stream = quic.send_stream(id);
    while !rest.is_empty() {
        match stream.write(rest) {
            Ok(written) => rest = &rest[written..],
            Err(WriteError::Blocked) => break,
            Err(_) => return None,
        }
    }
    Some(rest)
}

/// As [`write`], and FIN behind all of them.
pub(super) fn write_and_finish<'a>(
    quic: &mut Connection,
    id: StreamId,
    octets: &'a [u8],
) -> Option<&'a [u8]> {
    let rest = write(quic, id, octets)?;
    if rest.is_empty() {
        quic.send_stream(id).finish().ok()?;
    }
    Some(rest)
}
