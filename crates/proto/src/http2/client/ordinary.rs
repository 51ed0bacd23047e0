//! The fast path of nearly every exchange: a POST whose fields are all in the peer's table and
//! whose message fits into one frame, and a response in one piece with the same fields as the one
//! before. Everything else takes the general path, which has the same result.

use super::super::frame::{
    FRAME_HEADER_OCTETS, FrameReader, Http2Error, PAYLOAD_OCTETS_MAX, WINDOW_MAX, flag,
    frame_header, kind,
};
use super::super::known_fields;
use super::Http2Client;
use crate::doh::MESSAGE_OCTETS_MAX;
use crate::exchange::ExchangeEnd;
use crate::hpack::{Encoder, NumberField};

/// Longest beginning of a field block that is kept: it holds nothing but indices.
const KEPT_OCTETS_MAX: usize = 15;

/// The field block of a POST but for its `content-length`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KnownBlock {
    octets: [u8; KEPT_OCTETS_MAX],
    /// Of these; 0 if none is known.
    length: u8,
    /// State of the table in which it was written.
    table_changes: u32,
}

impl KnownBlock {
    /// Keeps `block`, which `encoder` has written since it had seen `before` changes.
    pub(super) fn remember(&mut self, block: &[u8], encoder: &Encoder, before: u32) {
        *self = KnownBlock::default();
        if encoder.table_changes() != before {
            return;
        }
        if let Some(octets) = self.octets.get_mut(..block.len()) {
            octets.copy_from_slice(block);
            self.length = block.len() as u8;
            self.table_changes = before;
        }
    }
}

impl Http2Client {
    /// Appends a POST with `message`; false if it is out of the ordinary, with nothing appended.
    #[inline]
    pub(super) fn write_ordinary(&mut self, id: u32, message: &[u8], out: &mut Vec<u8>) -> bool {
        let (known, endpoint) = (&self.known_block, &mut self.endpoint);
        if known.length == 0 || known.table_changes != endpoint.encoder.table_changes() {
            return false;
        }
        let octets = message.len() as u32;
        let allowed = endpoint.send_window.min(endpoint.peer.initial_window);
        if message.is_empty() || octets > allowed || message.len() > endpoint.peer.frame_octets_max
        {
            return false;
        }
        let content_length = endpoint
            .encoder
            .known_number(NumberField::CONTENT_LENGTH, octets);
        let Some(content_length) = content_length else {
            return false;
        };
        let length = usize::from(known.length);
        let mut frames = [0; 2 * FRAME_HEADER_OCTETS + KEPT_OCTETS_MAX + 1];
        let (headers, block) = frames.split_at_mut(FRAME_HEADER_OCTETS);
        headers.copy_from_slice(&frame_header(
            length + 1,
            kind::HEADERS,
            flag::END_HEADERS,
            id,
        ));
        block[..KEPT_OCTETS_MAX].copy_from_slice(&known.octets);
        block[length] = content_length;
        let data = frame_header(message.len(), kind::DATA, flag::END_STREAM, id);
        block[length + 1..][..FRAME_HEADER_OCTETS].copy_from_slice(&data);
        endpoint.send_window -= octets;
        let end = 2 * FRAME_HEADER_OCTETS + length + 1;
        out.reserve(end + message.len());
        out.extend_from_slice(&frames[..end]);
        out.extend_from_slice(message);
        true
    }

    /// Handles the frames in `bytes`.
    #[inline(always)]
    pub(super) fn read(
        &mut self,
        reader: &mut FrameReader,
        bytes: &[u8],
        out: &mut Vec<u8>,
        on_end: &mut impl FnMut(u32, ExchangeEnd<'_>),
    ) -> Result<(), Http2Error> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if reader.is_between_frames()
                && let Some(octets) = self.take_ordinary(rest, on_end)
            {
                rest = &rest[octets..];
                continue;
            }
            rest = reader.read_one(rest, |frame| self.handle_frame(frame, out, on_end))?;
        }
        Ok(())
    }

    /// Takes a whole response with a message from the front of `bytes`; returns its octets.
    /// `None` if it is out of the ordinary, with nothing done.
    #[inline]
    fn take_ordinary(
        &mut self,
        bytes: &[u8],
        on_end: &mut impl FnMut(u32, ExchangeEnd<'_>),
    ) -> Option<usize> {
        let (headers, rest) = bytes.split_first_chunk()?;
        let (block_octets, id) = parse_header(headers, kind::HEADERS, flag::END_HEADERS)?;
        let (block, rest) = rest.split_at_checked(block_octets)?;
        let (data, rest) = rest.split_first_chunk()?;
        let (octets, data_id) = parse_header(data, kind::DATA, flag::END_STREAM)?;
        let message = rest.get(..octets)?;
        let flow_octets = octets as u32;
        if id != data_id || !self.endpoint.takes_silently(flow_octets) {
            return None;
        }
        let is_message = known_fields::find(block, |fields| fields.has_message(octets))?;
        if !is_message || octets > MESSAGE_OCTETS_MAX {
            return None;
        }
        let is_fresh = |stream: &super::Stream| stream.is_fresh(flow_octets);
        let stream = self.streams.remove_if(id, is_fresh)?;
        self.endpoint.take_silently(flow_octets);
        self.endpoint.count_exchange();
        on_end(stream.token, ExchangeEnd::Message(message));
        Some(2 * FRAME_HEADER_OCTETS + block_octets + octets)
    }
}

/// Octets of payload and the stream, if the header is of this type and has these flags.
#[inline]
fn parse_header(header: &[u8; FRAME_HEADER_OCTETS], kind: u8, flags: u8) -> Option<(usize, u32)> {
    let [high, middle, low, its_kind, its_flags, stream @ ..] = *header;
    let octets = u32::from_be_bytes([0, high, middle, low]) as usize;
    let is_wanted = its_kind == kind && its_flags == flags && octets <= PAYLOAD_OCTETS_MAX;
    is_wanted.then_some((octets, u32::from_be_bytes(stream) & WINDOW_MAX))
}
